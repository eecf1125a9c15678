"""What the quorum's log holds: one dataclass per decision of the controller.

A command carries as data everything that could be computed beforehand (assignments, ids, resolved
defaults); its application only checks it against the image and refuses when it no longer fits
(RULES A1). Every command but `NewController` names the controller epoch it was made in, and is
refused in any other (RULES A4).

How a command behaves when its sender cannot know whether it happened and sends it again (A5):

* compare-and-set: AlterPartition (partition epoch), AlterConfigs (the settings it was computed
  from), CreatePartitions (the count), PinVoterDirectory (the pin), NewController (the term);
* idempotent: FenceBroker, UnfenceBroker, SetControlledShutdown (broker epoch), RegisterBroker
  (incarnation id), UnregisterBroker, ElectLeaders, ReorderReplicas, ReplicasLost, FeatureLevel,
  Digest;
* repeatable at the price of an unused block: AllocateProducerIds;
* neither: CreateTopics, DeleteTopics. These carry an `Origin`, and the image remembers the result.

Field order is the layout on disk; see `packing` for how a command grows.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from uuid import UUID

from ..seam import frozen
from .image import Endpoint


@frozen
class Origin:
    """Which request of which broker a command serves (RULES A5)."""

    broker_id: int
    broker_epoch: int
    sequence: int
    """Grows by any step with each new request of this kind; a repeated request repeats it."""


@frozen
class NewController:
    """A leader's first command; its index becomes the controller epoch (RULES A4)."""

    node_id: int
    term: int


@frozen
class RegisterBroker:
    """A new incarnation; the command's index becomes its broker epoch (RULES B1)."""

    controller_epoch: int
    node_id: int
    incarnation_id: UUID
    directory_id: UUID
    kafka: Endpoint
    internode: Endpoint
    http: Endpoint | None
    rack: str | None
    previous_broker_epoch: int
    """From the clean-shutdown marker; -1 without one. Anything but the registered broker epoch
    means an unclean shutdown (KIP-966); FAILED_SYNC_EPOCH, that the disk is not to be trusted."""
    min_level: int
    max_level: int
    """Supported levels of `logboat.version` (RULES A2)."""


@frozen
class FenceBroker:
    controller_epoch: int
    node_id: int
    broker_epoch: int


@frozen
class UnfenceBroker:
    controller_epoch: int
    node_id: int
    broker_epoch: int


@frozen
class SetControlledShutdown:
    """Moves every leadership of the broker away; it serves on until it is told to go (B6)."""

    controller_epoch: int
    node_id: int
    broker_epoch: int


@frozen
class UnregisterBroker:
    """Forget a broker that will not come back. It leaves every ISR and ELR."""

    controller_epoch: int
    node_id: int


@frozen
class NewTopic:
    name: str
    topic_id: UUID
    assignments: tuple[tuple[int, ...], ...]
    """Replicas by partition number; the first of each is the preferred leader."""
    configs: Mapping[str, str]
    min_insync_replicas: int
    flush_messages: int
    unclean_leader_election: bool


@frozen
class CreateTopics:
    controller_epoch: int
    topics: tuple[NewTopic, ...]
    origin: Origin | None


@frozen
class DeleteTopics:
    controller_epoch: int
    topic_ids: tuple[UUID, ...]
    origin: Origin | None


@frozen
class MorePartitions:
    topic_id: UUID
    first_partition: int
    """How many partitions the topic had when this was computed (compare-and-set)."""
    assignments: tuple[tuple[int, ...], ...]


@frozen
class CreatePartitions:
    controller_epoch: int
    topics: tuple[MorePartitions, ...]


@frozen
class IsrMember:
    broker_id: int
    broker_epoch: int
    """-1 when the proposer does not know it (AlterPartition version 2)."""


@frozen
class IsrChange:
    topic_id: UUID
    partition: int
    leader_epoch: int
    partition_epoch: int
    new_isr: tuple[IsrMember, ...]


@frozen
class AlterPartition:
    """A leader proposes other in-sync replicas for partitions that it leads (RULES D2, D3)."""

    controller_epoch: int
    broker_id: int
    broker_epoch: int
    changes: tuple[IsrChange, ...]


class ElectionType(IntEnum):
    """As ElectLeaders numbers them (KIP-460)."""

    PREFERRED = 0
    UNCLEAN = 1


@frozen
class PartitionId:
    topic_id: UUID
    partition: int


@frozen
class ElectLeaders:
    controller_epoch: int
    election: ElectionType
    partitions: tuple[PartitionId, ...]


@frozen
class ReplicaOrder:
    topic_id: UUID
    partition: int
    replicas: tuple[int, ...]
    """All that the partition has; the first is the preferred leader from now on."""


@frozen
class ReorderReplicas:
    """The same replicas in another order (the part of KIP-455 that moves no data)."""

    controller_epoch: int
    partitions: tuple[ReplicaOrder, ...]


@frozen
class ReplicasLost:
    """A broker's own logs of these partitions lack what they once held (RULES C1)."""

    controller_epoch: int
    broker_id: int
    broker_epoch: int
    partitions: tuple[PartitionId, ...]


@frozen
class TopicConfigs:
    """All settings of a topic, replacing `before` (compare-and-set)."""

    topic_id: UUID
    before: Mapping[str, str]
    after: Mapping[str, str]
    min_insync_replicas: int
    unclean_leader_election: bool


@frozen
class BrokerConfigs:
    """All dynamic settings of a broker ('' is the cluster default), replacing `before`."""

    broker: str
    """A key of `ClusterImage.configs`, so that groups' settings go the same way."""
    before: Mapping[str, str]
    after: Mapping[str, str]
    min_insync_replicas: int
    unclean_leader_election: bool
    """What topics without a setting of their own get; applied only for the cluster default."""


@frozen
class AlterConfigs:
    controller_epoch: int
    topics: tuple[TopicConfigs, ...]
    brokers: tuple[BrokerConfigs, ...]


@frozen
class AllocateProducerIds:
    controller_epoch: int
    broker_id: int
    broker_epoch: int
    count: int


@frozen
class PinVoterDirectory:
    """From now on only this directory speaks for the voter (RULES B3)."""

    controller_epoch: int
    node_id: int
    directory_id: UUID
    replaces: UUID | None
    """The pin that must hold now; None for a voter without one."""


@frozen
class FeatureLevel:
    controller_epoch: int
    name: str
    level: int


@frozen
class Digest:
    """The leader's digest of the image at `index`; a node that differs stops (RULES A3)."""

    controller_epoch: int
    index: int
    digest: bytes


Command = (
    NewController
    | RegisterBroker
    | FenceBroker
    | UnfenceBroker
    | SetControlledShutdown
    | UnregisterBroker
    | CreateTopics
    | DeleteTopics
    | CreatePartitions
    | AlterPartition
    | ElectLeaders
    | ReorderReplicas
    | ReplicasLost
    | AlterConfigs
    | AllocateProducerIds
    | PinVoterDirectory
    | FeatureLevel
    | Digest
)
