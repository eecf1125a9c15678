"""Which part of a log may be compacted now, and which log needs it most.

    log start      first dirty       end                active segment
        |--- clean ---|---- dirty ----|-- not yet --|---- never ----|

*Clean*: up to here every key has one record. The *end* lies at a segment's start, at or below

* the last stable offset: above it records may still be cut off or aborted;
* the first segment that is not on the device whole (RULES C2), the active one at the latest;
* the first dirty segment with a record younger than `min.compaction.lag.ms`.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....seam import frozen
from ..log_config import LogConfig
from ..segment import MAX_RELATIVE_OFFSET, Segment


@frozen
class LogEnds:
    """Of one log, at one moment."""

    log_start_offset: int
    log_end_offset: int
    last_stable_offset: int
    cleaned_offset: int | None
    """From the cleaner's checkpoint."""


@frozen
class Cleanable:
    """One log's part that a round may work on; `first_dirty_offset` < `end_offset`."""

    segments: tuple[Segment, ...]
    """From the log's first one up to the end."""
    first_dirty_offset: int
    end_offset: int
    clean_bytes: int
    dirty_bytes: int
    overdue: bool
    """A dirty record is older than `max.compaction.lag.ms`."""

    @property
    def dirty_ratio(self) -> float:
        return self.dirty_bytes / (self.clean_bytes + self.dirty_bytes)


def cleanable(
    segments: Sequence[Segment], ends: LogEnds, config: LogConfig, now_ms: int
) -> Cleanable | None:
    """None when there is nothing to do, or not yet. `segments`: those wholly on the device, without
    the active one."""
    if not segments:
        return None
    first_dirty = _first_dirty_offset(ends)
    bound = _bound(segments, ends, config, first_dirty, now_ms)
    below = [segment for segment in segments if segment.next_offset <= bound]
    if not below or below[-1].next_offset <= first_dirty:
        return None
    dirty = [segment for segment in below if segment.next_offset > first_dirty]
    clean_bytes = sum(segment.size for segment in below if segment.next_offset <= first_dirty)
    dirty_bytes = sum(segment.size for segment in dirty)
    if dirty_bytes == 0:
        return None
    found = Cleanable(
        tuple(below),
        first_dirty,
        below[-1].next_offset,
        clean_bytes,
        dirty_bytes,
        _overdue(dirty, config, now_ms),
    )
    if found.overdue or found.dirty_ratio > config.min_cleanable_dirty_ratio:
        return found
    return None


def _first_dirty_offset(ends: LogEnds) -> int:
    cleaned = ends.cleaned_offset
    # Above the end: the log has lost its tail, and what grew since is not what was cleaned.
    if cleaned is None or not ends.log_start_offset <= cleaned <= ends.log_end_offset:
        return ends.log_start_offset
    return cleaned


def _bound(
    segments: Sequence[Segment], ends: LogEnds, config: LogConfig, first_dirty: int, now_ms: int
) -> int:
    if config.min_compaction_lag_ms > 0:
        young_ms = now_ms - config.min_compaction_lag_ms
        for segment in segments:
            if segment.next_offset > first_dirty and segment.max_timestamp > young_ms:
                return min(ends.last_stable_offset, segment.base_offset)
    return ends.last_stable_offset


def _overdue(dirty: Sequence[Segment], config: LogConfig, now_ms: int) -> bool:
    times = [segment.first_timestamp for segment in dirty if segment.first_timestamp > 0]
    return min(times, default=now_ms) < now_ms - config.max_compaction_lag_ms


def grouped(segments: Sequence[Segment], config: LogConfig) -> list[list[Segment]]:
    """Neighbours that become one segment: together no larger than `segment.bytes`, within the reach
    of its indexes. So small leftovers do not pile up."""
    groups: list[list[Segment]] = []
    for segment in segments:
        if groups and _fits(groups[-1], segment, config):
            groups[-1].append(segment)
        else:
            groups.append([segment])
    return groups


def _fits(group: Sequence[Segment], segment: Segment, config: LogConfig) -> bool:
    together = [*group, segment]
    return (
        sum(member.size for member in together) <= config.segment_bytes
        and sum(_index_bytes(member) for member in together) <= config.segment_index_bytes
        and segment.next_offset - 1 - group[0].base_offset <= MAX_RELATIVE_OFFSET
    )


def _index_bytes(segment: Segment) -> int:
    return max(segment.offset_index.table.size_bytes, segment.time_index.table.size_bytes)
