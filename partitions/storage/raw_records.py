"""The records of a batch as spans of its bytes: what compaction and keys ask for, and nothing more.

Compaction asks each record for its key and whether it has a value, and copies it whole or leaves it
out. Headers and values are never unpacked, so whatever a producer wrote comes through byte for
byte. Only the timestamp delta may have to be written anew, since it counts from the batch's base
timestamp, and that changes when the first record goes or a delete horizon is set (KIP-534).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ...wire import DecodeError
from ...wire.records import InvalidBatch
from ...wire.varint import SIGNED_BYTE, decode_signed, encode_signed


class RawRecord(NamedTuple):
    """Positions are those in the batch's unpacked body."""

    key: bytes | None
    has_value: bool
    offset_delta: int
    timestamp_delta: int
    start: int
    content: int
    """Where the offset delta begins: from here on a record does not depend on the base time."""
    end: int


def read_records(body: bytes, position: int, count: int) -> list[RawRecord]:
    """The next `count` records from `position`; the last one's `end` is where to go on.

    Raises InvalidBatch.
    """
    try:
        return _read(body, position, count)
    except (IndexError, DecodeError) as error:
        raise InvalidBatch(f"records from byte {position} of {len(body)}: {error}") from None


def _read(body: bytes, position: int, count: int) -> list[RawRecord]:
    # One long function on purpose: every record of every dirty segment passes here, and small
    # numbers, which take one byte, are read without a call.
    records = []
    for _ in range(count):
        start = position
        length, position = decode_signed(body, position)
        end = position + length
        position += 1  # attributes, without meaning yet
        byte = body[position]
        if byte < 128:
            timestamp_delta = SIGNED_BYTE[byte]
            position += 1
        else:
            timestamp_delta, position = decode_signed(body, position)
        content = position
        byte = body[position]
        if byte < 128:
            offset_delta = SIGNED_BYTE[byte]
            position += 1
        else:
            offset_delta, position = decode_signed(body, position)
        byte = body[position]
        if byte < 128:
            key_length = SIGNED_BYTE[byte]
            position += 1
        else:
            key_length, position = decode_signed(body, position)
        key = None
        if key_length >= 0:
            key = body[position : position + key_length]
            position += key_length
        value_length, position = decode_signed(body, position)
        if not position <= end <= len(body) or value_length > end - position:
            raise InvalidBatch(f"record at byte {start} of {len(body)} ends at {end}")
        records.append(
            RawRecord(key, value_length >= 0, offset_delta, timestamp_delta, start, content, end)
        )
        position = end
    return records


def copy_records(body: bytes, records: Iterable[RawRecord], base_shift: int) -> bytearray:
    """The same records behind a base timestamp that is `base_shift` ms later than before."""
    copied = bytearray()
    if base_shift == 0:
        for record in records:
            copied += body[record.start : record.end]
        return copied
    for record in records:
        delta = encode_signed(record.timestamp_delta - base_shift)
        content = body[record.content : record.end]
        copied += encode_signed(1 + len(delta) + len(content))
        copied += b"\0"
        copied += delta
        copied += content
    return copied
