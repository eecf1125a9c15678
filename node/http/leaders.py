"""Finding a partition's leader, and making sure of it before anything is written there.

This node's image may be ahead of the leader's, which has yet to open its log, or behind an
election. A leader that refuses a produce may have appended it all the same before it lost its
epoch (RULES D5), so a refused write must not be sent again blindly. Instead the first request to a
leader in a new epoch is a question that changes nothing; it is asked until the leader agrees.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar
from uuid import UUID

from ...metadata.image import NO_LEADER, PartitionImage, TopicImage
from ...wire import ErrorCode
from ...wire.messages.list_offsets import ListOffsetsRequest
from .errors import ApiError, answer_lost, from_kafka, no_partition, node_unreachable
from .ports import AnswerLost, HttpNode, Unreachable

Result = TypeVar("Result")

LEADER_SECONDS = 5.0
"""How long a request waits for a leader: longer than an election after a controller's death."""

MAX_AGREED = 10_000
"""Partitions remembered; above it all are asked again."""

_PAUSE_S = 0.01
_PAUSE_MAX_S = 0.1

_LATEST = -1

NOT_THERE_YET = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.BROKER_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    }
)
"""Answers to reads that another moment, or another leader, may give differently."""


class Leaders:
    """Which leaders have agreed to be one, by partition and leader epoch."""

    def __init__(self, node: HttpNode, *, patience_seconds: float = LEADER_SECONDS) -> None:
        self._node = node
        self._patience = patience_seconds
        self._agreed: dict[tuple[UUID, int], int] = {}
        """Leader epoch in which the leader answered."""

    def give_up_at(self) -> float:
        """Loop time until which a request that begins now waits for a leader."""
        return asyncio.get_running_loop().time() + self._patience

    async def for_writing(self, topic: str, partition: int, give_up_at: float) -> int:
        """The node that leads and says so. Raises ApiError; nothing was written then."""

        async def agree(leader: int) -> int:
            found, image = self._find(topic, partition)
            key = (found.topic_id, partition)
            if self._agreed.get(key) != image.leader_epoch:
                await self._ask_whether_it_leads(leader, topic, image)
                if len(self._agreed) >= MAX_AGREED:
                    self._agreed.clear()
                self._agreed[key] = image.leader_epoch
            return leader

        return await self.reading(topic, partition, agree, give_up_at)

    async def reading(
        self,
        topic: str,
        partition: int,
        read: Callable[[int], Awaitable[Result]],
        give_up_at: float,
    ) -> Result:
        """What `read(leader)` gives, asked again while there is no leader or it does not know yet.

        `read` changes nothing; it raises ApiError, Unreachable or AnswerLost.
        """
        loop = asyncio.get_running_loop()
        pause = _PAUSE_S
        while True:
            _, image = self._find(topic, partition)
            problem = from_kafka(ErrorCode.LEADER_NOT_AVAILABLE)
            if image.leader != NO_LEADER:
                try:
                    return await read(image.leader)
                except Unreachable:
                    problem = node_unreachable(image.leader)
                except AnswerLost:
                    problem = answer_lost(image.leader, writes=False)
                except ApiError as error:
                    if error.kafka_error not in NOT_THERE_YET:
                        raise
                    problem = error
            if loop.time() + pause > give_up_at:
                raise problem
            await asyncio.sleep(pause)
            pause = min(_PAUSE_MAX_S, 2 * pause)

    def _find(self, topic: str, partition: int) -> tuple[TopicImage, PartitionImage]:
        found = self._node.image().topics.get(topic)
        if found is None:
            raise from_kafka(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {topic!r}")
        if partition >= len(found.partitions):
            raise no_partition(topic, partition, len(found.partitions))
        return found, found.partitions[partition]

    async def _ask_whether_it_leads(self, leader: int, topic: str, image: PartitionImage) -> None:
        where = ListOffsetsRequest.ListOffsetsPartition(
            partition_index=image.partition,
            current_leader_epoch=image.leader_epoch,
            timestamp=_LATEST,
        )
        request = ListOffsetsRequest(
            replica_id=-1,
            topics=[ListOffsetsRequest.ListOffsetsTopic(name=topic, partitions=[where])],
        )
        deadline = asyncio.get_running_loop().time() + self._patience
        response = await self._node.list_offsets(leader, request, deadline)
        error = response.topics[0].partitions[0].error_code
        # Its watermark may be behind the start of its epoch (KIP-207); it leads all the same.
        if error not in (ErrorCode.NONE, ErrorCode.OFFSET_NOT_AVAILABLE):
            raise from_kafka(error)
