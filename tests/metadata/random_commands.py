"""A seeded walk through commands that mostly fit the image, sometimes not."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from types import MappingProxyType
from uuid import UUID

from logboat.metadata.commands import (
    AllocateProducerIds,
    AlterConfigs,
    BrokerConfigs,
    Command,
    CreatePartitions,
    CreateTopics,
    DeleteTopics,
    Digest,
    ElectionType,
    ElectLeaders,
    FeatureLevel,
    FenceBroker,
    MorePartitions,
    NewController,
    NewTopic,
    Origin,
    PartitionId,
    PinVoterDirectory,
    ReorderReplicas,
    ReplicaOrder,
    ReplicasLost,
    SetControlledShutdown,
    TopicConfigs,
    UnfenceBroker,
    UnregisterBroker,
)
from logboat.metadata.levels import VERSION_FEATURE
from tests.metadata.cluster_builder import Cluster

BROKERS = (1, 2, 3, 4)
NAMES = ("orders", "pay.ments", "pay_ments", "clicks")


class Walk:
    """Every step applies one command to `cluster`."""

    def __init__(self, seed: int) -> None:
        self.rng = Random(seed)
        self.cluster = Cluster(brokers=3)
        self._steps: tuple[Callable[[], Command | None], ...] = (
            self._register,
            self._fence,
            self._unfence,
            self._unfence,
            self._unfence,
            self._shut_down,
            self._create,
            self._create,
            self._delete,
            self._grow,
            self._alter_isr,
            self._alter_isr,
            self._alter_isr,
            self._alter_isr,
            self._elect,
            self._reorder,
            self._lose,
            self._alter_configs,
            self._rare,
        )

    def step(self) -> Command:
        while True:
            command = self.rng.choice(self._steps)()
            if command is not None:
                self.cluster.apply(command)
                return command

    def _broker(self) -> int:
        return self.rng.choice(BROKERS)

    def _epoch_of(self, node_id: int) -> int:
        broker = self.cluster.image.brokers.get(node_id)
        return -1 if broker is None else broker.broker_epoch

    def _topic(self) -> str | None:
        names = sorted(self.cluster.image.topics)
        return self.rng.choice(names) if names else None

    def _register(self) -> Command:
        node_id = self._broker()
        return self.cluster.registration(
            node_id,
            directory=self.rng.choice((None, None, None, 7_000 + node_id)),
            previous_epoch=self.rng.choice((None, None, -1)),
            rack=self.rng.choice((None, "a", "b")),
        )

    def _fence(self) -> Command:
        node_id = self._broker()
        return FenceBroker(self.cluster.epoch, node_id, self._epoch_of(node_id))

    def _unfence(self) -> Command:
        node_id = self._broker()
        return UnfenceBroker(self.cluster.epoch, node_id, self._epoch_of(node_id))

    def _shut_down(self) -> Command:
        node_id = self._broker()
        return SetControlledShutdown(self.cluster.epoch, node_id, self._epoch_of(node_id))

    def _create(self) -> Command:
        topics = []
        for _ in range(self.rng.randint(1, 2)):
            factor = self.rng.randint(1, 3)
            assignments = tuple(
                tuple(self.rng.sample(BROKERS, factor)) for _ in range(self.rng.randint(1, 4))
            )
            topics.append(
                NewTopic(
                    name=self.rng.choice(NAMES),
                    topic_id=UUID(int=self.rng.getrandbits(128)),
                    assignments=assignments,
                    configs=MappingProxyType({"retention.ms": str(self.rng.randint(0, 9))}),
                    min_insync_replicas=self.rng.randint(1, 3),
                    flush_messages=self.rng.choice((1, 1, 10_000)),
                    unclean_leader_election=self.rng.random() < 0.1,
                )
            )
        return CreateTopics(self.cluster.epoch, tuple(topics), self._origin())

    def _origin(self) -> Origin | None:
        node_id = self._broker()
        origin = Origin(node_id, self._epoch_of(node_id), self.rng.randint(0, 50))
        return self.rng.choice((None, origin))

    def _delete(self) -> Command | None:
        name = self._topic()
        if name is None or self.rng.random() < 0.5:
            return None
        ids = (self.cluster.image.topics[name].topic_id,)
        return DeleteTopics(self.cluster.epoch, ids, self._origin())

    def _grow(self) -> Command | None:
        name = self._topic()
        if name is None:
            return None
        topic = self.cluster.image.topics[name]
        count = len(topic.partitions)
        factor = len(topic.partitions[0].replicas)
        if count > 6:
            return None
        more = MorePartitions(topic.topic_id, count, (tuple(self.rng.sample(BROKERS, factor)),))
        return CreatePartitions(self.cluster.epoch, (more,))

    def _alter_isr(self) -> Command | None:
        name = self._topic()
        if name is None:
            return None
        partition = self.rng.choice(self.cluster.image.topics[name].partitions)
        if partition.leader not in self.cluster.image.brokers:
            return None
        others = [broker for broker in partition.replicas if self.rng.random() < 0.7]
        new_isr = tuple(dict.fromkeys((partition.leader, *others)))
        return self.cluster.isr_change(
            new_isr,
            number=partition.partition,
            topic=name,
            partition_epoch=self.rng.choice((None, None, None, partition.partition_epoch - 1)),
        )

    def _elect(self) -> Command | None:
        name = self._topic()
        if name is None:
            return None
        wanted = PartitionId(self.cluster.image.topics[name].topic_id, self.rng.randint(0, 3))
        election = self.rng.choice((ElectionType.PREFERRED,) * 5 + (ElectionType.UNCLEAN,))
        return ElectLeaders(self.cluster.epoch, election, (wanted,))

    def _reorder(self) -> Command | None:
        name = self._topic()
        if name is None:
            return None
        topic = self.cluster.image.topics[name]
        partition = self.rng.choice(topic.partitions)
        replicas = self.rng.sample(partition.replicas, len(partition.replicas))
        if self.rng.random() < 0.1:
            replicas[0] = self._broker()
        order = ReplicaOrder(topic.topic_id, partition.partition, tuple(replicas))
        return ReorderReplicas(self.cluster.epoch, (order,))

    def _lose(self) -> Command | None:
        name = self._topic()
        if name is None:
            return None
        node_id = self._broker()
        lost = PartitionId(self.cluster.image.topics[name].topic_id, self.rng.randint(0, 3))
        return ReplicasLost(self.cluster.epoch, node_id, self._epoch_of(node_id), (lost,))

    def _alter_configs(self) -> Command | None:
        name = self._topic()
        least = self.rng.randint(1, 3)
        if name is None or self.rng.random() < 0.2:
            before = self.cluster.image.configs.get("", {})
            after = {"min.insync.replicas": str(least)}
            return AlterConfigs(
                self.cluster.epoch, (), (BrokerConfigs("", before, after, least, False),)
            )
        topic = self.cluster.image.topics[name]
        after = {**topic.configs, "min.insync.replicas": str(least)}
        change = TopicConfigs(topic.topic_id, topic.configs, after, least, False)
        return AlterConfigs(self.cluster.epoch, (change,), ())

    def _rare(self) -> Command:
        node_id = self._broker()
        image = self.cluster.image
        rare: tuple[Command, ...] = (
            NewController(node_id, image.controller_term + self.rng.randint(0, 2)),
            AllocateProducerIds(self.cluster.epoch, node_id, self._epoch_of(node_id), 1000),
            PinVoterDirectory(self.cluster.epoch, node_id, UUID(int=node_id), None),
            FeatureLevel(self.cluster.epoch, VERSION_FEATURE, 1),
            Digest(self.cluster.epoch, image.index, bytes(32)),
            FenceBroker(image.controller_epoch - 1, node_id, self._epoch_of(node_id)),
            UnregisterBroker(self.cluster.epoch, node_id),
        )
        return self.rng.choice(rare)
