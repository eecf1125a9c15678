"""Who shall read what: the server's assignors, pure functions of the group (KIP-848)."""

from __future__ import annotations

import heapq
from bisect import bisect_left, insort
from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType
from uuid import UUID

from ...seam import frozen
from .partition_sets import NOTHING, PartitionSet, in_order, pairs, partition_set, size
from .slices import Effort, Sliced

Pair = tuple[UUID, int]
Topics = frozenset[UUID]
"""Asked, never gone through: the order of topics is that of their counts."""


@frozen
class Subscriber:
    instance_id: str | None
    topics: Topics
    """Only topics that exist."""


Members = Mapping[str, Subscriber]
Counts = Mapping[UUID, int]
"""Partitions of each topic that anybody reads."""
Targets = Mapping[str, PartitionSet]
"""By member."""

_NOBODYS: frozenset[int] = frozenset()

Assignor = Callable[[Members, Counts, Targets, Effort], Sliced[Targets]]
"""(members, topics, what they had in the epoch before) -> each member's partitions."""


def assign_range(
    members: Members, counts: Counts, current: Targets, effort: Effort
) -> Sliced[Targets]:
    """Of every topic a contiguous piece: topics with equal counts and readers are co-partitioned.

    Static members are ordered by their instance ids, so that a restart moves nothing.
    """
    ordered = sorted(members, key=lambda name: _order(name, members[name]))
    given: dict[str, dict[UUID, tuple[int, ...]]] = {name: {} for name in members}
    for topic_id, count in counts.items():
        readers = [name for name in ordered if topic_id in members[name].topics]
        start = 0
        for position, name in enumerate(readers):
            end = start + count // len(readers) + (position < count % len(readers))
            if end > start:
                given[name][topic_id] = tuple(range(start, end))
            start = end
            if effort.spent(1):
                yield
    targets: dict[str, PartitionSet] = {}
    for name, found in given.items():
        targets[name] = in_order(found.items())
        if effort.spent(1):
            yield
    return targets


def _order(name: str, member: Subscriber) -> tuple[bool, str]:
    return (member.instance_id is None, member.instance_id or name)


def assign_uniform(
    members: Members, counts: Counts, current: Targets, effort: Effort
) -> Sliced[Targets]:
    """As even as subscriptions allow, moving as little as possible.

    Everybody keeps what he has, the rest goes to whoever has least, and then single partitions
    move from the loaded to the idle while that makes the group more even. With equal
    subscriptions nobody ends with two partitions more than another.
    """
    shares = _Shares(current)
    yield from _keep(shares, members, counts, effort)
    yield from _hand_out(shares, members, counts, effort)
    yield from _even_out(shares, members, effort)
    targets: dict[str, PartitionSet] = {}
    for name in members:
        targets[name] = shares.of(name)
        if effort.spent(2 if targets[name] is current.get(name) else 6):
            yield
    return targets


class _Shares:
    """Who has what while it is dealt out. Most members keep what they have, and cost little."""

    def __init__(self, current: Targets) -> None:
        self.loads: dict[str, int] = {}
        """How much each has."""
        self.taken: dict[UUID, set[int]] = {}
        self._current = current
        self._changed: dict[str, list[Pair]] = {}
        """What was handed out last stands last."""

    def before(self, name: str) -> PartitionSet:
        return self._current.get(name, NOTHING)

    def keep(self, name: str, kept: list[tuple[UUID, Sequence[int]]], *, all_of_it: bool) -> None:
        self.loads[name] = sum(len(numbers) for _, numbers in kept)
        for topic_id, numbers in kept:
            self.taken.setdefault(topic_id, set()).update(numbers)
        if not all_of_it:
            self._changed[name] = [(topic_id, n) for topic_id, numbers in kept for n in numbers]

    def _pairs(self, name: str) -> list[Pair]:
        found = self._changed.get(name)
        if found is None:
            found = self._changed[name] = pairs(self.before(name))
        return found

    def give(self, name: str, more: Collection[Pair]) -> None:
        self._pairs(name).extend(more)
        self.loads[name] += len(more)

    def last_of(self, name: str, topics: Topics) -> int | None:
        """The place of the last that a reader of `topics` may have."""
        found = self._pairs(name)
        return next((n for n in reversed(range(len(found))) if found[n][0] in topics), None)

    def move(self, giver: str, place: int, taker: str) -> None:
        pair = self._pairs(giver).pop(place)
        self.loads[giver] -= 1
        self.give(taker, [pair])

    def of(self, name: str) -> PartitionSet:
        found = self._changed.get(name)
        return self.before(name) if found is None else partition_set(found)


