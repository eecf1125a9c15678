"""What the HTTP API needs from the node it stands in; `adapter.py` gives it.

Requests and responses are the wire's own objects, addressed to a node: how they get there (a
function call for this node, the inter-node channel for another) is not this part's business.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol

from ...metadata.image import ClusterImage
from ...partitions import ReplicationCounters, TopicTraffic
from ...raftlog import LogPage, RaftStatus, TransferOutcome
from ...seam import frozen
from ...seam.fault_switches import FaultSwitches
from ...wire import Message
from ...wire.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from ...wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)
from ...wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse
from ...wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from ...wire.messages.delete_records import DeleteRecordsRequest, DeleteRecordsResponse
from ...wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from ...wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse
from ...wire.messages.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse
from ...wire.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse
from ...wire.messages.fetch import FetchRequest, FetchResponse
from ...wire.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from ...wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from ...wire.messages.produce import ProduceRequest, ProduceResponse
from ..loop_lag import LagSummary
from ..metadata_history import MetadataHistory


class Unreachable(Exception):
    """The node could not be asked: what was requested did not happen."""


class AnswerLost(Exception):
    """The node was asked and did not answer in time: what was requested may have happened."""


@frozen
class LocalReplica:
    """What this node knows of a partition it holds."""

    role: str
    """leader or follower."""
    high_watermark: int
    log_start_offset: int
    log_end_offset: int


@frozen
class NodeCounters:
    """What this node has counted since its process began; a copy."""

    traffic: tuple[TopicTraffic, ...]
    replication: ReplicationCounters
    requests: Mapping[str, int]
    """Of Kafka's protocol, from clients and other nodes, by API."""


class QuorumLog(Protocol):
    """A voter's log of the metadata."""

    def page(self, start: int | None, limit: int) -> LogPage: ...

    async def transfer(self, voter: int) -> TransferOutcome:
        """Have another voter lead; answers within an election timeout."""
        ...


class HttpNode(Protocol):
    """One node. Deadlines are times of the running loop; every call answers by then or raises
    `Unreachable` or `AnswerLost`."""

    @property
    def node_id(self) -> int: ...

    @property
    def max_message_bytes(self) -> int:
        """Largest record batch that a topic takes by default (`message.max.bytes`)."""
        ...

    def now_ms(self) -> int:
        """Wall clock, for the timestamps of records that bring none."""
        ...

    def image(self) -> ClusterImage: ...

    def why_not_ready(self) -> Sequence[str]:
        """Sentences; empty when the node is registered, unfenced and follows the controller."""
        ...

    def quorum_role(self) -> str:
        """leader, follower or observer."""
        ...

    def quorum_status(self) -> RaftStatus: ...

    def loop_lag(self) -> LagSummary: ...

    def counters(self) -> NodeCounters: ...

    def local_replica(self, topic: str, partition: int) -> LocalReplica | None:
        """None unless this node holds a replica of the partition."""
        ...

    async def produce(
        self, node_id: int, request: ProduceRequest, deadline: float
    ) -> ProduceResponse: ...

    async def fetch(self, node_id: int, request: FetchRequest, deadline: float) -> FetchResponse:
        """As a consumer: nothing above the high watermark."""
        ...

    async def new_producer_id(self, deadline: float) -> int:
        """Unique for ever. Raises Unreachable when none could be had."""
        ...

    async def list_offsets(
        self, node_id: int, request: ListOffsetsRequest, deadline: float
    ) -> ListOffsetsResponse: ...

    async def delete_records(
        self, node_id: int, request: DeleteRecordsRequest, deadline: float
    ) -> DeleteRecordsResponse: ...

    async def create_topics(
        self, request: CreateTopicsRequest, deadline: float
    ) -> CreateTopicsResponse:
        """By the active controller; answers after this node's image has followed (RULES A6)."""
        ...

    async def delete_topics(
        self, request: DeleteTopicsRequest, deadline: float
    ) -> DeleteTopicsResponse:
        """As `create_topics`."""
        ...

    async def reorder_replicas(
        self, request: AlterPartitionReassignmentsRequest, deadline: float
    ) -> AlterPartitionReassignmentsResponse:
        """As `create_topics`. Only the order of a partition's replicas can be changed."""
        ...

    async def elect_leaders(
        self, request: ElectLeadersRequest, deadline: float
    ) -> ElectLeadersResponse:
        """As `create_topics`."""
        ...

    def fault_switches(self) -> FaultSwitches | None:
        """None unless the node was started with faults."""
        ...

    def metadata_history(self) -> MetadataHistory: ...

    async def describe_quorum(
        self, request: DescribeQuorumRequest, deadline: float
    ) -> DescribeQuorumResponse:
        """As the quorum's leader sees it."""
        ...

    async def replace_voter(
        self, request: AddRaftVoterRequest, deadline: float
    ) -> AddRaftVoterResponse:
        """As `create_topics`."""
        ...

    async def ask_groups(
        self, node_id: int, request: Message, deadline: float, *, client_id: str = "http"
    ) -> Message:
        """A request about groups to the coordinator on that node; the response of its kind.
        `client_id`: as members are shown."""
        ...

    async def create_offsets_topic(self, deadline: float) -> None:
        """What groups need and the first of them makes; returns by `deadline`, made or not."""
        ...

    async def create_partitions(
        self, request: CreatePartitionsRequest, deadline: float
    ) -> CreatePartitionsResponse:
        """As `create_topics`."""
        ...

    async def alter_configs(
        self, request: IncrementalAlterConfigsRequest, deadline: float
    ) -> IncrementalAlterConfigsResponse:
        """As `create_topics`."""
        ...

    async def describe_configs(
        self, node_id: int, request: DescribeConfigsRequest, deadline: float
    ) -> DescribeConfigsResponse:
        """A broker's settings are known to itself alone; topics' to every node."""
        ...

    def quorum_log(self) -> QuorumLog | None:
        """None for an observer, which keeps none."""
        ...

    def serve_calls(self, part: str, answer: Callable[[bytes], Awaitable[bytes]]) -> None:
        """`answer` gets what the HTTP part of another node asks of this one by `call`."""
        ...

    async def call(self, node_id: int, part: str, question: bytes, deadline: float) -> bytes:
        """What the HTTP part of another node answers. It stops working on it when this is
        cancelled or the channel between the two is lost."""
        ...
