"""Records in a request body, as one JSON document or as a line of JSON per record."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

import orjson

from ...seam import frozen
from .encodings import Encoding, to_bytes
from .errors import ApiError, to_keep
from .strict_json import NotJson, exact, flat_object

_RECORD_KEYS = frozenset({"key", "value", "headers", "partition", "timestamp"})
_INT16_MAX = 2**15 - 1
_INT32_MAX = 2**31 - 1
_INT64_MAX = 2**63 - 1


class RecordIn(NamedTuple):
    """One record as bytes, on its way to a partition; `wire.records.encode_batch` takes it.

    A tuple, since there are a hundred thousand of them a second.
    """

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp: int
    """Unix milliseconds; those of its arrival when it brought none."""
    partition: int | None = None
    """None: the partitioner chooses."""


_new_record = tuple.__new__
"""Without going through the named tuple's own function, which costs as much as the tuple."""


@frozen
class RecordEncodings:
    key: Encoding = Encoding.STRING
    value: Encoding = Encoding.STRING
    header: Encoding = Encoding.STRING

    @property
    def all(self) -> tuple[Encoding, ...]:
        return self.key, self.value, self.header


@frozen
class Producer:
    """Who sends a batch, so that the log recognises its repetition (KIP-98)."""

    producer_id: int
    producer_epoch: int
    base_sequence: int
    """Of the batch's first record; counts the producer's records in this partition from 0 and goes
    on at 0 after 2^31 - 1."""


@frozen
class RecordsIn:
    """The records of one document: of a whole body, or of one line that is a batch."""

    records: list[RecordIn]
    producer: Producer | None = None
    """All records are one batch of its then, and all of one partition."""


def from_json(body: bytes, encodings: RecordEncodings, now_ms: int) -> RecordsIn:
    """`{"records": [{"key", "value", "headers", "partition", "timestamp"}, ...]}`.

    Beside `records` may stand `key_encoding`, `value_encoding` and `header_encoding`; a `partition`
    for those that name none; and `producer_id`, `producer_epoch` and `base_sequence`.

    Raises ApiError 400 or 422.
    """
    try:
        document = _parsed(body, encodings)
    except NotJson as error:
        raise ApiError(400, f"the body {error}") from None
    if not isinstance(document, dict):
        raise ApiError(422, 'the body is no JSON object with "records"')
    return from_document(document, encodings, now_ms, what="the body")


def _parsed(text: bytes, encodings: RecordEncodings) -> Any:
    """Numbers keep their text where they may be values. Raises NotJson."""
    if Encoding.JSON in encodings.all:
        return exact(text)
    document = flat_object(text)
    if type(document) is dict and Encoding.JSON in map(document.get, _ENCODING_KEYS):
        return exact(text)
    return document


_ENCODING_KEYS = ("key_encoding", "value_encoding", "header_encoding")
_PRODUCER_KEYS = ("producer_id", "producer_epoch", "base_sequence")
_DOCUMENT_KEYS = frozenset({"records", "partition", *_ENCODING_KEYS, *_PRODUCER_KEYS})


def from_document(
    document: dict[str, Any], encodings: RecordEncodings, now_ms: int, *, what: str
) -> RecordsIn:
    unknown = sorted(document.keys() - _DOCUMENT_KEYS)
    if unknown:
        raise ApiError(422, f"unknown key {unknown[0]!r} in {what}")
    encodings = _encodings(document, encodings)
    items = document.get("records")
    if items is None:
        raise ApiError(422, '"records" is missing')
    if not isinstance(items, list):
        raise ApiError(422, '"records" is no array')
    if not items:
        raise ApiError(422, f"there are no records in {what}")
    partition = record_integer(document.get("partition"), "partition", _INT32_MAX)
    records = _usual(items, encodings, now_ms, partition)
    if records is None:
        records = [record_in(item, n, encodings, now_ms) for n, item in enumerate(items)]
        if partition is not None:
            records = [_placed(record, n, partition) for n, record in enumerate(records)]
    producer = _producer(document)
    if producer is not None and partition is None:
        raise ApiError(
            422,
            '"partition" is missing',
            hint="sequences count the records of a producer in one partition",
        )
    return RecordsIn(records, producer)


LineItem = RecordIn | RecordsIn | ApiError
"""What a line is: a record, a batch, or neither and why."""


class LineParser:
    """The lines of one request: each a record, or with `records` in it a batch."""

    def __init__(self, encodings: RecordEncodings) -> None:
        self._encodings = encodings
        self._plain = encodings.value is Encoding.STRING and Encoding.JSON not in encodings.all

    def block(
        self, lines: Sequence[bytes], first_number: int, now_ms: int
    ) -> tuple[list[LineItem], bool]:
        """(an item for each line, whether all are records of a value and nothing else).

        Such lines are most of what is sent at high rates, and are read here without a call: an
        object of one name and one string has four quotes, or else a name came twice or a quote is
        escaped, which `flat_object` looks at.
        """
        items: list[LineItem] = []
        all_plain = True
        loads, append = orjson.loads, items.append
        for number, line in enumerate(lines, first_number):
            if self._plain and line.count(b'"') == 4:
                try:
                    document = loads(line)
                except orjson.JSONDecodeError:
                    document = None  # Looked at again below, for what to say.
                if type(document) is dict and len(document) == 1:
                    value = document.get("value")
                    if type(value) is str:
                        append(_new_record(RecordIn, (None, value.encode(), (), now_ms, None)))
                        continue
            all_plain = False
            try:
                append(self.parse(line, number, now_ms))
            except ApiError as error:
                append(to_keep(error))
        return items, all_plain

    def parse(self, line: bytes, number: int, now_ms: int) -> RecordIn | RecordsIn:
        """Raises ApiError 400 or 422."""
        try:
            document = _parsed(line, self._encodings)
        except NotJson as error:
            raise ApiError(400, f"line {number} {error}") from None
        if type(document) is dict and "records" in document:
            batch = from_document(document, self._encodings, now_ms, what=f"line {number}")
            if "partition" not in document:
                raise ApiError(422, f'line {number} is a batch without "partition"')
            return batch
        return record_in(document, number, self._encodings, now_ms)


