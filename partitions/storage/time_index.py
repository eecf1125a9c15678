"""`.timeindex`: from which offset on a segment has seen a timestamp.

Entry: int64 largest timestamp so far in the segment, int32 last offset (less the base offset) of
the batch that brought it. Only rising timestamps are entered: below an entry nothing is newer.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from struct import Struct
from typing import NamedTuple

from .index_table import IndexDamaged, IndexTable
from .open_files import OpenFiles

ENTRY = Struct(">qi")
SUFFIX = ".timeindex"

NO_TIMESTAMP = -1


class TimestampOffset(NamedTuple):
    timestamp_ms: int
    offset: int


class TimeIndex:
    """Entries with rising timestamps and rising offsets."""

    __slots__ = ("_base_offset", "_last_ms", "_max_entries", "table")

    def __init__(self, table: IndexTable, base_offset: int, max_bytes: int) -> None:
        self.table = table
        self._base_offset = base_offset
        self._max_entries = max(1, max_bytes // ENTRY.size)
        self._last_ms: int | None = None
        """Timestamp of the last entry, once it was asked for."""

    @classmethod
    def new(cls, path: str, base_offset: int, max_bytes: int, files: OpenFiles) -> TimeIndex:
        return cls(IndexTable(path, ENTRY, files), base_offset, max_bytes)

    @classmethod
    def open(cls, path: str, base_offset: int, max_bytes: int, files: OpenFiles) -> TimeIndex:
        """From its file. Raises IndexDamaged."""
        index = cls(IndexTable.open(path, ENTRY, files), base_offset, max_bytes)
        if index.table.count:
            first_timestamp, first_offset = index.table[0]
            last_timestamp, last_offset = index.table[index.table.count - 1]
            if last_timestamp < first_timestamp:
                raise IndexDamaged(f"timestamps {first_timestamp} to {last_timestamp}")
            if not 0 <= first_offset <= last_offset:
                raise IndexDamaged(f"relative offsets {first_offset} to {last_offset}")
        return index

    @property
    def full(self) -> bool:
        """The last slot is kept for the entry at the roll."""
        return self.table.count >= self._max_entries - 1

    @property
    def last(self) -> TimestampOffset:
        """(NO_TIMESTAMP, base offset) while empty."""
        return self._entry_before(self.table.count)

    def maybe_append(self, timestamp_ms: int, offset: int) -> None:
        """Enter the largest timestamp so far, unless an entry says as much."""
        last_ms = self._last_ms
        if last_ms is None:
            last_ms = self._last_ms = self.last.timestamp_ms
        if timestamp_ms > last_ms:
            self.table.append(timestamp_ms, offset - self._base_offset)
            self._last_ms = timestamp_ms

    def lookup(self, timestamp_ms: int) -> TimestampOffset:
        """The greatest entry not above `timestamp_ms`: whatever is newer lies at or after it."""
        return self._entry_before(
            bisect_right(range(self.table.count), timestamp_ms, key=self._timestamp)
        )

    def lookup_offset(self, end_offset: int) -> TimestampOffset:
        """The last entry below `end_offset`: the largest timestamp up to there."""
        relative = end_offset - self._base_offset
        return self._entry_before(bisect_left(range(self.table.count), relative, key=self._offset))

    def _entry_before(self, number: int) -> TimestampOffset:
        if number == 0:
            return TimestampOffset(NO_TIMESTAMP, self._base_offset)
        timestamp_ms, relative = self.table[number - 1]
        return TimestampOffset(timestamp_ms, self._base_offset + relative)

    def _timestamp(self, number: int) -> int:
        return int(self.table[number][0])

    def _offset(self, number: int) -> int:
        return int(self.table[number][1])

    def truncate(self, end_offset: int) -> None:
        """Forget entries at or above `end_offset`."""
        relative = end_offset - self._base_offset
        self._last_ms = None
        self.table.truncate(bisect_left(range(self.table.count), relative, key=self._offset))
