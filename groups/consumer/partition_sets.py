"""Sets of partitions by topic id, as values: sorted, without empty topics, in topic id order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from uuid import UUID

PartitionSet = Mapping[UUID, tuple[int, ...]]

NOTHING: PartitionSet = MappingProxyType({})


def nothing() -> PartitionSet:
    """`NOTHING`, as a default of fields."""
    return NOTHING


def partition_set(partitions: Iterable[tuple[UUID, int]]) -> PartitionSet:
    by_topic: dict[UUID, list[int]] = {}
    for topic_id, partition in sorted(set(partitions), key=lambda pair: (pair[0].int, pair[1])):
        by_topic.setdefault(topic_id, []).append(partition)
    return {topic_id: tuple(numbers) for topic_id, numbers in by_topic.items()}


def pairs(partitions: PartitionSet) -> list[tuple[UUID, int]]:
    return [(topic_id, number) for topic_id, numbers in partitions.items() for number in numbers]


def holds(partitions: PartitionSet, pair: tuple[UUID, int]) -> bool:
    return pair[1] in partitions.get(pair[0], ())


def common(one: PartitionSet, other: PartitionSet) -> PartitionSet:
    return partition_set(pair for pair in pairs(one) if holds(other, pair))


def without(one: PartitionSet, other: PartitionSet) -> PartitionSet:
    return partition_set(pair for pair in pairs(one) if not holds(other, pair))


def united(one: PartitionSet, other: PartitionSet) -> PartitionSet:
    return partition_set([*pairs(one), *pairs(other)])