_USUAL_KEYS = frozenset({"key", "value", "timestamp"})
_USUAL_ENCODINGS: Mapping[Encoding, Callable[[str], bytes]] = MappingProxyType(
    {Encoding.STRING: str.encode, Encoding.BASE64: partial(b64decode, validate=True)}
)


def _usual(
    items: list[Any], encodings: RecordEncodings, now_ms: int, partition: int | None
) -> list[RecordIn] | None:
    """The records, if each is a string with at most a key and a time beside it: what batches mostly
    are, read without a call of ours for each. None: look at them singly, for what to say."""
    read_key = _USUAL_ENCODINGS.get(encodings.key)
    read_value = _USUAL_ENCODINGS.get(encodings.value)
    if read_key is None or read_value is None:
        return None
    records: list[RecordIn] = []
    append = records.append
    for item in items:
        if type(item) is not dict or not _USUAL_KEYS.issuperset(item):
            return None
        value, key, timestamp = item.get("value"), item.get("key"), item.get("timestamp", now_ms)
        if (
            type(value) is not str
            or not (key is None or type(key) is str)
            or type(timestamp) is not int
            or not 0 <= timestamp <= _INT64_MAX
        ):
            return None
        try:
            data, key_data = read_value(value), None if key is None else read_key(key)
        except ValueError:
            return None
        append(_new_record(RecordIn, (key_data, data, (), timestamp, partition)))
    return records


def record_in(item: Any, number: int, encodings: RecordEncodings, now_ms: int) -> RecordIn:
    """Raises ApiError 422 naming the record."""
    if type(item) is not dict:
        raise ApiError(422, f"record {number} is no JSON object")
    if not _RECORD_KEYS.issuperset(item):
        unknown = sorted(item.keys() - _RECORD_KEYS)
        raise ApiError(422, f"record {number}: unknown key {unknown[0]!r}")
    try:
        value = item["value"]
    except KeyError:
        # A forgotten value must not become a tombstone.
        raise ApiError(
            422, f'record {number} has no "value"', hint="null makes a tombstone"
        ) from None
    if type(value) is str and encodings.value is Encoding.STRING:
        data: bytes | None = value.encode()
    else:
        data = to_bytes(value, encodings.value, record=number, field="value")
    if len(item) == 1:
        return RecordIn(None, data, (), now_ms)
    key = item.get("key")
    timestamp = record_integer(item.get("timestamp"), f"record {number}: timestamp", _INT64_MAX)
    return RecordIn(
        None if key is None else to_bytes(key, encodings.key, record=number, field="key"),
        data,
        _headers(item.get("headers"), number, encodings.header),
        now_ms if timestamp is None else timestamp,
        record_integer(item.get("partition"), f"record {number}: partition", _INT32_MAX),
    )


def _placed(record: RecordIn, number: int, partition: int) -> RecordIn:
    if record.partition not in (None, partition):
        raise ApiError(
            422, f"record {number} is of partition {record.partition}, all of them of {partition}"
        )
    return record._replace(partition=partition)


def _encodings(document: dict[str, Any], default: RecordEncodings) -> RecordEncodings:
    def named(name: str, otherwise: Encoding) -> Encoding:
        if name not in document:
            return otherwise
        try:
            return Encoding.named(document[name], name)
        except ApiError as error:
            raise ApiError(422, error.message) from None

    if not document.keys() & _ENCODING_KEYS:
        return default
    return RecordEncodings(
        key=named("key_encoding", default.key),
        value=named("value_encoding", default.value),
        header=named("header_encoding", default.header),
    )


def _producer(document: dict[str, Any]) -> Producer | None:
    given = [document.get(name) for name in _PRODUCER_KEYS]
    if given == [None, None, None]:
        return None
    numbers = [
        record_integer(value, name, largest)
        for value, name, largest in zip(
            given, _PRODUCER_KEYS, (_INT64_MAX, _INT16_MAX, _INT32_MAX), strict=True
        )
    ]
    producer_id, producer_epoch, base_sequence = numbers
    if producer_id is None or producer_epoch is None or base_sequence is None:
        missing = _PRODUCER_KEYS[numbers.index(None)]
        raise ApiError(422, f'"{missing}" is missing', hint=", ".join(_PRODUCER_KEYS))
    return Producer(producer_id, producer_epoch, base_sequence)


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
    if unknown := sorted(item.keys() - {"key", "value"}):
        raise ApiError(422, f"record {number}: a header has the unknown key {unknown[0]!r}")
    return item["key"], to_bytes(item.get("value"), encoding, record=number, field="header")


def record_integer(value: Any, what: str, largest: int) -> int | None:
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= largest:
        raise ApiError(422, f"{what} is no whole number from 0 to {largest}")
    return value
