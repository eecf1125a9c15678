"""A cluster of brokers and topics, built by applying commands, for tests that then look closer."""

from __future__ import annotations

from types import MappingProxyType
from uuid import UUID

from logboat.metadata.apply import apply
from logboat.metadata.commands import (
    AlterPartition,
    Command,
    CreateTopics,
    FenceBroker,
    IsrChange,
    IsrMember,
    NewController,
    NewTopic,
    RegisterBroker,
    SetControlledShutdown,
    UnfenceBroker,
)
from logboat.metadata.image import BrokerImage, ClusterImage, Endpoint, PartitionImage
from logboat.metadata.results import Item, Result
from logboat.metadata.snapshot import empty_image
from logboat.wire import ErrorCode


class Cluster:
    """Brokers have ids from 1; topic "t" is the usual one."""

    def __init__(self, brokers: int = 3) -> None:
        self.image: ClusterImage = empty_image("test-cluster")
        self.index = 0
        self.log: list[tuple[int, Command]] = []
        self.incarnations = 0
        self.apply(NewController(node_id=1, term=1))
        for node_id in range(1, brokers + 1):
            self.register(node_id)
            self.unfence(node_id)

    def apply(self, command: Command) -> Result:
        self.index += 1
        self.log.append((self.index, command))
        self.image, result = apply(self.image, self.index, command)
        return result

    def must(self, command: Command) -> Result:
        result = self.apply(command)
        assert result.error == ErrorCode.NONE, result
        return result

    @property
    def epoch(self) -> int:
        return self.image.controller_epoch

    def broker(self, node_id: int) -> BrokerImage:
        return self.image.brokers[node_id]

    def partition(self, number: int = 0, topic: str = "t") -> PartitionImage:
        found = self.image.partition(topic, number)
        assert found is not None
        return found

    def registration(
        self,
        node_id: int,
        *,
        directory: int | None = None,
        previous_epoch: int | None = None,
        incarnation: int | None = None,
        rack: str | None = None,
    ) -> RegisterBroker:
        """`previous_epoch` None: a clean restart."""
        self.incarnations += 1
        old = self.image.brokers.get(node_id)
        clean = -1 if old is None else old.broker_epoch
        return RegisterBroker(
            controller_epoch=self.epoch,
            node_id=node_id,
            incarnation_id=UUID(int=10_000 + (incarnation or self.incarnations)),
            directory_id=UUID(int=1_000 + node_id if directory is None else directory),
            kafka=Endpoint("127.0.0.1", 9000 + node_id),
            internode=Endpoint("127.0.0.1", 9100 + node_id),
            http=None,
            rack=rack,
            previous_broker_epoch=clean if previous_epoch is None else previous_epoch,
            min_level=1,
            max_level=1,
        )

    def register(self, node_id: int, *, clean: bool = True, directory: int | None = None) -> Result:
        previous = None if clean else -1
        return self.apply(self.registration(node_id, directory=directory, previous_epoch=previous))

    def unfence(self, node_id: int) -> Result:
        epoch = self.broker(node_id).broker_epoch
        return self.must(UnfenceBroker(self.epoch, node_id, epoch))

    def fence(self, node_id: int) -> Result:
        return self.must(FenceBroker(self.epoch, node_id, self.broker(node_id).broker_epoch))

    def shut_down(self, node_id: int) -> Result:
        epoch = self.broker(node_id).broker_epoch
        return self.must(SetControlledShutdown(self.epoch, node_id, epoch))

    def create(
        self,
        *assignments: tuple[int, ...],
        name: str = "t",
        min_isr: int = 1,
        synced: bool = True,
        unclean: bool = False,
        configs: dict[str, str] | None = None,
        uuid: UUID | None = None,
    ) -> Item:
        new = NewTopic(
            name=name,
            topic_id=uuid or topic_id(name),
            assignments=assignments,
            configs=MappingProxyType(configs or {}),
            min_insync_replicas=min_isr,
            flush_messages=1 if synced else 10_000,
            unclean_leader_election=unclean,
        )
        result = self.must(CreateTopics(self.epoch, (new,), None))
        return result.items[0]

    def isr_change(
        self,
        new_isr: tuple[int, ...],
        *,
        number: int = 0,
        topic: str = "t",
        leader_epoch: int | None = None,
        partition_epoch: int | None = None,
        member_epochs: dict[int, int] | None = None,
        by: int | None = None,
    ) -> AlterPartition:
        """What the present leader would propose, with the exceptions given."""
        partition = self.partition(number, topic)
        proposer = partition.leader if by is None else by
        members = tuple(
            IsrMember(
                broker_id,
                (member_epochs or {}).get(broker_id, self.image.brokers[broker_id].broker_epoch)
                if broker_id in self.image.brokers
                else -1,
            )
            for broker_id in new_isr
        )
        change = IsrChange(
            topic_id=self.image.topics[topic].topic_id,
            partition=number,
            leader_epoch=partition.leader_epoch if leader_epoch is None else leader_epoch,
            partition_epoch=(
                partition.partition_epoch if partition_epoch is None else partition_epoch
            ),
            new_isr=members,
        )
        return AlterPartition(
            self.epoch, proposer, self.image.brokers[proposer].broker_epoch, (change,)
        )

    def change_isr(self, *new_isr: int, number: int = 0, topic: str = "t") -> Item:
        return self.must(self.isr_change(new_isr, number=number, topic=topic)).items[0]


def topic_id(name: str) -> UUID:
    return UUID(bytes=name.encode().ljust(16, b"\0")[:16])


def new_topic(name: str) -> NewTopic:
    """One partition on brokers 1 and 2."""
    return NewTopic(name, topic_id(name), ((1, 2),), MappingProxyType({}), 1, 1, False)
