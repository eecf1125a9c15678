"""Records as v3 says them, in requests and in what became of them.

    {"partition_id": 1, "headers": [{"name": "h", "value": "aGk="}],
     "key": {"type": "STRING", "data": "k"}, "value": {"type": "JSON", "data": {"a": 1}},
     "timestamp": "2026-11-29T20:00:00Z"}

`type` is BINARY (base64), STRING (stored as UTF-8) or JSON (stored as compact text, numbers with
all their digits). An absent key or value is null, as its documents have it.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from ....metadata.image import TopicImage
from ....seam import frozen
from ..confluent_errors import error_answer
from ..encodings import Encoding, to_bytes
from ..errors import ApiError
from ..records_in import RecordIn, record_integer
from ..strict_json import NotJson, exact
from ..writing import Outcome
from .resources import Document

_TYPES = {"BINARY": Encoding.BASE64, "STRING": Encoding.STRING, "JSON": Encoding.JSON}
_SCHEMA_TYPES = frozenset({"AVRO", "JSONSCHEMA", "PROTOBUF"})
_KEYS = frozenset({"partition_id", "headers", "key", "value", "timestamp"})
_INT32_MAX = 2**31 - 1
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@frozen
class TypedRecord:
    """A record, and the types it was sent in; None: null."""

    record: RecordIn
    key_type: str | None
    value_type: str | None


def parse_record(text: bytes, now_ms: int) -> TypedRecord:
    """Raises ApiError 400 for what is no JSON, 422 for what has the wrong form."""
    try:
        document = exact(text)
    except NotJson as error:
        raise ApiError(400, f"the record {error}") from None
    return record_of(document, now_ms)


def record_of(document: Any, now_ms: int, *, also: frozenset[str] = frozenset()) -> TypedRecord:
    """`also`: further keys that may stand beside the record's own. Raises ApiError 422."""
    if not isinstance(document, dict):
        raise _invalid("the record is no JSON object")
    unknown = sorted(document.keys() - _KEYS - also)
    if unknown:
        raise _invalid(f"unknown key {unknown[0][:80]!r} in the record")
    key_type, key = _typed(document.get("key"), "key")
    value_type, value = _typed(document.get("value"), "value")
    record = RecordIn(
        key=key,
        value=value,
        headers=_headers(document.get("headers")),
        timestamp=_timestamp(document.get("timestamp"), now_ms),
        partition=record_integer(document.get("partition_id"), "partition_id", _INT32_MAX),
    )
    return TypedRecord(record, key_type, value_type)


def _typed(given: Any, field: str) -> tuple[str | None, bytes | None]:
    if given is None:
        return None, None
    if not isinstance(given, dict):
        raise _invalid(f'{field} is no object with "type" and "data"')
    unknown = sorted(given.keys() - {"type", "data"})
    if unknown:
        raise _invalid(f"unknown key {unknown[0][:80]!r} in the {field}; there are no schemas here")
    kind, data = given.get("type"), given.get("data")
    if kind is None and data is None:
        return None, None
    if kind in _SCHEMA_TYPES:
        raise _invalid(f"{field} is of type {kind}, and there is no schema registry here")
    if kind not in _TYPES:
        raise _invalid(f'the "type" of {field} is one of {", ".join(_TYPES)}')
    try:
        return kind, to_bytes(data, _TYPES[kind], record=0, field=field)
    except ApiError as error:
        raise _invalid(error.message.removeprefix("record 0: ")) from None


def _headers(items: Any) -> tuple[tuple[str, bytes | None], ...]:
    if items is None:
        return ()
    if not isinstance(items, list):
        raise _invalid("headers are no array")
    found = []
    for item in items:
        if not isinstance(item, dict) or not isinstance(item.get("name"), str):
            raise _invalid('a header is no object with a string "name"')
        try:
            value = to_bytes(item.get("value"), Encoding.BASE64, record=0, field="header")
        except ApiError:
            raise _invalid(f"the value of header {item['name'][:80]!r} is no base64") from None
        found.append((item["name"], value))
    return tuple(found)


def _timestamp(given: Any, now_ms: int) -> int:
    if given is None:
        return now_ms
    try:
        time = datetime.fromisoformat(given)
        # A time without a zone means nothing certain.
        milliseconds = (time - _EPOCH) // timedelta(milliseconds=1)
    except (TypeError, ValueError, OverflowError):
        raise _invalid("timestamp is no date and time like 2026-11-29T20:00:00Z") from None
    if milliseconds < 0:
        raise _invalid("timestamp is before 1970")
    return milliseconds


def _invalid(sentence: str) -> ApiError:
    return ApiError(422, sentence)


def receipt(
    cluster_id: str,
    topic: TopicImage,
    typed: TypedRecord,
    partition: int,
    place: int,
    outcome: Outcome,
) -> Document:
    """Of the record at `place` in its batch."""
    if isinstance(outcome, ApiError):
        return refusal(outcome)
    appended_ms = outcome.log_append_time_ms
    timestamp = typed.record.timestamp if appended_ms < 0 else appended_ms
    return {
        "error_code": 200,
        "cluster_id": cluster_id,
        "topic_name": topic.name,
        "partition_id": partition,
        "offset": outcome.base_offset + place,
        "timestamp": _said(timestamp),
        "key": _sized(typed.key_type, typed.record.key),
        "value": _sized(typed.value_type, typed.record.value),
    }


def refusal(error: ApiError) -> Document:
    return error_answer(error, v3=True)[1]


def _said(milliseconds: int) -> str | None:
    """None: beyond what dates can say."""
    try:
        time = _EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return None
    return f"{time:%Y-%m-%dT%H:%M:%S}.{milliseconds % 1000:03d}Z"


def _sized(kind: str | None, data: bytes | None) -> Document | None:
    if kind is None:
        return None
    return {"type": kind, "size": 0 if data is None else len(data)}
