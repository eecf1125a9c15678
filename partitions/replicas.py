"""All replicas of this node: the one door for requests, image changes and the groups part."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from random import Random
from uuid import UUID

from ..metadata.image import ImageChange
from ..seam import Buffer, Clock, Disk, OnFatal
from ..wire import ErrorCode
from ..wire.messages.fetch import FetchRequest, FetchResponse
from ..wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from ..wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from ..wire.messages.produce import ProduceRequest, ProduceResponse
from .peer import AlterPartitionSender, PeerConnector
from .replication_config import ReplicationConfig
from .storage import LogDirectory, LogRead


class Role(Enum):
    OFFLINE = "offline"
    LEADER = "leader"
    FOLLOWER = "follower"


@dataclass(frozen=True, slots=True)
class PartitionState:
    topic: str
    partition: int
    topic_id: UUID
    role: Role
    leader_id: int
    leader_epoch: int
    isr: tuple[int, ...]
    high_watermark: int
    log_start_offset: int
    log_end_offset: int
    synced_offset: int


@dataclass(frozen=True, slots=True)
class AppendOutcome:
    error: ErrorCode
    base_offset: int = -1


OnLeadership = Callable[[str, int, bool, int], None]
"""(topic, partition, leader?, leader epoch)."""


class Replicas:
    def __init__(
        self,
        *,
        node_id: int,
        log_directory: LogDirectory,
        config: ReplicationConfig,
        broker_configs: Mapping[str, str],
        disk: Disk,
        clock: Clock,
        rng: Random,
        controller: AlterPartitionSender,
        peers: PeerConnector,
        on_fatal: OnFatal,
    ) -> None:
        raise NotImplementedError

    async def start(self) -> None:
        raise NotImplementedError

    async def stop(self) -> None:
        raise NotImplementedError

    def on_image(self, change: ImageChange) -> None:
        raise NotImplementedError

    def set_broker_epoch(self, epoch: int) -> None:
        raise NotImplementedError

    def subscribe_leadership(self, on_leadership: OnLeadership) -> None:
        raise NotImplementedError

    async def wait_recovered(self) -> None:
        """Every log that the image gives this node is open (before asking to be unfenced)."""
        raise NotImplementedError

    async def produce(self, request: ProduceRequest, version: int) -> ProduceResponse:
        raise NotImplementedError

    async def fetch(
        self, request: FetchRequest, version: int, session_owner: object, *, from_replica: bool
    ) -> FetchResponse:
        raise NotImplementedError

    def forget_sessions(self, session_owner: object) -> None:
        """The owner's connection is closed."""
        raise NotImplementedError

    def list_offsets(
        self, request: ListOffsetsRequest, version: int, *, from_replica: bool = False
    ) -> ListOffsetsResponse:
        raise NotImplementedError

    def offset_for_leader_epoch(
        self, request: OffsetForLeaderEpochRequest, version: int
    ) -> OffsetForLeaderEpochResponse:
        raise NotImplementedError

    async def append(
        self, topic: str, partition: int, records: Buffer, *, deadline: float, acks: int = -1
    ) -> AppendOutcome:
        raise NotImplementedError

    def read_local(self, topic: str, partition: int, offset: int, max_bytes: int) -> LogRead:
        raise NotImplementedError

    def partition_state(self, topic: str, partition: int) -> PartitionState | None:
        raise NotImplementedError
