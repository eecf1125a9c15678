"""Fixed-size entries of an index file: in memory while its segment grows, on disk once sealed.

The growing index is not written as it grows: it is derived from the log, so a crash loses nothing
that a scan of the segment does not give back, and appends cost no second file. It is written whole
when the segment is sealed or the log closed. A sealed one is searched on disk, so that its memory
belongs to the page cache.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import Any

from ...seam import Buffer
from .open_files import OpenFiles


class IndexDamaged(Exception):
    """The file cannot be what it claims to be: rebuild it from the log."""


class IndexTable:
    """Entries of one `Struct`, by number."""

    __slots__ = ("_entry", "_files", "_memory", "count", "path")

    def __init__(self, path: str, entry: Struct, files: OpenFiles) -> None:
        """An empty table in memory; see `open` for one on disk."""
        self.path = path
        self._entry = entry
        self._files = files
        self._memory: bytearray | None = bytearray()
        self.count = 0

    @classmethod
    def open(cls, path: str, entry: Struct, files: OpenFiles) -> IndexTable:
        """A table on disk. Raises IndexDamaged when missing or no whole number of entries."""
        try:
            size = files.get(path).size()
        except FileNotFoundError:
            raise IndexDamaged("missing") from None
        if size % entry.size:
            raise IndexDamaged(f"{size} bytes are no whole number of {entry.size}-byte entries")
        table = cls(path, entry, files)
        table._memory = None
        table.count = size // entry.size
        return table

    @property
    def size_bytes(self) -> int:
        return self.count * self._entry.size

    def __getitem__(self, number: int) -> tuple[Any, ...]:
        position = number * self._entry.size
        if self._memory is not None:
            return self._entry.unpack_from(self._memory, position)
        return self._entry.unpack(self._files.get(self.path).read_at(position, self._entry.size))

    def entries(self) -> Iterator[tuple[Any, ...]]:
        """All, in order, with one read where they are on disk."""
        if self._memory is not None:
            data: Buffer = bytes(self._memory)
        else:
            data = self._files.get(self.path).read_at(0, self.count * self._entry.size)
        return self._entry.iter_unpack(data)

    def append(self, *fields: int) -> None:
        self._thawed().extend(self._entry.pack(*fields))
        self.count += 1

    def truncate(self, count: int) -> None:
        """Keep the first `count` entries, in memory; the file follows at the next `write`."""
        if count < self.count:
            del self._thawed()[count * self._entry.size :]
            self.count = count

    def thaw(self) -> None:
        """Take the entries into memory: the segment grows again."""
        self._thawed()

    def _thawed(self) -> bytearray:
        if self._memory is None:
            size = self.count * self._entry.size
            self._memory = bytearray(self._files.get(self.path).read_at(0, size))
        return self._memory

    def write(self) -> None:
        """Put the entries into the file, not synced yet; they stay in memory until `freeze`."""
        self._files.create(self.path).append([self._thawed()])

    def freeze(self) -> None:
        """The file holds all (written and synced): search it there from now on."""
        self._memory = None
