"""A node in memory that coordinates groups, with a real coordinator over a log in memory."""

from __future__ import annotations

from random import Random

from logboat.groups import OFFSETS_TOPIC, ClientContext, GroupCoordinator, GroupSettings
from logboat.wire import Message
from logboat.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from logboat.wire.messages.delete_groups import DeleteGroupsRequest
from logboat.wire.messages.describe_groups import DescribeGroupsRequest
from logboat.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from logboat.wire.messages.offset_commit import OffsetCommitRequest
from logboat.wire.messages.offset_fetch import OffsetFetchRequest
from tests.groups.memory_store import MemoryStore
from tests.http.fake_http_node import FakeNode, topic

CLIENT = ClientContext("reader", "/127.0.0.1")


class GroupNode(FakeNode):
    """Node 1 of three; it coordinates every group, the other two coordinate none."""

    def __init__(self) -> None:
        super().__init__()
        self.add(topic(OFFSETS_TOPIC, leaders=[1]))
        self.coordinator = GroupCoordinator(
            node_id=1,
            store=MemoryStore(),
            image=self.image,
            settings=GroupSettings(initial_rebalance_delay_ms=0),
            clock=self,
            rng=Random(1),
            on_fatal=self._fail,
        )

    def _fail(self, error: BaseException) -> None:
        raise error

    async def ask_groups(
        self, node_id: int, request: Message, deadline: float, *, client_id: str = "http"
    ) -> Message:
        self._ask(node_id)
        if node_id != 1:
            assert isinstance(request, ListGroupsRequest)
            return ListGroupsResponse()
        match request:
            case ListGroupsRequest():
                return await self.coordinator.list_groups(request, 5)
            case DescribeGroupsRequest():
                return await self.coordinator.describe_groups(request, 6)
            case ConsumerGroupDescribeRequest():
                return await self.coordinator.consumer_group_describe(request, 1)
            case OffsetFetchRequest():
                return await self.coordinator.offset_fetch(request, 10)
            case OffsetCommitRequest():
                return await self.coordinator.offset_commit(request, 10)
            case DeleteGroupsRequest():
                return await self.coordinator.delete_groups(request, 3)
        raise AssertionError(request)
