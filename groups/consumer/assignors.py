"""Who shall read what: the server's assignors, pure functions of the group (KIP-848)."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping
from types import MappingProxyType
from uuid import UUID

from ...seam import frozen
from .partition_sets import PartitionSet, pairs, partition_set

Pair = tuple[UUID, int]


@frozen
class Subscriber:
    instance_id: str | None
    topics: tuple[UUID, ...]
    """Only topics that exist."""
    current: PartitionSet
    """The member's target in the epoch before."""


Assignor = Callable[[Mapping[str, Subscriber], Mapping[UUID, int]], Mapping[str, PartitionSet]]
"""(members by id, partition count by topic) -> each member's partitions."""


def assign_range(
    members: Mapping[str, Subscriber], counts: Mapping[UUID, int]
) -> Mapping[str, PartitionSet]:
    """Of every topic a contiguous piece: topics with equal counts and readers are co-partitioned.

    Static members are ordered by their instance ids, so that a restart moves nothing.
    """
    ordered = sorted(members, key=lambda name: _order(name, members[name]))
    given: dict[str, list[Pair]] = {name: [] for name in members}
    for topic_id, count in counts.items():
        readers = [name for name in ordered if topic_id in members[name].topics]
        start = 0
        for position, name in enumerate(readers):
            size = count // len(readers) + (position < count % len(readers))
            given[name].extend((topic_id, number) for number in range(start, start + size))
            start += size
    return {name: partition_set(found) for name, found in given.items()}


def _order(name: str, member: Subscriber) -> tuple[bool, str]:
    return (member.instance_id is None, member.instance_id or name)


def assign_uniform(
    members: Mapping[str, Subscriber], counts: Mapping[UUID, int]
) -> Mapping[str, PartitionSet]:
    """As even as subscriptions allow, moving as little as possible.

    Everybody keeps what he has, the rest goes to whoever has least, and then single partitions
    move from the loaded to the idle while that makes the group more even. With equal
    subscriptions nobody ends with two partitions more than another.
    """
    given = _kept(members, counts)
    _hand_out(given, members, counts)
    while (move := _evening_move(given, members)) is not None:
        giver, taker, pair = move
        given[giver].remove(pair)
        given[taker].append(pair)
    # Most members keep what they have: their sets need not be made anew.
    return {
        name: member.current if given[name] == pairs(member.current) else partition_set(given[name])
        for name, member in members.items()
    }


def _kept(members: Mapping[str, Subscriber], counts: Mapping[UUID, int]) -> dict[str, list[Pair]]:
    taken: set[Pair] = set()
    given: dict[str, list[Pair]] = {}
    for name, member in members.items():
        given[name] = [
            pair
            for pair in pairs(member.current)
            if pair[0] in member.topics and pair[1] < counts[pair[0]] and pair not in taken
        ]
        taken.update(given[name])
    return given


def _hand_out(
    given: dict[str, list[Pair]], members: Mapping[str, Subscriber], counts: Mapping[UUID, int]
) -> None:
    taken = {pair for found in given.values() for pair in found}
    for topic_id, count in counts.items():
        free = [(topic_id, number) for number in range(count) if (topic_id, number) not in taken]
        readers = [name for name, member in members.items() if topic_id in member.topics]
        idlest = [(len(given[name]), name) for name in readers]
        heapq.heapify(idlest)
        for pair in free if idlest else ():
            load, name = idlest[0]
            given[name].append(pair)
            heapq.heapreplace(idlest, (load + 1, name))


def _evening_move(
    given: dict[str, list[Pair]], members: Mapping[str, Subscriber]
) -> tuple[str, str, Pair] | None:
    """(giver, taker, partition) of the first move from one with at least two more than another."""
    by_load = sorted(given, key=lambda name: (len(given[name]), name))
    for taker in by_load:
        topics = members[taker].topics
        for giver in reversed(by_load):
            if len(given[giver]) < len(given[taker]) + 2:
                break
            pair = next((pair for pair in reversed(given[giver]) if pair[0] in topics), None)
            if pair is not None:
                return giver, taker, pair
    return None


ASSIGNORS: Mapping[str, Assignor] = MappingProxyType(
    {"uniform": assign_uniform, "range": assign_range}
)
