"""Members of groups on bare connections, so that a measurement is of the coordinator alone."""

from __future__ import annotations

import asyncio
import struct
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeVar
from uuid import UUID, uuid4

from logboat.groups import OFFSETS_TOPIC, partition_for
from logboat.testing import LocalCluster
from logboat.wire import ApiKey, ErrorCode, Message, RequestHeader, decode_response, encode_request
from logboat.wire.coordinator_records.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)
from logboat.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from logboat.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from logboat.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from logboat.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from logboat.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse

Answer = TypeVar("Answer", bound=Message)
Beat = TypeVar("Beat", HeartbeatResponse, ConsumerGroupHeartbeatResponse)

REBALANCE_TIMEOUT_MS = 60_000
RETRY_S = 0.1
"""After an error."""

PROTOCOL_TYPE = "consumer"
ASSIGNOR = "range"

AssignedTopic = ConsumerProtocolAssignment.TopicPartition
GivenAssignment = SyncGroupRequest.SyncGroupRequestAssignment
Owned = ConsumerGroupHeartbeatRequest.TopicPartitions


class Connection:
    """One request at a time; each answer within `timeout_s`."""

    def __init__(self, address: str, *, timeout_s: float = 30.0) -> None:
        self._host, _, port = address.rpartition(":")
        self._port = int(port)
        self._timeout_s = timeout_s
        self._correlation_id = 0
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._turn = asyncio.Lock()

    async def ask(self, key: ApiKey, version: int, request: Message, kind: type[Answer]) -> Answer:
        async with self._turn, asyncio.timeout(self._timeout_s):
            if self._streams is None:
                self._streams = await asyncio.open_connection(self._host, self._port)
            reader, writer = self._streams
            self._correlation_id += 1
            header = RequestHeader(
                api_key=key,
                api_version=version,
                correlation_id=self._correlation_id,
                client_id="benchmark",
            )
            frame = b"".join(encode_request(header, request))
            writer.write(struct.pack(">i", len(frame)) + frame)
            (length,) = struct.unpack(">i", await reader.readexactly(4))
            response = decode_response(header, await reader.readexactly(length))
            assert isinstance(response, kind)
            return response

    def cut(self) -> None:
        """As the system does for a process that was killed."""
        if self._streams is not None:
            self._streams[1].transport.abort()


@dataclass
class Beats:
    """What the members' heartbeats came to."""

    seconds: list[float] = field(default_factory=list)
    """Until each answer."""
    errors: dict[str, int] = field(default_factory=dict)

    def note(self, seconds: float, error: int) -> None:
        self.seconds.append(seconds)
        # "Rebalance in progress" is news, not a failure.
        if error not in (ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS):
            name = ErrorCode(error).name
            self.errors[name] = self.errors.get(name, 0) + 1


class Member(ABC):
    """Joins, keeps its place, and says when what it reads has changed."""

    def __init__(self, address: str, group_id: str, topic: Topic, *, interval_s: float) -> None:
        self.group_id = group_id
        self.beats = Beats()
        self.owned: set[int] = set()
        self.on_change: Callable[[], None] = lambda: None
        self.member_id = ""
        self._topic = topic
        self._connection = Connection(address)
        self._interval_s = interval_s
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._live())

    async def _live(self) -> None:
        await self.join()
        while True:
            await asyncio.sleep(self._interval_s)
            await self.beat()

    async def _timed(self, key: ApiKey, version: int, request: Message, kind: type[Beat]) -> Beat:
        """A heartbeat: asked and answered; what the member does about the answer is not its
        time."""
        loop = asyncio.get_running_loop()
        asked = loop.time()
        answer = await self._connection.ask(key, version, request, kind)
        self.beats.note(loop.time() - asked, answer.error_code)
        return answer

    def _reads(self, partitions: set[int]) -> None:
        self.owned = partitions
        self.on_change()

    async def kill(self) -> None:
        """Nothing is said to the coordinator."""
        self._connection.cut()
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError, OSError, EOFError):
                await self._task

    def check(self) -> None:
        """Raise what ended it."""
        if self._task is not None and self._task.done():
            self._task.result()

    @abstractmethod
    async def join(self) -> None: ...

    @abstractmethod
    async def beat(self) -> None: ...

    @abstractmethod
    async def leave(self) -> None: ...


@dataclass(frozen=True)
class Topic:
    name: str
    topic_id: UUID
    partitions: int


