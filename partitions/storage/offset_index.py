"""`.index`: where in the `.log` file a batch lies. Sparse: one entry per index.interval.bytes.

Entry: int32 last offset of a batch less the segment's base offset, int32 position of that batch.
"""

from __future__ import annotations

from bisect import bisect_right
from struct import Struct
from typing import NamedTuple

from .index_table import IndexDamaged, IndexTable
from .open_files import OpenFiles

ENTRY = Struct(">ii")
SUFFIX = ".index"


class OffsetPosition(NamedTuple):
    last_offset: int
    """Of the batch at `position`; the base offset where no entry was found."""
    position: int


class OffsetIndex:
    """Entries with rising offsets and rising positions."""

    __slots__ = ("_base_offset", "_max_entries", "table")

    def __init__(self, table: IndexTable, base_offset: int, max_bytes: int) -> None:
        self.table = table
        self._base_offset = base_offset
        self._max_entries = max(1, max_bytes // ENTRY.size)

    @classmethod
    def new(cls, path: str, base_offset: int, max_bytes: int, files: OpenFiles) -> OffsetIndex:
        return cls(IndexTable(path, ENTRY, files), base_offset, max_bytes)

    @classmethod
    def open(
        cls, path: str, base_offset: int, max_bytes: int, files: OpenFiles, *, log_size: int
    ) -> OffsetIndex:
        """From its file, checked against the size of the log. Raises IndexDamaged."""
        index = cls(IndexTable.open(path, ENTRY, files), base_offset, max_bytes)
        if index.table.count:
            first_offset, first_position = index.table[0]
            last_offset, last_position = index.table[index.table.count - 1]
            if not 0 <= first_offset <= last_offset:
                raise IndexDamaged(f"relative offsets {first_offset} to {last_offset}")
            if not 0 <= first_position <= last_position < log_size:
                raise IndexDamaged(f"positions {first_position} to {last_position} of {log_size}")
        return index

    @property
    def full(self) -> bool:
        return self.table.count >= self._max_entries

    def append(self, last_offset: int, position: int) -> None:
        self.table.append(last_offset - self._base_offset, position)

    def lookup(self, offset: int) -> OffsetPosition:
        """The greatest entry whose last offset is not above `offset`; else the segment's start."""
        relative = offset - self._base_offset
        return self._entry_before(bisect_right(range(self.table.count), relative, key=self._offset))

    def lookup_position(self, position: int) -> OffsetPosition:
        """The greatest entry that lies at or before `position`; else the segment's start."""
        return self._entry_before(
            bisect_right(range(self.table.count), position, key=self._position)
        )

    def _entry_before(self, number: int) -> OffsetPosition:
        if number == 0:
            return OffsetPosition(self._base_offset, 0)
        relative, position = self.table[number - 1]
        return OffsetPosition(self._base_offset + relative, position)

    def _offset(self, number: int) -> int:
        return int(self.table[number][0])

    def _position(self, number: int) -> int:
        return int(self.table[number][1])

    def truncate(self, position: int) -> None:
        """Forget entries of batches at or beyond `position`."""
        after = bisect_right(range(self.table.count), position - 1, key=self._position)
        self.table.truncate(after)
