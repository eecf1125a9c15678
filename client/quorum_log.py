"""The metadata log, page by page, and its entries in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .node_api import NodeApi

PATH = "/api/v1/quorum/log"
PAGE = 1000

_NOT_SHOWN = ("controller_epoch",)
"""In every command, and seldom what anybody looks for; `-o json` has it."""


def pages(api: NodeApi, since: int | None, number: int) -> Iterator[Mapping[str, Any]]:
    """From `since` to what was committed when the first page was read, or the last `number`."""
    if since is None:
        yield api.call("GET", f"{PATH}?limit={number}")
        return
    end: int | None = None
    while end is None or since <= end:
        page = api.call("GET", f"{PATH}?from={since}&limit={PAGE}")
        end = page["commit_index"] if end is None else end
        yield page
        if not page["entries"]:
            return
        since = page["entries"][-1]["index"] + 1


def columns_of(entry: Mapping[str, Any]) -> tuple[str, ...]:
    return str(entry["index"]), str(entry["term"]), entry["kind"]


def content_in_words(content: Mapping[str, Any]) -> str:
    """`node_id=1 kafka=(host=127.0.0.1 port=9092)`; what is empty is left out."""
    return _fields(content) or "-"


def _fields(content: Mapping[str, Any]) -> str:
    return " ".join(
        f"{name}={_value(value)}"
        for name, value in content.items()
        if name not in _NOT_SHOWN and value not in (None, [], {}, "")
    )


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"({_fields(value)})"
    if isinstance(value, list):
        return ",".join(
            f"[{_value(one)}]" if isinstance(one, list) else _value(one) for one in value
        )
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)