class ClassicMember(Member):
    """The eager way; a leader deals the partitions out."""

    def __init__(
        self, address: str, group_id: str, topic: Topic, *, interval_s: float, session_ms: int
    ) -> None:
        super().__init__(address, group_id, topic, interval_s=interval_s)
        self._session_ms = session_ms
        self._generation_id = -1

    async def join(self) -> None:
        while not await self._join_once():
            pass

    async def _join_once(self) -> bool:
        subscription = ConsumerProtocolSubscription(topics=[self._topic.name]).encode_versioned(3)
        protocol = JoinGroupRequest.JoinGroupRequestProtocol(name=ASSIGNOR, metadata=subscription)
        request = JoinGroupRequest(
            group_id=self.group_id,
            session_timeout_ms=self._session_ms,
            rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
            member_id=self.member_id,
            protocol_type=PROTOCOL_TYPE,
            protocols=[protocol],
        )
        joined = await self._connection.ask(ApiKey.JOIN_GROUP, 9, request, JoinGroupResponse)
        if joined.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = joined.member_id
            return False
        if joined.error_code == ErrorCode.REBALANCE_IN_PROGRESS:
            return False
        if joined.error_code:
            self.beats.note(0, joined.error_code)
            await asyncio.sleep(RETRY_S)
            if joined.error_code == ErrorCode.UNKNOWN_MEMBER_ID:
                self.member_id = ""
            return False
        self._generation_id = joined.generation_id
        given = self._deal([m.member_id for m in joined.members])
        sync = SyncGroupRequest(
            group_id=self.group_id,
            generation_id=self._generation_id,
            member_id=self.member_id,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=ASSIGNOR,
            assignments=given,
        )
        synced = await self._connection.ask(ApiKey.SYNC_GROUP, 5, sync, SyncGroupResponse)
        if synced.error_code:
            return False
        decoded = ConsumerProtocolAssignment.decode_versioned(synced.assignment)
        self._reads({n for t in decoded.assigned_partitions for n in t.partitions})
        return True

    def _deal(self, members: list[str]) -> list[GivenAssignment]:
        """Empty unless this member leads."""
        return [
            GivenAssignment(
                member_id=name,
                assignment=ConsumerProtocolAssignment(
                    assigned_partitions=[
                        AssignedTopic(
                            topic=self._topic.name,
                            partitions=list(range(place, self._topic.partitions, len(members))),
                        )
                    ]
                ).encode_versioned(3),
            )
            for place, name in enumerate(members)
        ]

    async def beat(self) -> None:
        request = HeartbeatRequest(
            group_id=self.group_id, generation_id=self._generation_id, member_id=self.member_id
        )
        answer = await self._timed(ApiKey.HEARTBEAT, 4, request, HeartbeatResponse)
        if answer.error_code:
            await self.join()

    async def leave(self) -> None:
        identity = LeaveGroupRequest.MemberIdentity(member_id=self.member_id)
        request = LeaveGroupRequest(group_id=self.group_id, members=[identity])
        await self._connection.ask(ApiKey.LEAVE_GROUP, 5, request, LeaveGroupResponse)
        await self.kill()


class ConsumerMember(Member):
    """KIP-848's: it beats as often as it is told, and at once when it has given something up."""

    def __init__(self, address: str, group_id: str, topic: Topic) -> None:
        super().__init__(address, group_id, topic, interval_s=5.0)
        self.member_id = str(uuid4())
        self._epoch = 0

    async def join(self) -> None:
        self._epoch = 0
        self.owned = set()
        await self.beat()

    async def beat(self) -> None:
        joins = self._epoch == 0
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group_id,
            member_id=self.member_id,
            member_epoch=self._epoch,
            rebalance_timeout_ms=REBALANCE_TIMEOUT_MS if joins else -1,
            subscribed_topic_names=[self._topic.name] if joins else None,
            topic_partitions=self._owned(),
        )
        answer = await self._timed(
            ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, request, ConsumerGroupHeartbeatResponse
        )
        if answer.error_code:
            await asyncio.sleep(RETRY_S)
            await self.join()
            return
        self._epoch = answer.member_epoch
        self._interval_s = answer.heartbeat_interval_ms / 1000
        if answer.assignment is not None:
            before = self.owned
            self._reads({n for t in answer.assignment.topic_partitions for n in t.partitions})
            if before - self.owned:
                await self.beat()

    def _owned(self) -> list[Owned]:
        if not self.owned:
            return []
        return [Owned(topic_id=self._topic.topic_id, partitions=sorted(self.owned))]

    async def leave(self) -> None:
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group_id, member_id=self.member_id, member_epoch=-1
        )
        await self._connection.ask(
            ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, request, ConsumerGroupHeartbeatResponse
        )
        await self.kill()


def coordinator_of(cluster: LocalCluster, group_id: str, offsets_partitions: int) -> int:
    """Node id; the offsets topic is there."""
    return cluster.leader_of(OFFSETS_TOPIC, partition_for(group_id, offsets_partitions))
