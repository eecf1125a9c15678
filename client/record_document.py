"""A record as a line of JSON has it, out and in."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from .sdk.records import Header, Record


def document_of(record: Record[bytes, bytes], *, meta_only: bool = False) -> dict[str, Any]:
    """As the HTTP API shows records: text where it is text, base64, and said to be, where not.
    `meta_only`: where it stands and when it was made, without key, value and headers."""
    document: dict[str, Any] = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
    }
    if meta_only:
        return document
    for name, data in (("key", record.key), ("value", record.value)):
        document[name], encoding = _said(data)
        if encoding:
            document[f"{name}_encoding"] = encoding
    document["headers"] = [_header(name, data) for name, data in record.headers]
    return document


def _header(name: str, data: bytes | None) -> dict[str, str | None]:
    value, encoding = _said(data)
    header = {"key": name, "value": value}
    if encoding:
        header["encoding"] = encoding
    return header


def _said(data: bytes | None) -> tuple[str | None, str | None]:
    if data is None:
        return None, None
    try:
        return data.decode(), None
    except UnicodeDecodeError:
        return base64.b64encode(data).decode(), "base64"


def headers_from(document: Mapping[str, Any]) -> tuple[Header, ...]:
    """Raises TypeError, KeyError or ValueError for what no `document_of` has made."""
    return tuple(
        (_text(header["key"]), data_from(header.get("value"), header.get("encoding")))
        for header in document.get("headers") or ()
    )


def data_from(value: Any, encoding: Any) -> bytes | None:
    """Of a key, a value or a header. Raises TypeError or ValueError."""
    if value is None:
        return None
    text = _text(value)
    if encoding == "base64":
        return base64.b64decode(text, validate=True)
    if encoding not in (None, "string"):
        raise ValueError(f"{encoding!r} is no encoding known here")
    return text.encode()


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no string")
    return value
