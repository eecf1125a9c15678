"""How far a consumer instance has read its partitions, and what of it is committed. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from ....seam import frozen
from .membership import Place


@dataclass(slots=True)
class _Read:
    next_offset: int | None = None
    """Where the next fetch begins; None: the committed offset, or the reset policy, will tell."""
    moved: bool = False
    """It was given out or sought to; what a commit without a list commits."""
    committed: int | None = None
    """As last committed by this instance."""


@frozen
class Delivery:
    """What one answer gave out: the positions before and after it, by partition."""

    number: int
    before: Mapping[Place, tuple[int | None, bool]]
    after: Mapping[Place, int]


class Positions:
    """Of the partitions that the instance owns now."""

    def __init__(self) -> None:
        self._reads: dict[Place, _Read] = {}
        self._turn = 0
        self._deliveries = 0
        self._last: Delivery | None = None

    def own(self, places: Iterable[Place]) -> None:
        for place in places:
            self._reads.setdefault(place, _Read())

    def give_up(self, places: Iterable[Place]) -> None:
        for place in places:
            self._reads.pop(place, None)

    def owns(self, place: Place) -> bool:
        return place in self._reads

    def owned(self) -> list[Place]:
        """Sorted."""
        return sorted(self._reads)

    def in_turn(self) -> list[Place]:
        """Each time another one first, so that no partition waits behind the others for ever."""
        places = self.owned()
        if not places:
            return []
        self._turn = (self._turn + 1) % len(places)
        return places[self._turn :] + places[: self._turn]

    def unknown(self) -> list[Place]:
        return [place for place in self.owned() if self._reads[place].next_offset is None]

    def at(self, place: Place) -> int | None:
        read = self._reads.get(place)
        return None if read is None else read.next_offset

    def begin(self, place: Place, offset: int) -> None:
        """Found out; unless somebody sought meanwhile."""
        read = self._reads.get(place)
        if read is not None and read.next_offset is None:
            read.next_offset = offset

    def forget(self, place: Place) -> None:
        """The log has no such offset any more: the reset policy decides."""
        read = self._reads.get(place)
        if read is not None:
            read.next_offset, read.moved = None, False

    def seek(self, place: Place, offset: int) -> None:
        self._last = None
        self._reads[place] = replace(self._reads[place], next_offset=offset, moved=True)

    def skip(self, place: Place, fetched_at: int, offset: int) -> None:
        """Past batches that hold nothing to show."""
        read = self._reads.get(place)
        if read is not None and read.next_offset == fetched_at:
            read.next_offset = offset

    def deliver(self, after: Mapping[Place, int]) -> Delivery:
        before = {
            place: (self._reads[place].next_offset, self._reads[place].moved) for place in after
        }
        for place, offset in after.items():
            self._reads[place].next_offset, self._reads[place].moved = offset, True
        self._deliveries += 1
        self._last = Delivery(self._deliveries, before, dict(after))
        return self._last

    def take_back(self, number: int) -> None:
        """The client was gone before the answer of that number reached it: its records are given
        out again. Only the newest answer can be taken back, and only where nothing moved since."""
        last = self._last
        if last is None or last.number != number:
            return
        self._last = None
        for place, after in last.after.items():
            read = self._reads.get(place)
            if read is not None and read.next_offset == after:
                read.next_offset, read.moved = last.before[place]

    def to_commit(self, places: Iterable[Place] | None = None) -> dict[Place, int]:
        """What was given out and is not committed yet."""
        found = {}
        for place in self.owned() if places is None else places:
            read = self._reads.get(place)
            if (
                read is not None
                and read.moved
                and read.next_offset is not None
                and read.next_offset != read.committed
            ):
                found[place] = read.next_offset
        return found

    def note_committed(self, offsets: Mapping[Place, int]) -> None:
        for place, offset in offsets.items():
            if place in self._reads:
                self._reads[place].committed = offset
