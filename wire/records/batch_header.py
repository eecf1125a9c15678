"""The 61 bytes in front of a batch's records.

    0  base offset             17  crc (of all from 21 on)     43  producer id
    8  batch length (from 12)  21  attributes                  51  producer epoch
    12 leader epoch            23  last offset delta           53  base sequence
    16 magic                   27  base timestamp              57  records count
                               35  max timestamp

What a broker assigns (base offset, leader epoch) lies before the checksum's range, so that it can
be written without computing the checksum anew.
"""

from __future__ import annotations

from enum import IntEnum
from struct import Struct as Format
from typing import NamedTuple

from ..buffers import Buffer
from ..compression import Compression
from .errors import BadMagic, InvalidBatch, TruncatedBatch

HEADER_SIZE = 61
OVERHEAD = 12
"""Bytes that `batch_length` does not count: base offset and the length itself."""
MAGIC = 2

NO_TIMESTAMP = -1
NO_PRODUCER_ID = -1
NO_EPOCH = -1
NO_SEQUENCE = -1

HEADER = Format(">qiibIhiqqqhii")

COMPRESSION_MASK = 0x07
TIMESTAMP_TYPE_BIT = 0x08
TRANSACTIONAL_BIT = 0x10
CONTROL_BIT = 0x20
DELETE_HORIZON_BIT = 0x40


class TimestampType(IntEnum):
    CREATE_TIME = 0
    LOG_APPEND_TIME = 1


class BatchHeader(NamedTuple):
    """The header's fields, in their order on the wire. Times are Unix milliseconds."""

    base_offset: int
    batch_length: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    records_count: int

    @property
    def size(self) -> int:
        """Bytes of the whole batch."""
        return self.batch_length + OVERHEAD

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def last_sequence(self) -> int:
        """Sequence of the last record; sequences go from 2**31 - 1 to 0."""
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return (self.base_sequence + self.last_offset_delta) & 0x7FFFFFFF

    @property
    def compression(self) -> Compression:
        """
        Raises:
            InvalidBatch: no such codec.
        """
        try:
            return Compression(self.attributes & COMPRESSION_MASK)
        except ValueError:
            raise InvalidBatch(f"compression {self.attributes & COMPRESSION_MASK}") from None

    @property
    def timestamp_type(self) -> TimestampType:
        return TimestampType(self.attributes >> 3 & 1)

    @property
    def is_transactional(self) -> bool:
        return self.attributes & TRANSACTIONAL_BIT != 0

    @property
    def is_control(self) -> bool:
        return self.attributes & CONTROL_BIT != 0

    @property
    def has_delete_horizon(self) -> bool:
        """`base_timestamp` is the time after which tombstones in the batch may go."""
        return self.attributes & DELETE_HORIZON_BIT != 0

    @property
    def has_producer_id(self) -> bool:
        return self.producer_id != NO_PRODUCER_ID


def parse_header(buffer: Buffer, position: int = 0) -> BatchHeader:
    """The header at `position`. Whether the batch's body follows is not looked at.

    Raises:
        TruncatedBatch: no room for a header, or a length below the smallest.
        BadMagic: another format than 2.
    """
    if len(buffer) - position < HEADER_SIZE:
        # Old formats have shorter headers; name them rightly when their magic can be seen.
        if len(buffer) - position > _MAGIC_POSITION and buffer[position + _MAGIC_POSITION] != MAGIC:
            raise BadMagic(f"magic {buffer[position + _MAGIC_POSITION]} at byte {position}")
        raise TruncatedBatch(f"{len(buffer) - position} bytes are no batch header")
    header = BatchHeader._make(HEADER.unpack_from(buffer, position))
    if header.magic != MAGIC:
        raise BadMagic(f"magic {header.magic} at byte {position}")
    if header.batch_length < HEADER_SIZE - OVERHEAD:
        raise TruncatedBatch(f"batch length {header.batch_length} at byte {position}")
    return header


_MAGIC_POSITION = 16
