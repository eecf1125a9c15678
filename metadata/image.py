"""The cluster image: what everybody agrees on, immutable to its readers.

A new image is made for every applied command; parts are handed the change in log order and never
see half a command. This file is the only one of `metadata` that `partitions` and `groups` import.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from types import MappingProxyType
from typing import Any
from uuid import UUID

from ..seam import frozen

NO_LEADER = -1
"""`PartitionImage.leader` while no eligible replica lives."""

FAILED_SYNC_EPOCH = -2
"""Instead of a previous broker epoch: the process before ended because a sync failed (RULES C1)."""

LOST_DIRECTORY = UUID(int=1)
"""Kafka's directory id for replicas whose disk is gone (KIP-858): how a broker says so."""


def _empty() -> Mapping[Any, Any]:
    return MappingProxyType({})


@frozen
class Endpoint:
    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


@frozen
class BrokerImage:
    """A registered broker, living or fenced."""

    node_id: int
    broker_epoch: int
    """Index of the RegisterBroker command of this incarnation; grows with every restart."""
    incarnation_id: UUID
    directory_id: UUID
    kafka: Endpoint
    """Where clients are sent (advertised listener)."""
    internode: Endpoint
    """Where other nodes connect (RULES B5)."""
    http: Endpoint | None
    rack: str | None
    fenced: bool
    in_controlled_shutdown: bool
    """Still serving, but takes no new leadership and joins no ISR (RULES B6)."""
    controlled_shutdown_index: int = -1
    """Index of the command that set `in_controlled_shutdown`, -1 otherwise (RULES B6)."""
    min_level: int = 1
    max_level: int = 1
    """The levels of `logboat.version` that this incarnation can apply (RULES A2)."""

    @property
    def active(self) -> bool:
        """May lead and may join an ISR (RULES D3)."""
        return not self.fenced and not self.in_controlled_shutdown


@frozen
class PartitionImage:
    """One partition. Broker lists hold node ids; the first replica is the preferred leader."""

    partition: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    """Node id, or NO_LEADER."""
    leader_epoch: int
    """Grows with every change of leader and every restart of the leader (RULES B1)."""
    partition_epoch: int
    """Grows with every change of any field: the compare-and-set token of AlterPartition."""
    elr: tuple[int, ...] = ()
    """Eligible leader replicas outside the ISR that hold every committed record (KIP-966)."""
    last_known_elr: tuple[int, ...] = ()
    last_known_leader: int = NO_LEADER
    adding_replicas: tuple[int, ...] = ()
    removing_replicas: tuple[int, ...] = ()


@frozen
class TopicImage:
    name: str
    topic_id: UUID
    partitions: tuple[PartitionImage, ...]
    """By partition number, without gaps."""
    min_insync_replicas: int
    """Resolved when the topic was created or altered, so that apply needs no defaults (A1)."""
    flush_messages: int
    """1: synced mode; anything else: page-cache mode. Fixed at creation (RULES C1)."""
    configs: Mapping[str, str] = field(default_factory=_empty)
    """Settings given for this topic, in Kafka's names and as text; defaults are not in here."""
    unclean_leader_election: bool = False
    """Resolved like `min_insync_replicas`: may a replica that lacks committed records lead (D8)?"""

    @property
    def synced(self) -> bool:
        return self.flush_messages == 1


@frozen
class ClusterImage:
    """The state after applying the command at `index`."""

    index: int
    """Index of the last applied command; 0 before the first."""
    cluster_id: str
    controller_id: int
    """Node whose NewController command was applied last, -1 before the first (RULES A4)."""
    controller_epoch: int
    """Index of that command."""
    controller_term: int
    """Raft term it was made in."""
    features: Mapping[str, int] = field(default_factory=_empty)
    brokers: Mapping[int, BrokerImage] = field(default_factory=_empty)
    topics: Mapping[str, TopicImage] = field(default_factory=_empty)
    """By name."""
    topic_names: Mapping[UUID, str] = field(default_factory=_empty)
    configs: Mapping[str, Mapping[str, str]] = field(default_factory=_empty)
    """Dynamic settings: a broker's by its node id as text, those of all brokers under '', a group's
    under what `group_configs.py` makes of its name."""
    next_producer_id: int = 0
    voter_directories: Mapping[int, UUID] = field(default_factory=_empty)
    """Pinned directory id of each voter (RULES B3)."""
    dedupe: Mapping[tuple[int, str], tuple[int, int, bytes]] = field(default_factory=_empty)
    """(broker id, command kind) -> (broker epoch, last sequence, encoded result) (RULES A5)."""

    def topic_by_id(self, topic_id: UUID) -> TopicImage | None:
        name = self.topic_names.get(topic_id)
        return None if name is None else self.topics.get(name)

    def partition(self, topic: str, partition: int) -> PartitionImage | None:
        found = self.topics.get(topic)
        if found is None or not 0 <= partition < len(found.partitions):
            return None
        return found.partitions[partition]


@frozen
class ImageChange:
    """One step of the image, handed to every part in log order.

    After a snapshot jump one change covers many commands: it is computed by comparing images by
    topic id, so a topic deleted and created again under its name shows as both (RULES A7).
    """

    before: ClusterImage
    after: ClusterImage
    deleted_topics: tuple[TopicImage, ...] = ()
    """As they were in `before`."""
    changed_topics: tuple[TopicImage, ...] = ()
    """New or changed in any way, as they are in `after`; sorted by name."""
    changed_brokers: tuple[int, ...] = ()
    """Registered, fenced, unfenced, shutting down or gone; sorted."""
