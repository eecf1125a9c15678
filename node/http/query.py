"""Query parameters, checked one by one: a misspelt one is an error, not a default."""

from __future__ import annotations

import re
from collections.abc import Mapping

from .errors import ApiError

_DURATION = re.compile(r"(\d{1,9})(ms|s)?")


def refuse_unknown(query: Mapping[str, str], *known: str) -> None:
    for name in query:
        if name not in known:
            raise ApiError(
                400, f"unknown parameter {name!r}", hint=f"known here: {', '.join(known) or 'none'}"
            )


def whole_number(query: Mapping[str, str], name: str, *, largest: int) -> int | None:
    text = query.get(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit()) or len(text) > 19 or int(text) > largest:
        raise ApiError(400, f"{name} is {text[:40]!r}; it takes a number from 0 to {largest}")
    return int(text)


def duration_ms(query: Mapping[str, str], name: str, *, largest_ms: int) -> int:
    """`250ms`, `5s`, or plain milliseconds; 0 when absent, cut at `largest_ms`."""
    text = query.get(name)
    if text is None:
        return 0
    match = _DURATION.fullmatch(text)
    if match is None:
        raise ApiError(400, f"{name} is {text[:40]!r}; it takes a time like 250ms or 5s")
    return min(int(match[1]) * (1000 if match[2] == "s" else 1), largest_ms)