def _keep(shares: _Shares, members: Members, counts: Counts, effort: Effort) -> Sliced[None]:
    """What each has, unless it may no longer, or somebody before it has it too."""
    for name, member in members.items():
        kept: list[tuple[UUID, Sequence[int]]] = []
        lost = False
        before = shares.before(name)
        for topic_id, numbers in before.items():
            good: Sequence[int] = numbers if topic_id in member.topics else ()
            count, taken = counts.get(topic_id, 0), shares.taken.get(topic_id, _NOBODYS)
            if good and (good[-1] >= count or not taken.isdisjoint(good)):
                good = [number for number in good if number < count and number not in taken]
            lost = lost or len(good) < len(numbers)
            kept.append((topic_id, good))
        shares.keep(name, kept, all_of_it=not lost)
        if effort.spent(4 + size(before) // 16):
            yield


def _hand_out(shares: _Shares, members: Members, counts: Counts, effort: Effort) -> Sliced[None]:
    for topic_id, count in counts.items():
        taken = shares.taken.get(topic_id, _NOBODYS)
        if len(taken) == count:
            continue
        idlest = [
            (shares.loads[name], name)
            for name, member in members.items()
            if topic_id in member.topics
        ]
        heapq.heapify(idlest)
        if effort.spent(len(idlest) // 4):
            yield
        handed: dict[str, list[int]] = {}
        for number in range(count) if idlest else ():
            if number in taken:
                continue
            load, name = idlest[0]
            heapq.heapreplace(idlest, (load + 1, name))
            handed.setdefault(name, []).append(number)
            if number % 64 == 63 and effort.spent(128):
                yield
        for name, numbers in handed.items():
            shares.give(name, [(topic_id, number) for number in numbers])
            if effort.spent(3):
                yield


def _even_out(shares: _Shares, members: Members, effort: Effort) -> Sliced[None]:
    """Move single partitions, each to the idlest member that may have one of somebody with at
    least two more, and from the most loaded of those."""
    by_load = sorted((load, name) for name, load in shares.loads.items())
    hopeless: dict[Topics, None] = {}
    """Nobody can give anything to the idlest of those who read these, nor then to the others."""
    while (found := _move(by_load, shares, members, hopeless)) is not None:
        giver, place, taker = found
        for name in (giver, taker):
            del by_load[bisect_left(by_load, (shares.loads[name], name))]
        shares.move(giver, place, taker)
        for name in (giver, taker):
            insort(by_load, (shares.loads[name], name))
        # The giver is idler now; the taker may have something for others.
        lost, gained = members[giver].topics, members[taker].topics
        for topics in [t for t in hopeless if t == lost or not t.isdisjoint(gained)]:
            del hopeless[topics]
        if effort.spent(10):
            yield


def _move(
    by_load: list[tuple[int, str]],
    shares: _Shares,
    members: Members,
    hopeless: dict[Topics, None],
) -> tuple[str, int, str] | None:
    """(giver, place among what it has, taker)."""
    most = by_load[-1][0] if by_load else 0
    for idle, taker in by_load:
        if most < idle + 2:
            return None
        topics = members[taker].topics
        if topics in hopeless:
            continue
        for load, giver in reversed(by_load):
            if load < idle + 2:
                break
            place = shares.last_of(giver, topics)
            if place is not None:
                return giver, place, taker
        hopeless[topics] = None
    return None


ASSIGNORS: Mapping[str, Assignor] = MappingProxyType(
    {"uniform": assign_uniform, "range": assign_range}
)
