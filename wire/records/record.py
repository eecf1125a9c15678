"""Single records inside a batch.

    length varint | attributes int8 | timestamp delta varint | offset delta varint
    | key length varint, key | value length varint, value | header count varint, headers

Lengths are zigzag varints, -1 is null. A batch's records are compressed together; their number
stays outside.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ..buffers import Buffer
from ..compression import Compression, compress, decompress
from ..exceptions import DecodeError
from ..varint import SIGNED_BYTE, decode_signed, encode_signed
from .batch import crc_of
from .batch_header import (
    CONTROL_BIT,
    HEADER,
    HEADER_SIZE,
    MAGIC,
    NO_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    OVERHEAD,
    TIMESTAMP_TYPE_BIT,
    TRANSACTIONAL_BIT,
    BatchHeader,
    TimestampType,
    parse_header,
)
from .errors import InvalidBatch, TruncatedBatch

Header = tuple[str, bytes | None]


@dataclass(slots=True)
class Record:
    """One record. `offset` and, for LogAppendTime, `timestamp` are set by decoding only."""

    key: bytes | None = None
    value: bytes | None = None
    headers: Sequence[Header] = ()
    timestamp: int = NO_TIMESTAMP
    """Unix milliseconds."""
    offset: int = -1


class Encodable(Protocol):
    """What a record must have to be written into a batch."""

    @property
    def key(self) -> bytes | None: ...

    @property
    def value(self) -> bytes | None: ...

    @property
    def headers(self) -> Sequence[Header]: ...

    @property
    def timestamp(self) -> int:
        """Unix milliseconds."""
        ...


def encode_batch(
    records: Sequence[Encodable],
    *,
    base_offset: int = 0,
    leader_epoch: int = NO_EPOCH,
    compression: Compression = Compression.NONE,
    timestamp_type: TimestampType = TimestampType.CREATE_TIME,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    transactional: bool = False,
    control: bool = False,
) -> bytearray:
    """A batch whose records have consecutive offsets from `base_offset`; checksum included.

    Raises:
        ValueError: no records.
        CompressionUnavailable: the codec's library is not installed.
    """
    if not records:
        raise ValueError("a batch needs a record")
    base_timestamp = records[0].timestamp
    max_timestamp = max(record.timestamp for record in records)
    body = _encode_body(records, base_timestamp)
    payload: Buffer = body
    if compression is not Compression.NONE:
        payload = compress(compression, body)
    attributes = (
        compression
        | (TIMESTAMP_TYPE_BIT if timestamp_type is TimestampType.LOG_APPEND_TIME else 0)
        | (TRANSACTIONAL_BIT if transactional else 0)
        | (CONTROL_BIT if control else 0)
    )
    header = BatchHeader(
        base_offset=base_offset,
        batch_length=HEADER_SIZE - OVERHEAD + len(payload),
        partition_leader_epoch=leader_epoch,
        magic=MAGIC,
        crc=0,
        attributes=attributes,
        last_offset_delta=len(records) - 1,
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        records_count=len(records),
    )
    batch = bytearray(HEADER.pack(*header))
    batch += payload
    HEADER.pack_into(batch, 0, *header._replace(crc=crc_of(batch)))
    return batch


def decode_records(batch: Buffer, *, max_bytes: int = 2**30) -> list[Record]:
    """The records of exactly one batch, with their offsets and timestamps. The CRC is not checked.

    `max_bytes` bounds what a compressed batch may unpack to.

    Raises:
        RecordsError: the batch does not hold what its header says.
        DecompressionFailed: its block is damaged or too large.
        CompressionUnavailable: the codec's library is not installed.
    """
    header = parse_header(batch)
    if header.size != len(batch):
        raise TruncatedBatch(f"batch of {header.size} bytes in {len(batch)}")
    if header.records_count < 0:
        raise InvalidBatch(f"{header.records_count} records")
    body = memoryview(batch)[HEADER_SIZE:]
    compression = header.compression
    data = (
        bytes(body)
        if compression is Compression.NONE
        else decompress(compression, body, max_bytes=max_bytes)
    )
    try:
        return _decode_body(header, data)
    except IndexError:
        raise InvalidBatch(f"{header.records_count} records in {len(data)} bytes") from None
    except DecodeError as error:
        raise InvalidBatch(str(error)) from error


_SMALLEST_RECORD = 7
"""Length, attributes, two deltas, key, value and header count, one byte each."""


def _decode_body(header: BatchHeader, data: bytes) -> list[Record]:
    if header.records_count * _SMALLEST_RECORD > len(data):
        raise InvalidBatch(f"{header.records_count} records in {len(data)} bytes")
    append_time = header.timestamp_type is TimestampType.LOG_APPEND_TIME
    base_offset, base_timestamp = header.base_offset, header.base_timestamp
    records: list[Record] = []
    append = records.append
    position, total = 0, len(data)
    previous_delta = -1
    for _ in range(header.records_count):
        length, position = decode_signed(data, position)
        end = position + length
        if length < 0 or end > total:
            raise InvalidBatch(f"record of {length} bytes at byte {position} of {total}")
        position += 1  # attributes, without meaning yet
        # Most numbers take one byte; reading those without a call halves the time.
        byte = data[position]
        if byte < 128:
            timestamp_delta = SIGNED_BYTE[byte]
            position += 1
        else:
            timestamp_delta, position = decode_signed(data, position)
        byte = data[position]
        if byte < 128:
            offset_delta = SIGNED_BYTE[byte]
            position += 1
        else:
            offset_delta, position = decode_signed(data, position)
        if not previous_delta < offset_delta <= header.last_offset_delta:
            raise InvalidBatch(
                f"offset delta {offset_delta} behind {previous_delta} "
                f"in a batch up to {header.last_offset_delta}"
            )
        previous_delta = offset_delta
        key, position = _decode_bytes(data, position, end)
        value, position = _decode_bytes(data, position, end)
        headers: Sequence[Header] = ()
        if data[position]:
            headers, position = _decode_headers(data, position, end)
        else:
            position += 1
        if position != end:
            raise InvalidBatch(f"record ends at byte {position}, its length says {end}")
        timestamp = header.max_timestamp if append_time else base_timestamp + timestamp_delta
        append(Record(key, value, headers, timestamp, base_offset + offset_delta))
    if position != total:
        raise InvalidBatch(f"{total - position} bytes behind {header.records_count} records")
    return records


def _decode_bytes(data: bytes, position: int, end: int) -> tuple[bytes | None, int]:
    byte = data[position]
    if byte < 128:
        length = SIGNED_BYTE[byte]
        position += 1
    else:
        length, position = decode_signed(data, position)
    if length < 0:
        if length != -1:
            raise InvalidBatch(f"length {length} at byte {position}")
        return None, position
    after = position + length
    if after > end:
        raise InvalidBatch(f"{length} bytes at byte {position} of a record that ends at {end}")
    return data[position:after], after


def _decode_headers(data: bytes, position: int, end: int) -> tuple[list[Header], int]:
    count, position = decode_signed(data, position)
    if not 0 <= count * 2 <= end - position:
        raise InvalidBatch(f"{count} headers in {end - position} bytes")
    headers: list[Header] = []
    for _ in range(count):
        key, position = _decode_bytes(data, position, end)
        value, position = _decode_bytes(data, position, end)
        if key is None:
            raise InvalidBatch("a header without a key")
        # Keys are text, but no broker checks it; Java replaces what is not UTF-8, and so do we.
        headers.append((key.decode(errors="replace"), value))
    return headers, position


def _encode_body(records: Sequence[Encodable], base_timestamp: int) -> bytes:
    """The parts of all records are joined once: whole batches of small ones are encoded here."""
    parts: list[bytes] = []
    delta, time, head = 0, _NOUGHT, _NOUGHT + _NOUGHT
    for offset_delta, record in enumerate(records):
        key, value, headers = record.key, record.value, record.headers
        if record.timestamp - base_timestamp != delta:
            delta = record.timestamp - base_timestamp
            time = encode_signed(delta)
            head = _NOUGHT + time  # attributes
        if key is None and value is not None and not headers and offset_delta < _TABLE:
            size = len(value)
            if size < _TABLE:
                # The most frequent record by far has fewer parts.
                offset, sized = _SIGNED[offset_delta], _KEYLESS[size]
                length = len(head) + len(offset) + len(sized) + size + 1
                encoded = _SIGNED[length] if length < _TABLE else encode_signed(length)
                parts += (encoded, head, offset, sized, value, _NOUGHT)
                continue
        offset = _SIGNED[offset_delta] if offset_delta < _TABLE else encode_signed(offset_delta)
        key_length = _NULL if key is None else encode_signed(len(key))
        if value is None:
            value_length, value = _NULL, b""
        else:
            size = len(value)
            value_length = _SIGNED[size] if size < _TABLE else encode_signed(size)
        tail = _encode_headers(headers) if headers else _NOUGHT
        key = key or b""
        length = (
            1  # attributes
            + len(time)
            + len(offset)
            + len(key_length)
            + len(key)
            + len(value_length)
            + len(value)
            + len(tail)
        )
        parts += (
            _SIGNED[length] if length < _TABLE else encode_signed(length),
            _NOUGHT,  # attributes
            time,
            offset,
            key_length,
            key,
            value_length,
            value,
            tail,
        )
    return b"".join(parts)


def _encode_headers(headers: Sequence[Header]) -> bytes:
    parts = [encode_signed(len(headers))]
    for name, content in headers:
        encoded = name.encode()
        parts += (encode_signed(len(encoded)), encoded)
        parts += (_NULL,) if content is None else (encode_signed(len(content)), content)
    return b"".join(parts)


_NULL = encode_signed(-1)
_NOUGHT = b"\0"
_TABLE = 1_024
_SIGNED = [encode_signed(value) for value in range(_TABLE)]
"""Everyday's lengths and offset deltas."""

_KEYLESS = [_NULL + length for length in _SIGNED]
"""No key, and the length of the value."""
