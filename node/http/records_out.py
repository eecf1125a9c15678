"""A stored record as a JSON document."""

from __future__ import annotations

from typing import Any

from ...seam import frozen
from .batches import RecordOut
from .encodings import Encoding, from_bytes


@frozen
class OutEncodings:
    """The encodings that the reader asked for."""

    key: Encoding
    value: Encoding
    header: Encoding


def record_document(stored: RecordOut, wanted: OutEncodings) -> dict[str, Any]:
    """`key_encoding`, `value_encoding` and a header's `encoding` stand there only where they
    differ from what was asked for."""
    record = stored.record
    document: dict[str, Any] = {
        "offset": record.offset,
        "timestamp": record.timestamp,
        "timestamp_type": stored.timestamp_type,
    }
    document["key"], key_encoding = from_bytes(record.key, wanted.key)
    document["value"], value_encoding = from_bytes(record.value, wanted.value)
    if key_encoding is not wanted.key:
        document["key_encoding"] = key_encoding
    if value_encoding is not wanted.value:
        document["value_encoding"] = value_encoding
    document["headers"] = [_header(name, value, wanted.header) for name, value in record.headers]
    return document


def _header(name: str, data: bytes | None, wanted: Encoding) -> dict[str, Any]:
    value, encoding = from_bytes(data, wanted)
    header = {"key": name, "value": value}
    if encoding is not wanted:
        header["encoding"] = encoding
    return header
