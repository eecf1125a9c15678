"""Commands about thousands of partitions are applied in steps (RULES F1), to what they come to at
once (RULES A1)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from types import MappingProxyType
from uuid import UUID

import pytest

from logboat.metadata import draft as draft_module
from logboat.metadata.apply import apply, apply_in_steps
from logboat.metadata.commands import (
    AlterConfigs,
    AlterPartition,
    BrokerConfigs,
    Command,
    CreatePartitions,
    CreateTopics,
    DeleteTopics,
    ElectionType,
    ElectLeaders,
    FenceBroker,
    IsrChange,
    IsrMember,
    MorePartitions,
    PartitionId,
    RegisterBroker,
    ReorderReplicas,
    ReplicaOrder,
    ReplicasLost,
    SetControlledShutdown,
    UnfenceBroker,
    UnregisterBroker,
)
from logboat.metadata.elections import Alike
from logboat.metadata.image import ClusterImage, PartitionImage
from logboat.metadata.snapshot import compare, decode_snapshot, encode_snapshot, share_unchanged
from logboat.metadata.steps import SLICE
from tests.metadata.cluster_builder import Cluster, new_topic

PARTITIONS = 600
"""Of one topic; there are as many topics with one."""

STEP = 2 * SLICE
"""What no step may exceed: a slice, and a bit."""


class CountingAlike(Alike):
    """Counts the partitions that it was asked about."""

    decided = 0

    def change(self, partition: PartitionImage) -> PartitionImage:
        CountingAlike.decided += 1
        return super().change(partition)


@contextmanager
def counted() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(draft_module, "Alike", CountingAlike)
        yield


def assignments(count: int) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple((number + step) % 3 + 1 for step in range(3)) for number in range(count))


def topics(cluster: Cluster, prefix: str, count: int, partitions: int) -> CreateTopics:
    return CreateTopics(
        cluster.epoch,
        tuple(
            replace(
                new_topic(f"{prefix}-{number}"),
                topic_id=UUID(int=1_000_000 + len(cluster.image.topics) + number),
                assignments=assignments(partitions),
            )
            for number in range(count)
        ),
        None,
    )


@pytest.fixture(scope="module")
def cluster() -> Cluster:
    cluster = Cluster()
    cluster.must(topics(cluster, "large", 1, PARTITIONS))
    cluster.must(topics(cluster, "small", PARTITIONS, 1))
    return cluster


def everybody(image: ClusterImage) -> list[tuple[UUID, PartitionImage]]:
    return [
        (topic.topic_id, partition)
        for topic in image.topics.values()
        for partition in topic.partitions
    ]


def commands(cluster: Cluster) -> list[tuple[ClusterImage, Command]]:
    """One of each kind that may be about all partitions, with the image that it meets."""
    epoch, full = cluster.epoch, cluster.image
    broker_epoch = cluster.broker(1).broker_epoch
    fenced, _ = apply(full, full.index + 1, FenceBroker(epoch, 1, broker_epoch))
    nobody = fenced
    for node_id in (2, 3):
        command = FenceBroker(epoch, node_id, cluster.broker(node_id).broker_epoch)
        nobody, _ = apply(nobody, nobody.index + 1, command)
    ids = tuple(PartitionId(id, partition.partition) for id, partition in everybody(full))
    isr = tuple(
        IsrChange(
            id,
            partition.partition,
            partition.leader_epoch,
            partition.partition_epoch,
            (IsrMember(2, -1),),
        )
        for id, partition in everybody(full)
        if partition.leader == 2
    )
    orders = tuple(
        ReplicaOrder(id, partition.partition, partition.replicas[::-1])
        for id, partition in everybody(full)
    )
    large = full.topics["large-0"]
    defaults = BrokerConfigs("", {}, MappingProxyType({"min.insync.replicas": "3"}), 3, True)
    registration = cluster.registration(1)
    assert isinstance(registration, RegisterBroker)
    return [
        (full, registration),
        (full, FenceBroker(epoch, 1, broker_epoch)),
        (nobody, UnfenceBroker(epoch, 1, broker_epoch)),
        (full, SetControlledShutdown(epoch, 1, broker_epoch)),
        (full, UnregisterBroker(epoch, 1)),
        (full, topics(cluster, "more", 1, PARTITIONS)),
        (full, topics(cluster, "many", PARTITIONS, 1)),
        (full, DeleteTopics(epoch, tuple(t.topic_id for t in full.topics.values()), None)),
        (
            full,
            CreatePartitions(
                epoch, (MorePartitions(large.topic_id, PARTITIONS, assignments(PARTITIONS)),)
            ),
        ),
        (full, AlterPartition(epoch, 2, cluster.broker(2).broker_epoch, isr)),
        (fenced, ElectLeaders(epoch, ElectionType.PREFERRED, ids)),
        (full, ReorderReplicas(epoch, orders)),
        (full, ReplicasLost(epoch, 1, broker_epoch, ids)),
        (full, AlterConfigs(epoch, (), (defaults,))),
    ]


def test_f1_no_step_of_a_command_is_longer_than_a_slice(cluster: Cluster) -> None:
    for image, command in commands(cluster):
        works, decided = list[int](), [0]
        with counted():
            CountingAlike.decided = 0
            steps = apply_in_steps(image, image.index + 1, command)
            while True:
                try:
                    works.append(next(steps))
                except StopIteration as end:
                    after, result = end.value
                    break
                decided.append(CountingAlike.decided)
        kind = type(command).__name__
        assert not result.refused, (kind, result)
        assert all(0 < work <= STEP for work in works), kind
        # What a step says of its work is what it has done.
        assert all(later - earlier <= STEP for earlier, later in pairwise(decided)), kind
        assert sum(works) >= PARTITIONS, kind
        assert (after, result) == apply(image, image.index + 1, command), kind


def test_a1_a_command_under_way_is_seen_by_nobody(cluster: Cluster) -> None:
    before = encode_snapshot(cluster.image)
    for image, command in commands(cluster):
        steps = apply_in_steps(image, image.index + 1, command)
        for _ in range(5):
            next(steps)
        steps.close()
    assert encode_snapshot(cluster.image) == before


def test_single_partitions_of_one_topic_are_changed_by_one_copy_of_it(cluster: Cluster) -> None:
    image = cluster.image
    ids = tuple(
        PartitionId(id, p.partition) for id, p in everybody(image) if id == UUID(int=1_000_000)
    )
    epoch = cluster.broker(2).broker_epoch
    after, result = apply(
        image, image.index + 1, ReplicasLost(cluster.epoch, 2, epoch, (*ids, *ids))
    )
    assert [item.partition for item in result.items[PARTITIONS:]] == list(
        after.topics["large-0"].partitions
    )
    assert all(2 not in partition.isr for partition in after.topics["large-0"].partitions)


def test_a7_a_snapshot_shares_what_this_node_has_already(cluster: Cluster) -> None:
    epoch = cluster.broker(1).broker_epoch
    ids = (PartitionId(UUID(int=1_000_000), 5),)
    after, _ = apply(cluster.image, cluster.index + 1, ReplicasLost(cluster.epoch, 1, epoch, ids))
    received = decode_snapshot(encode_snapshot(after))
    assert len(compare(cluster.image, received).changed_topics) == 1 + PARTITIONS
    shared = share_unchanged(received, cluster.image)
    assert shared == received
    assert [t.name for t in compare(cluster.image, shared).changed_topics] == ["large-0"]
