"""What a group's coordinator says of it, for administrators: members, and committed offsets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from ...wire import ErrorCode, Message
from ...wire.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from ...wire.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from ...wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from .coordinators import ask_coordinator, unknown_group
from .errors import ApiError
from .group_views import Committed, classic_group_document, consumer_group_document
from .leaders import Leaders
from .partition_ends import Place
from .ports import HttpNode

Answer = TypeVar("Answer", bound=Message)


class GroupReading:
    """One group. Raises ApiError; 40405 when nobody ever used it."""

    def __init__(self, node: HttpNode, leaders: Leaders, group_id: str) -> None:
        self.group_id = group_id
        self._node = node
        self._leaders = leaders

    async def ask(
        self, question: Message, kind: type[Answer], error_of: Callable[[Answer], int]
    ) -> tuple[int, Answer]:
        """(node id, answer) of the coordinator."""
        return await ask_coordinator(
            self._node, self._leaders, self.group_id, question, kind, error_of
        )

    async def described(self) -> dict[str, Any]:
        """Both kinds of group; the classic answer is asked for first."""
        try:
            coordinator, classic = await self.ask(
                DescribeGroupsRequest(groups=[self.group_id]),
                DescribeGroupsResponse,
                lambda answer: answer.groups[0].error_code,
            )
            return classic_group_document(classic.groups[0], coordinator)
        except ApiError as error:
            if error.kafka_error is not ErrorCode.GROUP_ID_NOT_FOUND:
                raise
        try:
            coordinator, consumer = await self.ask(
                ConsumerGroupDescribeRequest(group_ids=[self.group_id]),
                ConsumerGroupDescribeResponse,
                lambda answer: answer.groups[0].error_code,
            )
            return consumer_group_document(consumer.groups[0], coordinator)
        except ApiError as error:
            if error.kafka_error is not ErrorCode.GROUP_ID_NOT_FOUND:
                raise
            raise unknown_group(self.group_id) from None

    async def committed(self) -> dict[Place, Committed]:
        """Of topics that exist."""
        wanted = OffsetFetchRequest.OffsetFetchRequestGroup(group_id=self.group_id, topics=None)
        _, answer = await self.ask(
            OffsetFetchRequest(groups=[wanted]),
            OffsetFetchResponse,
            lambda answer: answer.groups[0].error_code,
        )
        names = self._node.image().topic_names
        return {
            (names.get(topic.topic_id, topic.name), part.partition_index): Committed(
                part.committed_offset, part.committed_leader_epoch, part.metadata or ""
            )
            for topic in answer.groups[0].topics
            for part in topic.partitions
            if part.committed_offset >= 0 and (topic.topic_id in names or topic.name)
        }
