"""The segments of one log, in the order of their offsets."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from .segment import Segment


class SegmentList:
    """At least one; the last one is appended to."""

    __slots__ = ("all", "bases", "parked", "unsynced")

    def __init__(self, segments: Sequence[Segment], *, parked: Sequence[int] = ()) -> None:
        self.all: Sequence[Segment] = ()
        self.bases: Sequence[int] = ()
        """Their base offsets."""
        self.unsynced: list[Segment] = []
        """Rolled, and not on the device whole yet: the newest before the active one."""
        self.parked = list(parked)
        """Base offsets of those behind damage: they are no part of the log, and wait to be removed,
        the newest first."""
        self.use(segments)

    def use(self, segments: Sequence[Segment]) -> None:
        """These from now on. Whoever walks over the old ones goes on."""
        self.all = segments
        self.bases = [segment.base_offset for segment in segments]

    @property
    def active(self) -> Segment:
        return self.all[-1]

    @property
    def synced(self) -> tuple[Segment, ...]:
        """Those before the active one that are on the device whole, indexes included."""
        return tuple(self.all[: len(self.all) - 1 - len(self.unsynced)])

    @property
    def size_bytes(self) -> int:
        return sum(segment.size for segment in self.all)

    def number_at(self, offset: int) -> int:
        """Of the one that holds `offset`, if any does; -1 below all of them."""
        return bisect_right(self.bases, offset) - 1

    def since(self, offset: int) -> Sequence[Segment]:
        """Those that hold offsets at or above it."""
        return self.all[max(0, self.number_at(offset)) :]

    def holds(self, segment: Segment) -> bool:
        """Not deleted, replaced or cut off."""
        return any(segment is each for each in self.all)

    def end_with(self, number: int) -> None:
        """Those behind that one are parked."""
        self.parked = [*self.bases[number + 1 :], *self.parked]
        self.use(self.all[: number + 1])

    def place_of(self, neighbours: Sequence[Segment]) -> int | None:
        """Number of the first of them, when they stand side by side and are synced."""
        synced = self.synced
        for number, segment in enumerate(synced):
            if segment is neighbours[0]:
                beside = synced[number : number + len(neighbours)]
                same = all(here is there for here, there in zip(beside, neighbours, strict=False))
                return number if same and len(beside) == len(neighbours) else None
        return None

    def replace(self, number: int, count: int, new: Segment) -> None:
        """`new` stands where `count` of them stood, from that number on."""
        self.use([*self.all[:number], new, *self.all[number + count :]])
