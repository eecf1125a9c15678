"""Records in a request body, as one JSON document or as a line of JSON per record."""

from __future__ import annotations

from typing import Any

import orjson

from ...seam import frozen
from .encodings import Encoding, to_bytes
from .errors import ApiError

_RECORD_KEYS = frozenset({"key", "value", "headers", "partition", "timestamp"})
_INT32_MAX = 2**31 - 1
_INT64_MAX = 2**63 - 1


@frozen
class RecordIn:
    """One record as bytes, on its way to a partition."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    partition: int | None
    """None: the partitioner chooses."""
    timestamp_ms: int | None
    """None: now."""


@frozen
class RecordEncodings:
    key: Encoding = Encoding.STRING
    value: Encoding = Encoding.STRING
    header: Encoding = Encoding.STRING


def from_json(body: bytes, encodings: RecordEncodings) -> list[RecordIn]:
    """`{"records": [{"key", "value", "headers", "partition", "timestamp"}, ...]}`.

    `key_encoding`, `value_encoding` and `header_encoding` may stand beside `records`.
    """
    document = _parsed(body, "the body")
    if not isinstance(document, dict):
        raise ApiError(400, 'the body is no JSON object with "records"')
    unknown = sorted(document.keys() - {"records", *_ENCODING_KEYS})
    if unknown:
        raise ApiError(422, f"unknown key {unknown[0]!r} in the body")
    encodings = RecordEncodings(
        **{
            field: Encoding.named(str(document[name]), name) if name in document else default
            for name, field, default in (
                ("key_encoding", "key", encodings.key),
                ("value_encoding", "value", encodings.value),
                ("header_encoding", "header", encodings.header),
            )
        }
    )
    records = document.get("records")
    if records is None:
        raise ApiError(422, '"records" is missing')
    if not isinstance(records, list):
        raise ApiError(400, '"records" is no array')
    return _records(records, encodings)


_ENCODING_KEYS = ("key_encoding", "value_encoding", "header_encoding")


def from_lines(body: bytes, encodings: RecordEncodings) -> list[RecordIn]:
    """A line of JSON per record (NDJSON); empty lines are skipped."""
    lines = [line for line in body.split(b"\n") if line.strip()]
    return _records(
        [_parsed(line, f"line {number}") for number, line in enumerate(lines, 1)], encodings
    )


def _records(items: list[Any], encodings: RecordEncodings) -> list[RecordIn]:
    if not items:
        raise ApiError(422, "there are no records in the body")
    return [_record(item, number, encodings) for number, item in enumerate(items)]


def _record(item: Any, number: int, encodings: RecordEncodings) -> RecordIn:
    if not isinstance(item, dict):
        raise ApiError(422, f"record {number} is no JSON object")
    if not _RECORD_KEYS.issuperset(item):
        unknown = sorted(item.keys() - _RECORD_KEYS)
        raise ApiError(422, f"record {number}: unknown key {unknown[0]!r}")
    if "value" not in item:
        # A forgotten value must not become a tombstone.
        raise ApiError(422, f'record {number} has no "value"', hint="null makes a tombstone")
    return RecordIn(
        key=to_bytes(item.get("key"), encodings.key, record=number, field="key"),
        value=to_bytes(item["value"], encodings.value, record=number, field="value"),
        headers=_headers(item.get("headers"), number, encodings.header),
        partition=_integer(item.get("partition"), f"record {number}: partition", _INT32_MAX),
        timestamp_ms=_integer(item.get("timestamp"), f"record {number}: timestamp", _INT64_MAX),
    )


def _headers(items: Any, number: int, encoding: Encoding) -> tuple[tuple[str, bytes | None], ...]:
    if items is None:
        return ()
    if not isinstance(items, list):
        raise ApiError(
            422,
            f"record {number}: headers are no array",
            hint='headers are [{"key": ..., "value": ...}]: the same key may come twice',
        )
    return tuple(_header(item, number, encoding) for item in items)


def _header(item: Any, number: int, encoding: Encoding) -> tuple[str, bytes | None]:
    if not isinstance(item, dict) or not isinstance(item.get("key"), str):
        raise ApiError(422, f'record {number}: a header is no object with a string "key"')
    return item["key"], to_bytes(item.get("value"), encoding, record=number, field="header")


def _integer(value: Any, what: str, largest: int) -> int | None:
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= largest:
        raise ApiError(422, f"{what} is no whole number from 0 to {largest}")
    return value


def _parsed(text: bytes, what: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise ApiError(400, f"{what} is no valid JSON: {error}") from None
