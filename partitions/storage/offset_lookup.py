"""Offsets by time (ListOffsets, KIP-79, KIP-734): index, short walk, then the records of one batch.

A batch is unpacked only when its header says that the record may be inside. Both lookups ignore
what lies below the log start or at and above `upper_bound`.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...wire.records import NO_EPOCH, NO_TIMESTAMP, Record, decode_records
from .batch_scan import PlacedBatch
from .damaged_ranges import DamagedRanges
from .segment import Segment
from .values import FoundOffset


def find_by_timestamp(
    segments: Sequence[Segment],
    timestamp_ms: int,
    *,
    log_start_offset: int,
    upper_bound: int,
    damaged: DamagedRanges | None = None,
) -> FoundOffset | None:
    """The first record whose timestamp is not below `timestamp_ms`; or what was `damaged` right
    before it, where nobody knows how old the records were."""
    found = _first_not_older(segments, timestamp_ms, log_start_offset, upper_bound)
    if not damaged:
        return found
    end_offset = upper_bound if found is None else found.offset
    before = damaged.last_ended_by(end_offset)
    if before is None or before.next_offset <= log_start_offset:
        return found
    if _first_not_older(segments, NO_TIMESTAMP, before.next_offset, end_offset) is not None:
        return found  # One behind it is too old; so, as everywhere here, are those before.
    offset = max(before.first_offset, log_start_offset)
    return FoundOffset(offset, timestamp_ms, NO_EPOCH)


def _first_not_older(
    segments: Sequence[Segment], timestamp_ms: int, log_start_offset: int, upper_bound: int
) -> FoundOffset | None:
    for segment in segments:
        if segment.next_offset <= log_start_offset or segment.max_timestamp < timestamp_ms:
            continue
        if segment.base_offset >= upper_bound:
            return None
        # Below the entry's offset nothing is as new, so the walk may begin there.
        first = max(segment.time_index.lookup(timestamp_ms).offset, log_start_offset)
        for batch in segment.walk_tested(segment.offset_index.lookup(first).position):
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
    best: FoundOffset | None = None
    for segment, promised_ms in _newest_first(segments, log_start_offset, upper_bound):
        if best is not None and promised_ms <= best.timestamp_ms:
            break
        found = _first_not_older(
            [segment], promised_ms, log_start_offset, upper_bound
        ) or _newest_record(segment, log_start_offset, upper_bound)
        if found is not None and (best is None or found.timestamp_ms > best.timestamp_ms):
            best = found
    return best


def _newest_record(segment: Segment, log_start_offset: int, upper_bound: int) -> FoundOffset | None:
    """One by one, where headers promise more than there is: compaction took the newest record, and
    left its batch's header as it was."""
    best: FoundOffset | None = None
    for batch in segment.walk_tested(segment.offset_index.lookup(log_start_offset).position):
        if batch.header.base_offset >= upper_bound:
            break
        if best is not None and batch.header.max_timestamp <= best.timestamp_ms:
            continue
        for record in _records(segment, batch):
            in_range = log_start_offset <= record.offset < upper_bound
            newer = record.timestamp > (NO_TIMESTAMP if best is None else best.timestamp_ms)
            if in_range and newer:
                best = _found(record, batch)
    return best


def _newest_first(
    segments: Sequence[Segment], log_start_offset: int, upper_bound: int
) -> list[tuple[Segment, int]]:
    """Segments with the largest timestamp each has in range, the largest first, then in order."""
    candidates = []
    for segment in segments:
        newest = segment.max_timestamp
        if newest != NO_TIMESTAMP and not (
            log_start_offset <= segment.offset_of_max_timestamp < upper_bound
        ):
            newest = _newest_between(segment, log_start_offset, upper_bound)
        if newest != NO_TIMESTAMP:
            candidates.append((segment, newest))
    return sorted(candidates, key=lambda candidate: -candidate[1])


def _newest_between(segment: Segment, log_start_offset: int, upper_bound: int) -> int:
    """The largest timestamp that headers promise there. Entries of the time index tell it for all
    before them, so that only what follows the last one below the bound is walked."""
    known = segment.time_index.lookup_offset(upper_bound)
    newest, first = known.timestamp_ms, known.offset
    if newest == NO_TIMESTAMP or known.offset < log_start_offset:
        newest, first = NO_TIMESTAMP, log_start_offset
    for batch in segment.walk_tested(segment.offset_index.lookup(first).position):
        if batch.header.next_offset > upper_bound:
            break
        if batch.header.last_offset >= log_start_offset:
            newest = max(newest, batch.header.max_timestamp)
    return newest


def _records(segment: Segment, batch: PlacedBatch) -> list[Record]:
    data = segment.read_batch(batch)  # First of all, for it tests what the header says.
    return decode_records(data) if batch.header.records_count else []  # Emptied by compaction.


def _found(record: Record, batch: PlacedBatch) -> FoundOffset:
    return FoundOffset(record.offset, record.timestamp, batch.header.partition_leader_epoch)
