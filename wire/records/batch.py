"""Whole batches in a buffer: walking over them, checking, and writing what a broker assigns."""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct as Format
from typing import NamedTuple

from ...seam.checksum import crc32c
from ..buffers import Buffer
from .batch_header import (
    COMPRESSION_MASK,
    CONTROL_BIT,
    HEADER_SIZE,
    NO_PRODUCER_ID,
    OVERHEAD,
    TIMESTAMP_TYPE_BIT,
    BatchHeader,
    parse_header,
)
from .errors import BadCrc, InvalidBatch, TruncatedBatch


class Batch(NamedTuple):
    """One batch inside a larger buffer."""

    header: BatchHeader
    position: int
    """Where it starts in the buffer."""
    view: memoryview
    """Its bytes, header included; shares the buffer's memory."""


def batches(buffer: Buffer, *, partial_tail: bool = False) -> Iterator[Batch]:
    """The batches that stand in `buffer` one behind the other. Their CRCs are not checked.

    With `partial_tail` a batch cut off by the buffer's end is left out silently: fetch responses
    may end so.

    Raises:
        TruncatedBatch: the buffer ends inside a batch, or a length is impossible.
        BadMagic: something in another format.
    """
    view = memoryview(buffer)
    position, end = 0, len(view)
    while position < end:
        if partial_tail and end - position < HEADER_SIZE:
            return
        header = parse_header(view, position)
        after = position + header.batch_length + OVERHEAD
        if after > end:
            if partial_tail:
                return
            raise TruncatedBatch(
                f"batch of {header.size} bytes at byte {position} of a buffer of {end}"
            )
        yield Batch(header, position, view[position:after])
        position = after


def crc_of(batch: Buffer) -> int:
    """The checksum that the header of this batch should hold; `batch` is exactly one batch."""
    checksum: int = crc32c(memoryview(batch)[_CRC_STARTS:])
    return checksum


def check_crc(batch: Batch) -> None:
    """
    Raises:
        BadCrc: it does not match.
    """
    checksum = crc32c(batch.view[_CRC_STARTS:])
    if checksum != batch.header.crc:
        raise BadCrc(
            f"batch at offset {batch.header.base_offset}: crc {checksum:#010x}, "
            f"its header says {batch.header.crc:#010x}"
        )


def check_from_client(header: BatchHeader) -> None:
    """What a broker demands of a batch that a producer sends, as far as the header tells.

    Raises:
        InvalidBatch: count and offset range differ or are not positive, an unknown codec, a control
            batch, or a producer id without a sequence.
    """
    if header.records_count <= 0 or header.last_offset_delta != header.records_count - 1:
        raise InvalidBatch(
            f"{header.records_count} records, but a last offset delta of {header.last_offset_delta}"
        )
    attributes = header.attributes
    if attributes & CONTROL_BIT:
        raise InvalidBatch("a control batch from a client")
    if header.producer_id != NO_PRODUCER_ID and (
        header.base_sequence < 0 or header.producer_epoch < 0
    ):
        raise InvalidBatch(
            f"producer id {header.producer_id} with epoch {header.producer_epoch} "
            f"and sequence {header.base_sequence}"
        )
    if attributes & COMPRESSION_MASK:
        _ = header.compression


def assign_offsets(
    batch: bytearray | memoryview, header: BatchHeader, *, base_offset: int, leader_epoch: int
) -> None:
    """Writes what the leader assigns. Both fields lie outside the checksum, which stays valid.

    `batch` is writable and starts with the batch that `header` was parsed from.
    """
    _ASSIGNED.pack_into(batch, 0, base_offset, header.batch_length, leader_epoch)


def assign_append_time(
    batch: bytearray | memoryview, header: BatchHeader, *, now_ms: int
) -> BatchHeader:
    """Marks the batch as LogAppendTime at `now_ms` and renews its checksum, which covers both the
    attributes and the largest timestamp. Records keep their deltas; readers ignore them.

    `batch` is writable and exactly the batch that `header` was parsed from. Returns its new header.
    """
    attributes = header.attributes | TIMESTAMP_TYPE_BIT
    _ATTRIBUTES.pack_into(batch, _CRC_STARTS, attributes)
    _INT64.pack_into(batch, _MAX_TIMESTAMP, now_ms)
    crc = crc_of(batch)
    _CRC.pack_into(batch, _CRC_STARTS - 4, crc)
    return header._replace(attributes=attributes, max_timestamp=now_ms, crc=crc)


def writable(buffer: Buffer) -> memoryview:
    """The buffer itself where it may be written to, else a copy."""
    view = memoryview(buffer)
    return memoryview(bytearray(view)) if view.readonly else view


_CRC_STARTS = 21
_MAX_TIMESTAMP = 35
_ASSIGNED = Format(">qii")
_ATTRIBUTES = Format(">h")
_INT64 = Format(">q")
_CRC = Format(">I")
