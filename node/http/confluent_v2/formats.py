"""The embedded formats of v2: how keys and values, which are bytes, stand in JSON.

======  ==========================================  ===========================================
format  in                                          out
======  ==========================================  ===========================================
binary  a string of base64                          the string
json    any JSON value, stored as compact text      the stored text, letter for letter
text    a string, stored as UTF-8                   the string
======  ==========================================  ===========================================

null is no key, or a tombstone, in each of them; header values are base64 in each of them. Numbers
keep their digits both ways. What a record holds is never guessed at: a record that its reader's
format cannot say is an error, which names the record.
"""

from __future__ import annotations

import base64
import re
from enum import StrEnum
from typing import Any

import orjson
from aiohttp import web

from ..batches import RecordOut
from ..encodings import Encoding, to_bytes
from ..errors import ApiError
from ..media import JSON_TYPE, V2_TYPE, content_type
from ..records_in import RecordIn, record_integer
from ..strict_json import NotJson, exact

_MEDIA_TYPE = re.compile(r"application/vnd\.kafka\.([a-z]+)\.v[12]\+json")
_RECORD_KEYS = frozenset({"key", "value", "headers", "partition", "timestamp"})
_INT32_MAX = 2**31 - 1
_INT64_MAX = 2**63 - 1

NO_SCHEMAS = "there is no schema registry here; binary carries such records as bytes"


class Format(StrEnum):
    BINARY = "binary"
    JSON = "json"
    TEXT = "text"

    @property
    def media_type(self) -> str:
        return f"application/vnd.kafka.{self}.v2+json"

    @property
    def encoding(self) -> Encoding:
        return _ENCODINGS[self]


_ENCODINGS = {
    Format.BINARY: Encoding.BASE64,
    Format.JSON: Encoding.JSON,
    Format.TEXT: Encoding.STRING,
}

FORMATS = frozenset(str(one) for one in Format)
SCHEMA_FORMATS = frozenset({"avro", "jsonschema", "protobuf"})


def produced_format(request: web.Request) -> Format:
    """Of a produce body; binary where its type names none, as Confluent has it. ApiError 415."""
    named = content_type(request)
    if named in (V2_TYPE, "application/vnd.kafka.v1+json", JSON_TYPE):
        return Format.BINARY
    match = _MEDIA_TYPE.fullmatch(named or "")
    if match is not None and match[1] in FORMATS:
        return Format(match[1])
    schemas = match is not None and match[1] in SCHEMA_FORMATS
    raise ApiError(
        415,
        "Content-Type is missing" if named is None else f"Content-Type is {named[:100]!r}",
        hint=NO_SCHEMAS if schemas else f"send {' or '.join(f.media_type for f in Format)}",
    )


def require_control_type(request: web.Request) -> None:
    """Of any other body. Raises ApiError 415."""
    named = content_type(request)
    if named in (V2_TYPE, JSON_TYPE) or _MEDIA_TYPE.fullmatch(named or ""):
        return
    raise ApiError(
        415,
        "Content-Type is missing" if named is None else f"Content-Type is {named[:100]!r}",
        hint=f"send {V2_TYPE}",
    )


def records_in(body: bytes, given: Format, now_ms: int, *, to_partition: bool) -> list[RecordIn]:
    """`{"records": [{"key", "value", "partition", "headers", "timestamp"}, ...]}`.

    `to_partition`: the path names the partition, so records must not. Raises ApiError 400 for what
    is no JSON, 422 for what has the wrong form.
    """
    document = json_document(body)
    if not isinstance(document, dict):
        raise ApiError(422, 'the body is no JSON object with "records"')
    # Confluent's clients send ids of schemas along; without schemas they mean nothing.
    unknown = sorted(document.keys() - {"records", "key_schema_id", "value_schema_id"})
    if unknown:
        raise ApiError(422, f"unknown key {unknown[0][:80]!r} in the body")
    items = document.get("records")
    if items is None:
        raise ApiError(422, '"records" is missing')
    if not isinstance(items, list):
        raise ApiError(422, '"records" is no array')
    if not items:
        raise ApiError(422, '"records" is empty')
    allowed = _RECORD_KEYS - {"partition"} if to_partition else _RECORD_KEYS
    return [_record_in(item, n, given, now_ms, allowed) for n, item in enumerate(items)]


def json_document(body: bytes) -> Any:
    try:
        return exact(body)
    except NotJson as error:
        raise ApiError(400, f"the body {error}") from None


def _record_in(
    item: Any, number: int, given: Format, now_ms: int, allowed: frozenset[str]
) -> RecordIn:
    if not isinstance(item, dict):
        raise ApiError(422, f"record {number} is no JSON object")
    unknown = sorted(item.keys() - allowed)
    if unknown:
        raise ApiError(422, f"record {number}: unknown key {unknown[0][:80]!r}")
    if "value" not in item:
        # A forgotten value must not become a tombstone.
        raise ApiError(422, f'record {number} has no "value"', hint="null makes a tombstone")
    timestamp = record_integer(item.get("timestamp"), f"record {number}: timestamp", _INT64_MAX)
    return RecordIn(
        key=to_bytes(item.get("key"), given.encoding, record=number, field="key"),
        value=to_bytes(item["value"], given.encoding, record=number, field="value"),
        headers=_headers_in(item.get("headers"), number),
        timestamp=now_ms if timestamp is None else timestamp,
        partition=record_integer(item.get("partition"), f"record {number}: partition", _INT32_MAX),
    )


def _headers_in(items: Any, number: int) -> tuple[tuple[str, bytes | None], ...]:
    if items is None:
        return ()
    if not isinstance(items, list):
        raise ApiError(422, f"record {number}: headers are no array")
    found = []
    for item in items:
        if not isinstance(item, dict) or not isinstance(item.get("key"), str):
            raise ApiError(422, f'record {number}: a header is no object with a string "key"')
        value = to_bytes(item.get("value"), Encoding.BASE64, record=number, field="header")
        found.append((item["key"], value))
    return tuple(found)


def record_out(stored: RecordOut, topic: str, partition: int, wanted: Format) -> dict[str, Any]:
    """Raises ApiError 406 when the format cannot say what is stored."""
    record = stored.record
    where = f"{topic}-{partition} at offset {record.offset}"
    return {
        "topic": topic,
        "key": _said(record.key, wanted, f"the key of {where}"),
        "value": _said(record.value, wanted, f"the value of {where}"),
        "partition": partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "headers": [
            {"key": name, "value": None if data is None else _base64(data)}
            for name, data in record.headers
        ],
    }


def _said(data: bytes | None, wanted: Format, what: str) -> Any:
    if data is None:
        return None
    if wanted is Format.BINARY:
        return _base64(data)
    try:
        if wanted is Format.TEXT:
            return bytes(data).decode("utf-8")
        orjson.loads(data)
        return orjson.Fragment(bytes(data))
    except ValueError:  # UnicodeDecodeError and JSONDecodeError alike
        raise ApiError(
            406,
            f"{what} is no {'UTF-8' if wanted is Format.TEXT else 'JSON'}",
            error_code=40601,
            hint="seek behind it, or read it by an instance of format binary",
        ) from None


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
