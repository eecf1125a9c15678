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
    position: int
    end: int
    """Bytes [position, end) of what was scanned."""

    @property
    def name(self) -> tuple[int, int, int]:
        """What this batch is, whoever holds it."""
        return self.leader_epoch, self.crc, self.last_offset


def encode_batch(
    values: Sequence[bytes],
    *,
    timestamp_ms: int,
    producer_id: int = NO_PRODUCER,
    producer_epoch: int = -1,
    base_sequence: int = -1,
) -> bytes:
    """Records with these values, without keys."""
    records = b"".join(_record(number, value) for number, value in enumerate(values))
    body = _HEADER.pack(
        *(0, 0, -1, MAGIC, 0, 0, len(values) - 1, timestamp_ms, timestamp_ms),
        *(producer_id, producer_epoch, base_sequence, len(values)),
    )
    batch = bytearray(body + records)
    struct.pack_into(">i", batch, 8, len(batch) - LENGTH_ENDS_AT)
    struct.pack_into(">I", batch, 17, crc32c(bytes(batch[CRC_COVERS_FROM:])))
    return bytes(batch)


def _record(number: int, value: bytes) -> bytes:
    # Attributes, timestamp delta, offset delta, no key, the value, no headers.
    inner = b"\0\0" + _varint(number) + _varint(-1) + _varint(len(value)) + value + b"\0"
    return _varint(len(inner)) + inner


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
            position=position,
            end=end,
        )
        position = end


def values_of(data: bytes) -> list[tuple[int, bytes]]:
    """(offset, value) of every record in whole batches; a batch cut off at the end is left out.

    Raises Malformed for a batch whose checksum is wrong: a consumer must never be served one.
    """
    found: list[tuple[int, bytes]] = []
    end = 0
    for batch in scan(data):
        end = batch.end
        _, _, _, _, _, attributes, *_ = _HEADER.unpack_from(data, batch.position)
        if attributes & 0x20:
            continue  # A control batch holds markers, no records.
        count = _HEADER.unpack_from(data, batch.position)[12]
        position = batch.position + _HEADER.size
        for _ in range(count):
            offset_delta, value, position = _read_record(data, position)
            found.append((batch.base_offset + offset_delta, value))
    left = data[end:]
    if len(left) >= _HEADER.size:
        length = int(_HEADER.unpack_from(left)[1])
        if LENGTH_ENDS_AT + length <= len(left):
            raise Malformed(f"the batch behind byte {end} is damaged")
    return found


def _read_record(data: bytes, position: int) -> tuple[int, bytes, int]:
    length, position = _read_varint(data, position)
    end = position + length
    _, position = _read_varint(data, position + 1)
    offset_delta, position = _read_varint(data, position)
    key_length, position = _read_varint(data, position)
    position += max(0, key_length)
    value_length, position = _read_varint(data, position)
    return offset_delta, data[position : position + max(0, value_length)], end


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
