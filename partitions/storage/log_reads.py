"""What is asked of the segments of a log. Whoever meets damage in them tells the log."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from .damaged_ranges import DamagedRanges
from .errors import BatchDamaged, StorageFailed
from .offset_lookup import find_by_timestamp, find_max_timestamp
from .segment_list import SegmentList
from .transaction_index import AbortedTransaction, aborted_in
from .values import FoundOffset, LogRead


class LogReads:
    """Of one log. Everything below the bounds that it is asked with must be written."""

    __slots__ = ("_name", "_note_damage", "_ranges", "_segments")

    def __init__(
        self,
        segments: SegmentList,
        ranges: DamagedRanges,
        *,
        note_damage: Callable[[BatchDamaged], StorageFailed],
        name: str,
    ) -> None:
        """`note_damage`: returns what to raise."""
        self._segments = segments
        self._ranges = ranges
        self._note_damage = note_damage
        self._name = name

    def read(self, offset: int, *, max_bytes: int, upper_bound: int, at_least_one: bool) -> LogRead:
        """As `PartitionLog.read`, for an offset within the log."""
        if offset >= upper_bound or (max_bytes <= 0 and not at_least_one):
            return LogRead(next_offset=offset)
        self._ranges.check(offset)
        damaged = self._ranges.first_above(offset)
        if damaged is not None and damaged.first_offset < upper_bound:
            upper_bound = damaged.first_offset
        found = self._read_below(
            upper_bound, offset, max_bytes=max_bytes, at_least_one=at_least_one
        )
        if at_least_one and not found.size and damaged is not None:
            # Compaction took all that was left before it.
            self._ranges.check(upper_bound)
        return found

    def _read_below(
        self, upper_bound: int, offset: int, *, max_bytes: int, at_least_one: bool
    ) -> LogRead:
        with self._reading():
            for segment in self._segments.since(offset):
                found = segment.read(
                    offset, max_bytes=max_bytes, upper_bound=upper_bound, at_least_one=at_least_one
                )
                if found is not None:
                    return found
        return LogRead(next_offset=offset)

    def by_timestamp(
        self, timestamp_ms: int, *, log_start_offset: int, upper_bound: int
    ) -> FoundOffset | None:
        with self._reading():
            return find_by_timestamp(
                self._segments.all,
                timestamp_ms,
                log_start_offset=log_start_offset,
                upper_bound=upper_bound,
                damaged=self._ranges,
            )

    def by_max_timestamp(self, *, log_start_offset: int, upper_bound: int) -> FoundOffset | None:
        with self._reading():
            return find_max_timestamp(
                self._segments.all, log_start_offset=log_start_offset, upper_bound=upper_bound
            )

    def aborted_transactions(self, start_offset: int, end_offset: int) -> list[AbortedTransaction]:
        if start_offset >= end_offset:
            return []
        segments = self._segments.since(start_offset)
        return aborted_in((segment.transactions for segment in segments), start_offset, end_offset)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except BatchDamaged as damaged:
            raise self._note_damage(damaged) from None
        except OSError as error:
            raise StorageFailed(f"{self._name} cannot be read: {error}") from error
