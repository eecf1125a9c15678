"""Record batches of magic 2: what producers send, consumers get, and disks hold."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from crc32c import crc32c

from .primitives import Malformed

_HEADER = struct.Struct(">qiibIhiqqqhii")
"""base offset, length, leader epoch, magic, crc, attributes, last offset delta, base timestamp,
max timestamp, producer id, producer epoch, base sequence, number of records."""

LENGTH_ENDS_AT = 12
CRC_COVERS_FROM = 21
MAGIC = 2
NO_PRODUCER = -1

VALUE_ENDS = b" "


def name_of(value: bytes) -> str:
    """What the history calls a record with this value; the rest is padding."""
    return value.partition(VALUE_ENDS)[0].decode()


def padded(name: str, size: int) -> bytes:
    """A value that the history calls so."""
    return name.encode() + VALUE_ENDS + b"." * (size - len(name))


class Batch(NamedTuple):
    """A batch as it stands in a log."""

    base_offset: int
    leader_epoch: int
    crc: int
    """Of all that the producer made: neither offset nor leader epoch is in it."""
    last_offset: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    max_timestamp_ms: int
    position: int
    end: int
    """Bytes [position, end) of what was scanned."""

    @property
    def name(self) -> tuple[int, int, int]:
        """What this batch is, whoever holds it."""
        return self.leader_epoch, self.crc, self.last_offset

    @property
    def size(self) -> int:
        return self.end - self.position


class Keyed(NamedTuple):
    """A record with a key: of one that is in a topic which is compacted."""

    key: str
    name: str
    """What the history calls it; a tombstone bears it in a header."""
    value: bytes | None
    """None: a tombstone."""


NAME_HEADER = b"name"

Shown = str | list[str | None]
"""What a history shows of a record: its name; of one with a key [key, name], and behind those null
when it is a tombstone."""


def shown(record: bytes | Keyed) -> Shown:
    if isinstance(record, bytes):
        return name_of(record)
    more = [None] if record.value is None else []
    return [record.key, record.name, *more]


def name_in(shown: Shown) -> str:
    return shown if isinstance(shown, str) else str(shown[1])


def encode_batch(
    values: Sequence[bytes | Keyed],
    *,
    timestamp_ms: int,
    producer_id: int = NO_PRODUCER,
    producer_epoch: int = -1,
    base_sequence: int = -1,
) -> bytes:
    """Records with these values; without keys, unless they are `Keyed`."""
    records = b"".join(_record(number, value) for number, value in enumerate(values))
    body = _HEADER.pack(
        *(0, 0, -1, MAGIC, 0, 0, len(values) - 1, timestamp_ms, timestamp_ms),
        *(producer_id, producer_epoch, base_sequence, len(values)),
    )
    batch = bytearray(body + records)
    struct.pack_into(">i", batch, 8, len(batch) - LENGTH_ENDS_AT)
    struct.pack_into(">I", batch, 17, crc32c(bytes(batch[CRC_COVERS_FROM:])))
    return bytes(batch)


def _record(number: int, record: bytes | Keyed) -> bytes:
    key, value = (
        (record.key.encode(), record.value) if isinstance(record, Keyed) else (None, record)
    )
    headers = b"\0"
    if isinstance(record, Keyed) and value is None:
        headers = b"\2" + _blob(NAME_HEADER) + _blob(record.name.encode())
    # Attributes, timestamp delta, offset delta.
    inner = b"\0\0" + _varint(number) + _blob(key) + _blob(value) + headers
    return _varint(len(inner)) + inner


def _blob(data: bytes | None) -> bytes:
    return _varint(-1) if data is None else _varint(len(data)) + data


def scan(data: bytes | bytearray, position: int = 0) -> Iterator[Batch]:
    """Whole batches with good checksums, up to the first place where there is none."""
    while len(data) - position >= _HEADER.size:
        fields = _HEADER.unpack_from(data, position)
        end = position + LENGTH_ENDS_AT + fields[1]
        if fields[3] != MAGIC or fields[1] < _HEADER.size - LENGTH_ENDS_AT or end > len(data):
            return
        if crc32c(bytes(data[position + CRC_COVERS_FROM : end])) != fields[4]:
            return
        yield Batch(
            base_offset=fields[0],
            leader_epoch=fields[2],
            crc=fields[4],
            last_offset=fields[0] + fields[6],
            producer_id=fields[9],
            producer_epoch=fields[10],
            base_sequence=fields[11],
            max_timestamp_ms=fields[8],
            position=position,
            end=end,
        )
        position = end


def values_of(data: bytes) -> list[tuple[int, bytes]]:
    """(offset, value) of every record in whole batches; a batch cut off at the end is left out.

    Raises Malformed for a batch whose checksum is wrong: a consumer must never be served one.
    """
    return [(offset, value or b"") for offset, _, value, _ in _records_of(data)]


def keyed_of(data: bytes) -> list[tuple[int, Keyed]]:
    """(offset, record) of the same, where every record has a key. Raises Malformed."""
    found = []
    for offset, key, value, name in _records_of(data):
        if key is None:
            raise Malformed(f"the record at offset {offset} has no key")
        shown = name.decode() if value is None else name_of(value)
        found.append((offset, Keyed(key.decode(), shown, value)))
    return found


class Lineage(NamedTuple):
    """Up to where a log was read, and in which leader epoch its last batch there was written."""

    offset: int
    leader_epoch: int


def end_of(data: bytes) -> Lineage | None:
    """Behind the last whole batch; it may have had records that are no more."""
    return max((Lineage(b.last_offset + 1, b.leader_epoch) for b in scan(data)), default=None)


def _records_of(data: bytes) -> Iterator[tuple[int, bytes | None, bytes | None, bytes]]:
    """(offset, key, value, name in a header)."""
    end = 0
    for batch in scan(data):
        end = batch.end
        _, _, _, _, _, attributes, *_ = _HEADER.unpack_from(data, batch.position)
        if attributes & 0x20:
            continue  # A control batch holds markers, no records.
        count = _HEADER.unpack_from(data, batch.position)[12]
        position = batch.position + _HEADER.size
        for _ in range(count):
            offset_delta, key, value, name, position = _read_record(data, position)
            yield batch.base_offset + offset_delta, key, value, name
    left = data[end:]
    if len(left) >= _HEADER.size:
        length = int(_HEADER.unpack_from(left)[1])
        if LENGTH_ENDS_AT + length <= len(left):
            raise Malformed(f"the batch behind byte {end} is damaged")


def _read_record(data: bytes, position: int) -> tuple[int, bytes | None, bytes | None, bytes, int]:
    length, position = _read_varint(data, position)
    end = position + length
    _, position = _read_varint(data, position + 1)
    offset_delta, position = _read_varint(data, position)
    key, position = _read_blob(data, position)
    value, position = _read_blob(data, position)
    headers, position = _read_varint(data, position)
    name = b""
    for _ in range(headers):
        header, position = _read_blob(data, position)
        content, position = _read_blob(data, position)
        if header == NAME_HEADER:
            name = content or b""
    return offset_delta, key, value, name, end


def _read_blob(data: bytes, position: int) -> tuple[bytes | None, int]:
    size, position = _read_varint(data, position)
    return (None, position) if size < 0 else (data[position : position + size], position + size)


def _varint(value: int) -> bytes:
    left = (value << 1) ^ (value >> 63)
    out = bytearray()
    while left >= 0x80:
        out.append(left & 0x7F | 0x80)
        left >>= 7
    out.append(left)
    return bytes(out)


def _read_varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), position
        shift += 7
