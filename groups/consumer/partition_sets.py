"""Sets of partitions by topic id, as values: sorted, without empty topics, in topic id order.

A topic id's hash is computed in Python each time, so these look topics up, and not every partition.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType
from uuid import UUID

PartitionSet = Mapping[UUID, tuple[int, ...]]

NOTHING: PartitionSet = MappingProxyType({})


def nothing() -> PartitionSet:
    """`NOTHING`, as a default of fields."""
    return NOTHING


def partition_set(partitions: Iterable[tuple[UUID, int]]) -> PartitionSet:
    by_topic: dict[UUID, list[int]] = {}
    topic: UUID | None = None
    numbers: list[int] = []
    for topic_id, number in partitions:
        if topic_id is not topic:
            topic, numbers = topic_id, by_topic.setdefault(topic_id, [])
        numbers.append(number)
    return in_order([(found, tuple(sorted(set(numbers)))) for found, numbers in by_topic.items()])


def in_order(topics: Collection[tuple[UUID, tuple[int, ...]]]) -> PartitionSet:
    """Of topics that are named once, each with sorted partitions."""
    if len(topics) < 2:
        return dict(topics)
    return dict(sorted(topics, key=lambda topic: topic[0].int))


def pairs(partitions: PartitionSet) -> list[tuple[UUID, int]]:
    return [(topic_id, number) for topic_id, numbers in partitions.items() for number in numbers]


def size(partitions: PartitionSet) -> int:
    return sum(map(len, partitions.values()))


def common(one: PartitionSet, other: PartitionSet) -> PartitionSet:
    shared: dict[UUID, tuple[int, ...]] = {}
    for topic_id, numbers in one.items():
        others = other.get(topic_id, ())
        kept = numbers if numbers == others else _filtered(numbers, others, wanted=True)
        if kept:
            shared[topic_id] = kept
    return shared


def without(one: PartitionSet, other: PartitionSet) -> PartitionSet:
    left: dict[UUID, tuple[int, ...]] = {}
    for topic_id, numbers in one.items():
        others = other.get(topic_id, ())
        kept = () if numbers == others else _filtered(numbers, others, wanted=False)
        if kept:
            left[topic_id] = kept
    return left


def _filtered(
    numbers: tuple[int, ...], others: tuple[int, ...], *, wanted: bool
) -> tuple[int, ...]:
    known = frozenset(others)
    if wanted:
        return tuple([number for number in numbers if number in known])
    return tuple([number for number in numbers if number not in known])


def overlap(one: PartitionSet, other: PartitionSet) -> bool:
    """Whether they have something in common."""
    return any(
        not frozenset(numbers).isdisjoint(other.get(topic_id, ()))
        for topic_id, numbers in one.items()
    )


def united(one: PartitionSet, other: PartitionSet) -> PartitionSet:
    if not other:
        return one
    if not one:
        return other
    together = dict(one)
    for topic_id, numbers in other.items():
        known = together.get(topic_id, ())
        together[topic_id] = tuple(sorted({*known, *numbers})) if known else numbers
    return in_order(together.items())
