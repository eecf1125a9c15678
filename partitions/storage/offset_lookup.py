"""Offsets by time (ListOffsets, KIP-79, KIP-734): index, short walk, then the records of one batch.

A batch is unpacked only when its header says that the record may be inside. Both lookups ignore
what lies below the log start or at and above `upper_bound`.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...wire.records import NO_TIMESTAMP, Record, decode_records
from .batch_scan import PlacedBatch
from .segment import Segment
from .values import FoundOffset


def find_by_timestamp(
    segments: Sequence[Segment], timestamp_ms: int, *, log_start_offset: int, upper_bound: int
) -> FoundOffset | None:
    """The first record whose timestamp is not below `timestamp_ms`."""
    for segment in segments:
        if segment.next_offset <= log_start_offset or segment.max_timestamp < timestamp_ms:
            continue
        if segment.base_offset >= upper_bound:
            return None
        # Below the entry's offset nothing is as new, so the walk may begin there.
        first = max(segment.time_index.lookup(timestamp_ms).offset, log_start_offset)
        for batch in segment.scan(segment.offset_index.lookup(first).position):
            if batch.header.base_offset >= upper_bound:
                return None
            if batch.header.max_timestamp < timestamp_ms:
                continue
            for record in _records(segment, batch):
                if record.timestamp >= timestamp_ms and record.offset >= log_start_offset:
                    return _found(record, batch) if record.offset < upper_bound else None
    return None


def find_max_timestamp(
    segments: Sequence[Segment], *, log_start_offset: int, upper_bound: int
) -> FoundOffset | None:
    """The first record that bears the largest timestamp; None when no record bears one."""
    for segment, timestamp_ms in _newest_first(segments, log_start_offset, upper_bound):
        found = find_by_timestamp(
            [segment], timestamp_ms, log_start_offset=log_start_offset, upper_bound=upper_bound
        )
        if found is not None:
            return found
    return None


def _newest_first(
    segments: Sequence[Segment], log_start_offset: int, upper_bound: int
) -> list[tuple[Segment, int]]:
    """Segments with the largest timestamp each has in range, the largest first, then in order."""
    candidates = []
    for segment in segments:
        newest = segment.max_timestamp
        cut = segment.next_offset > upper_bound or segment.base_offset < log_start_offset
        if cut and newest != NO_TIMESTAMP:
            newest = max(
                (
                    header.max_timestamp
                    for _, header, _ in segment.scan()
                    if header.next_offset <= upper_bound and header.last_offset >= log_start_offset
                ),
                default=NO_TIMESTAMP,
            )
        if newest != NO_TIMESTAMP:
            candidates.append((segment, newest))
    return sorted(candidates, key=lambda candidate: -candidate[1])


def _records(segment: Segment, batch: PlacedBatch) -> list[Record]:
    return decode_records(segment.read_batch(batch))


def _found(record: Record, batch: PlacedBatch) -> FoundOffset:
    return FoundOffset(record.offset, record.timestamp, batch.header.partition_leader_epoch)
