"""Offsets whose records were damaged on the only replica that had them.

What was set aside (`set_aside`) is a file beside the segments, whose name says which offsets are
lost and whose bytes are those that were found there:

    00000000000000000412-00000000000000000415.damaged     offsets 412, 413 and 414

The name is the note: while the file is there, whoever asks for these offsets is refused, and nobody
who reads from below is led past them. A person who removes it, while the node is stopped, accepts
the loss. It goes by itself when the records around it have gone.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from .errors import RecordsDamaged

SUFFIX = ".damaged"


class DamagedRange(NamedTuple):
    first_offset: int
    next_offset: int

    @property
    def file_name(self) -> str:
        return f"{self.first_offset:020d}-{self.next_offset:020d}{SUFFIX}"

    @classmethod
    def of_file(cls, name: str) -> DamagedRange | None:
        """None: the file is none of ours."""
        stem, dot, suffix = name.rpartition(".")
        first, _, after = stem.partition("-")
        if dot + suffix != SUFFIX or not first.isdecimal() or not after.isdecimal():
            return None
        found = cls(int(first), int(after))
        return found if found.first_offset < found.next_offset else None


class DamagedRanges:
    """Of one log, by first offset. They may overlap: a crash while damage was set aside may leave
    two that tell of the same."""

    __slots__ = ("_ranges",)

    def __init__(self, ranges: Iterable[DamagedRange] = ()) -> None:
        self._ranges = sorted(ranges)

    @classmethod
    def of_files(cls, names: Iterable[str]) -> DamagedRanges:
        return cls(found for name in names if (found := DamagedRange.of_file(name)) is not None)

    def __iter__(self) -> Iterator[DamagedRange]:
        return iter(self._ranges)

    def __len__(self) -> int:
        return len(self._ranges)

    def check(self, offset: int) -> None:
        """Raises RecordsDamaged when `offset` is in one of them."""
        for found in self._ranges:
            if found.first_offset <= offset < found.next_offset:
                raise RecordsDamaged(found)

    def first_above(self, offset: int) -> DamagedRange | None:
        """The next one, for a reader who is at `offset`, in none of them."""
        number = bisect_left(self._ranges, (offset, 0))
        return self._ranges[number] if number < len(self._ranges) else None

    def last_ended_by(self, offset: int) -> DamagedRange | None:
        """The one that ends last among those that end at `offset` or below."""
        ended = [found for found in self._ranges if found.next_offset <= offset]
        return max(ended, key=_next_offset, default=None)

    def forget_outside(self, start_offset: int, end_offset: int) -> list[DamagedRange]:
        """Those that do not lie in a log that begins and ends there are gone; returned."""
        gone = [
            found
            for found in self._ranges
            if found.next_offset <= start_offset or found.next_offset > end_offset
        ]
        self._ranges = [found for found in self._ranges if found not in gone]
        return gone


def _next_offset(found: DamagedRange) -> int:
    return found.next_offset
