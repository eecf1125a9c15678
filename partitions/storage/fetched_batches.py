"""What a follower tests about the batches that its leader sent, before it appends them."""

from __future__ import annotations

from ...seam import Buffer
from ...seam.checksum import crc32c
from ...wire.records import HEADER_SIZE, OVERHEAD, BatchHeader, RecordsError, parse_header
from .batch_scan import CRC_FROM
from .errors import CorruptBatch, OffsetGap


def fetched_batches(
    records: Buffer, *, expected: int, compacts: bool, committed: int
) -> list[BatchHeader]:
    """The headers of the whole batches in `records`; one that is cut off at the end is left out.

    `expected`: the offset at which the first one begins. Compaction leaves gaps in a leader's log,
    nothing else does: anywhere while the topic `compacts`, and as far as `committed` (the leader's
    watermark) in one that may have done so before.

    Raises CorruptBatch or OffsetGap.
    """
    headers: list[BatchHeader] = []
    view = memoryview(records)
    position = 0
    while len(view) - position >= HEADER_SIZE:
        try:
            header = parse_header(view, position)
        except RecordsError as error:
            raise CorruptBatch(f"behind offset {expected - 1}: {error}") from None
        after = position + header.batch_length + OVERHEAD
        if after > len(view):
            break
        if crc32c(view[position + CRC_FROM : after]) != header.crc:
            raise CorruptBatch(f"checksum of the batch at offset {header.base_offset}")
        if header.last_offset_delta < 0:
            raise CorruptBatch(f"batch at {header.base_offset} ends at {header.last_offset}")
        gap_allowed = compacts or header.base_offset <= committed
        if header.base_offset < expected or (header.base_offset > expected and not gap_allowed):
            raise OffsetGap(expected=expected, found=header.base_offset)
        headers.append(header)
        position, expected = after, header.next_offset
    return headers
