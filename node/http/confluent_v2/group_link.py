"""The way of a consumer instance to the coordinator of its group, wherever that is now."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from uuid import UUID

from ....groups import OFFSETS_TOPIC
from ....seam import frozen
from ....wire import ErrorCode
from ....wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from ....wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from ....wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from ..coordinators import ask_coordinator
from ..errors import from_kafka
from ..leaders import Leaders
from ..ports import HttpNode
from .membership import Place

CREATION_SECONDS = 5.0

FetchGroup = OffsetFetchRequest.OffsetFetchRequestGroup
CommitTopic = OffsetCommitRequest.OffsetCommitRequestTopic
CommitPartition = CommitTopic.OffsetCommitRequestPartition

_ELSEWHERE = frozenset({ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS})
"""Answers that another moment, or another coordinator, gives differently."""


@frozen
class CommittedOffset:
    offset: int
    metadata: str = ""


class GroupLink:
    """Raises ApiError where the coordinator refuses or cannot be asked in time."""

    def __init__(self, node: HttpNode, leaders: Leaders, group_id: str, client_id: str) -> None:
        self._node = node
        self._leaders = leaders
        self._group_id = group_id
        self._client_id = client_id

    async def ready(self) -> None:
        """The first group of a cluster makes the topic that groups live in."""
        if OFFSETS_TOPIC not in self._node.image().topics:
            deadline = asyncio.get_running_loop().time() + CREATION_SECONDS
            await self._node.create_offsets_topic(deadline)

    async def beat(self, request: ConsumerGroupHeartbeatRequest) -> ConsumerGroupHeartbeatResponse:
        """What the coordinator has to say about the member, refusals included."""
        await self.ready()
        _, answer = await ask_coordinator(
            self._node,
            self._leaders,
            self._group_id,
            request,
            ConsumerGroupHeartbeatResponse,
            lambda answer: answer.error_code if answer.error_code in _ELSEWHERE else 0,
            client_id=self._client_id,
        )
        return answer

    async def commit(
        self, offsets: Mapping[Place, CommittedOffset], *, member_id: str, epoch: int
    ) -> None:
        """Returns when all of it is replicated. `member_id` "" with epoch -1: no member."""
        await self.ready()
        by_topic: dict[UUID, list[CommitPartition]] = {}
        for (topic_id, partition), committed in offsets.items():
            by_topic.setdefault(topic_id, []).append(
                CommitPartition(
                    partition_index=partition,
                    committed_offset=committed.offset,
                    committed_metadata=committed.metadata,
                )
            )
        request = OffsetCommitRequest(
            group_id=self._group_id,
            generation_id_or_member_epoch=epoch,
            member_id=member_id,
            topics=[
                CommitTopic(topic_id=topic_id, partitions=parts)
                for topic_id, parts in by_topic.items()
            ],
        )
        await ask_coordinator(
            self._node,
            self._leaders,
            self._group_id,
            request,
            OffsetCommitResponse,
            _first_error,
            client_id=self._client_id,
        )

    async def committed(self, places: Iterable[Place]) -> dict[Place, CommittedOffset]:
        """Where the group has committed; other partitions are left out."""
        await self.ready()
        by_topic: dict[UUID, list[int]] = {}
        for topic_id, partition in places:
            by_topic.setdefault(topic_id, []).append(partition)
        topics = [
            FetchGroup.OffsetFetchRequestTopics(topic_id=topic_id, partition_indexes=numbers)
            for topic_id, numbers in by_topic.items()
        ]
        _, answer = await ask_coordinator(
            self._node,
            self._leaders,
            self._group_id,
            OffsetFetchRequest(groups=[FetchGroup(group_id=self._group_id, topics=topics)]),
            OffsetFetchResponse,
            lambda answer: answer.groups[0].error_code,
            client_id=self._client_id,
        )
        found = {}
        for topic in answer.groups[0].topics:
            for part in topic.partitions:
                if part.error_code:
                    raise from_kafka(part.error_code)
                if part.committed_offset >= 0:
                    found[topic.topic_id, part.partition_index] = CommittedOffset(
                        part.committed_offset, part.metadata or ""
                    )
        return found


def _first_error(answer: OffsetCommitResponse) -> int:
    codes = [part.error_code for topic in answer.topics for part in topic.partitions]
    return next((code for code in codes if code), 0)
