"""`HttpNode` over the parts of a running node."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TypeVar

from ...groups import OFFSETS_TOPIC, ClientContext, GroupCoordinator
from ...metadata.image import ClusterImage
from ...partitions import Replicas, Role
from ...raftlog import RaftLog, RaftStatus
from ...raftlog import Role as QuorumRole
from ...seam import Clock
from ...seam.fault_switches import FaultSwitches
from ...wire import ApiKey, ErrorCode, Message, api
from ...wire.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from ...wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)
from ...wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from ...wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from ...wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse
from ...wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from ...wire.messages.delete_groups import DeleteGroupsRequest
from ...wire.messages.delete_records import DeleteRecordsRequest, DeleteRecordsResponse
from ...wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from ...wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse
from ...wire.messages.describe_groups import DescribeGroupsRequest
from ...wire.messages.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse
from ...wire.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse
from ...wire.messages.envelope import EnvelopeRequest, EnvelopeResponse
from ...wire.messages.fetch import FetchRequest, FetchResponse
from ...wire.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from ...wire.messages.list_groups import ListGroupsRequest
from ...wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from ...wire.messages.offset_commit import OffsetCommitRequest
from ...wire.messages.offset_fetch import OffsetFetchRequest
from ...wire.messages.produce import ProduceRequest, ProduceResponse
from ..broker_lifecycle import BrokerLifecycle, BrokerState
from ..controller_client import ControllerClient, ControllerUnavailable
from ..handlers.describe_configs import described
from ..handlers.envelope import CALL_SEPARATOR
from ..loop_lag import LagSummary, LoopLag
from ..metadata_history import MetadataHistory
from ..producer_ids import NoProducerId
from ..services import Services
from .forwarding import Forwarder
from .ports import AnswerLost, LocalReplica, NodeCounters, Unreachable

Response = TypeVar("Response", bound=Message)

_STATES = {
    BrokerState.UNREGISTERED: "this node is not registered with the controller yet",
    BrokerState.FENCED: "this node is fenced: its logs are being recovered",
    BrokerState.LEAVING: "this node is shutting down",
    BrokerState.GONE: "this node is shutting down",
}


_GROUP_APIS: Mapping[type[Message], ApiKey] = MappingProxyType(
    {
        ListGroupsRequest: ApiKey.LIST_GROUPS,
        DescribeGroupsRequest: ApiKey.DESCRIBE_GROUPS,
        ConsumerGroupDescribeRequest: ApiKey.CONSUMER_GROUP_DESCRIBE,
        OffsetFetchRequest: ApiKey.OFFSET_FETCH,
        OffsetCommitRequest: ApiKey.OFFSET_COMMIT,
        DeleteGroupsRequest: ApiKey.DELETE_GROUPS,
        ConsumerGroupHeartbeatRequest: ApiKey.CONSUMER_GROUP_HEARTBEAT,
    }
)
"""The coordinator has a method by the name of each."""


class NodeForHttp:
    """One running node, as its HTTP API sees it."""

    def __init__(
        self,
        *,
        node_id: int,
        max_message_bytes: int,
        clock: Clock,
        image: Callable[[], ClusterImage],
        quorum: Callable[[], RaftStatus],
        lifecycle: Callable[[], BrokerLifecycle | None],
        replicas: Replicas,
        groups: GroupCoordinator,
        controller: ControllerClient,
        forwarder: Forwarder,
        loop_lag: LoopLag,
        requests: Mapping[ApiKey, int],
        services: Services,
        callers: Forwarder,
        history: MetadataHistory,
        quorum_log: RaftLog | None,
    ) -> None:
        """`controller`: of HTTP's own, since requests on one are answered in order. `lifecycle`:
        None while it is not made yet, because registration tells where HTTP listens. `callers`:
        a forwarder of their own for calls between HTTP parts, which may wait for long."""
        self._node_id = node_id
        self._max_message_bytes = max_message_bytes
        self._clock = clock
        self._image = image
        self._quorum = quorum
        self._lifecycle = lifecycle
        self._replicas = replicas
        self._groups = groups
        self._controller = controller
        self._forwarder = forwarder
        self._loop_lag = loop_lag
        self._requests = requests
        self._services = services
        self._callers = callers
        self._history = history
        self._quorum_log = quorum_log

    @property
    def node_id(self) -> int:
        return self._node_id

    @property
    def max_message_bytes(self) -> int:
        return self._max_message_bytes

    def now_ms(self) -> int:
        return self._clock.now_ms()

    def image(self) -> ClusterImage:
        return self._image()

    def why_not_ready(self) -> Sequence[str]:
        """Ready is: the controller hears this node and lets it lead, and this node's own image
        has come as far as saying so."""
        image = self._image()
        reasons = []
        if self._quorum().leader_id is None:
            reasons.append("the quorum has no leader")
        lifecycle = self._lifecycle()
        if lifecycle is None:
            reasons.append(_STATES[BrokerState.UNREGISTERED])
        elif lifecycle.state in _STATES:
            reasons.append(_STATES[lifecycle.state])
        elif not lifecycle.in_session:
            reasons.append("the controller has not answered this node for a session")
        own = image.brokers.get(self._node_id)
        if not reasons and (own is None or own.fenced):
            reasons.append("this node's view of the cluster is behind")
        return reasons

    def quorum_role(self) -> str:
        role = self._quorum().role
        # A candidate does not lead, and there is no word of its own for it outside.
        return "follower" if role is QuorumRole.CANDIDATE else role.value

    def quorum_status(self) -> RaftStatus:
        return self._quorum()

    def loop_lag(self) -> LagSummary:
        return self._loop_lag.summary()

    def counters(self) -> NodeCounters:
        return NodeCounters(
            traffic=self._replicas.traffic.seen(),
            replication=replace(self._replicas.counters),
            requests={key.name: count for key, count in self._requests.items()},
        )

    def local_replica(self, topic: str, partition: int) -> LocalReplica | None:
        state = self._replicas.partition_state(topic, partition)
        if state is None or state.role is Role.OFFLINE:
            return None
        return LocalReplica(
            state.role.value, state.high_watermark, state.log_start_offset, state.log_end_offset
        )

    async def produce(
        self, node_id: int, request: ProduceRequest, deadline: float
    ) -> ProduceResponse:
        if node_id != self._node_id:
            return await self._forward(node_id, ApiKey.PRODUCE, request, deadline, ProduceResponse)
        return await _in_time(self._replicas.produce(request, _newest(ApiKey.PRODUCE)), deadline)

    async def fetch(self, node_id: int, request: FetchRequest, deadline: float) -> FetchResponse:
        if node_id != self._node_id:
            return await self._forward(node_id, ApiKey.FETCH, request, deadline, FetchResponse)
        # A fetch without a session: who owns it makes no difference.
        fetched = self._replicas.fetch(request, _newest(ApiKey.FETCH), self, from_replica=False)
        return await _in_time(fetched, deadline)

    async def list_offsets(
        self, node_id: int, request: ListOffsetsRequest, deadline: float
    ) -> ListOffsetsResponse:
        if node_id != self._node_id:
            return await self._forward(
                node_id, ApiKey.LIST_OFFSETS, request, deadline, ListOffsetsResponse
            )
        return self._replicas.list_offsets(request, _newest(ApiKey.LIST_OFFSETS))

    async def delete_records(
        self, node_id: int, request: DeleteRecordsRequest, deadline: float
    ) -> DeleteRecordsResponse:
        if node_id != self._node_id:
            return await self._forward(
                node_id, ApiKey.DELETE_RECORDS, request, deadline, DeleteRecordsResponse
            )
        return await _in_time(self._replicas.delete_records(request), deadline)

    async def create_topics(
        self, request: CreateTopicsRequest, deadline: float
    ) -> CreateTopicsResponse:
        return await self._ask_controller(
            ApiKey.CREATE_TOPICS, request, deadline, CreateTopicsResponse
        )

    async def delete_topics(
        self, request: DeleteTopicsRequest, deadline: float
    ) -> DeleteTopicsResponse:
        return await self._ask_controller(
            ApiKey.DELETE_TOPICS, request, deadline, DeleteTopicsResponse
        )

    async def describe_quorum(
        self, request: DescribeQuorumRequest, deadline: float
    ) -> DescribeQuorumResponse:
        return await self._ask_controller(
            ApiKey.DESCRIBE_QUORUM, request, deadline, DescribeQuorumResponse
        )

    async def replace_voter(
        self, request: AddRaftVoterRequest, deadline: float
    ) -> AddRaftVoterResponse:
        return await self._ask_controller(
            ApiKey.ADD_RAFT_VOTER, request, deadline, AddRaftVoterResponse
        )

    async def ask_groups(
        self, node_id: int, request: Message, deadline: float, *, client_id: str = "http"
    ) -> Message:
        api_key = _GROUP_APIS[type(request)]
        if node_id != self._node_id:
            return await self._forwarder.ask(
                node_id, api_key, request, deadline, client_id=client_id
            )
        if isinstance(request, ConsumerGroupHeartbeatRequest):
            client = ClientContext(client_id, f"/node-{self._node_id}")
            beat = self._groups.consumer_group_heartbeat(request, _newest(api_key), client)
            return await _in_time(beat, deadline)
        answer: Callable[[Message, int], Awaitable[Message]]
        answer = getattr(self._groups, api_key.name.lower())
        return await _in_time(answer(request, _newest(api_key)), deadline)

    async def new_producer_id(self, deadline: float) -> int:
        try:
            return await self._services.producer_ids.next_id(deadline)
        except NoProducerId as error:
            raise Unreachable(str(error)) from error

    async def reorder_replicas(
        self, request: AlterPartitionReassignmentsRequest, deadline: float
    ) -> AlterPartitionReassignmentsResponse:
        return await self._ask_controller(
            ApiKey.ALTER_PARTITION_REASSIGNMENTS,
            request,
            deadline,
            AlterPartitionReassignmentsResponse,
        )

    async def elect_leaders(
        self, request: ElectLeadersRequest, deadline: float
    ) -> ElectLeadersResponse:
        return await self._ask_controller(
            ApiKey.ELECT_LEADERS, request, deadline, ElectLeadersResponse
        )

    def fault_switches(self) -> FaultSwitches | None:
        # Of the loop, where `--with-faults` has installed one that has them.
        return getattr(asyncio.get_running_loop(), "fault_switches", None)

    def quorum_log(self) -> RaftLog | None:
        return self._quorum_log

    def metadata_history(self) -> MetadataHistory:
        return self._history

    async def create_offsets_topic(self, deadline: float) -> None:
        await self._services.topic_creation.create([OFFSETS_TOPIC], deadline)
        await self._services.new_logs_open(deadline)

    async def create_partitions(
        self, request: CreatePartitionsRequest, deadline: float
    ) -> CreatePartitionsResponse:
        return await self._ask_controller(
            ApiKey.CREATE_PARTITIONS, request, deadline, CreatePartitionsResponse
        )

    async def alter_configs(
        self, request: IncrementalAlterConfigsRequest, deadline: float
    ) -> IncrementalAlterConfigsResponse:
        return await self._ask_controller(
            ApiKey.INCREMENTAL_ALTER_CONFIGS, request, deadline, IncrementalAlterConfigsResponse
        )

    async def describe_configs(
        self, node_id: int, request: DescribeConfigsRequest, deadline: float
    ) -> DescribeConfigsResponse:
        if node_id == self._node_id:
            return described(self._services, request)
        return await self._forward(
            node_id, ApiKey.DESCRIBE_CONFIGS, request, deadline, DescribeConfigsResponse
        )

    def serve_calls(self, part: str, answer: Callable[[bytes], Awaitable[bytes]]) -> None:
        self._services.http_calls[part] = answer

    async def call(self, node_id: int, part: str, question: bytes, deadline: float) -> bytes:
        data = part.encode() + CALL_SEPARATOR + question
        request = EnvelopeRequest(request_data=data, client_host_address=b"")
        answer = await self._callers.ask(node_id, ApiKey.ENVELOPE, request, deadline)
        assert isinstance(answer, EnvelopeResponse)
        if answer.error_code != ErrorCode.NONE or answer.response_data is None:
            raise Unreachable(f"node {node_id} does not serve HTTP yet")
        return answer.response_data

    async def _ask_controller(
        self, api_key: ApiKey, request: Message, deadline: float, kind: type[Response]
    ) -> Response:
        try:
            response = await self._controller.ask(api_key, request, deadline)
        except ControllerUnavailable as error:
            raise (AnswerLost if error.may_have_happened else Unreachable)(str(error)) from error
        assert isinstance(response, kind)
        return response

    async def _forward(
        self,
        node_id: int,
        api_key: ApiKey,
        request: Message,
        deadline: float,
        kind: type[Response],
    ) -> Response:
        response = await self._forwarder.ask(node_id, api_key, request, deadline)
        assert isinstance(response, kind)
        return response


def _newest(api_key: ApiKey) -> int:
    """Requests are made with both names and topic ids, so that any version finds its topic."""
    return api(api_key).max_stable_version


async def _in_time(work: Awaitable[Response], deadline: float) -> Response:
    try:
        async with asyncio.timeout_at(deadline):
            return await work
    except TimeoutError:
        raise AnswerLost("this node did not finish in time") from None
