"""A node in memory: an image that tests set, logs that hold real batches."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any
from uuid import UUID

from logboat.metadata.image import (
    NO_LEADER,
    BrokerImage,
    ClusterImage,
    Endpoint,
    PartitionImage,
    TopicImage,
)
from logboat.node.http.ports import (
    AnswerLost,
    LocalReplica,
    NodeCounters,
    QuorumLog,
    Unreachable,
)
from logboat.node.loop_lag import LagSummary
from logboat.node.metadata_history import MetadataHistory
from logboat.partitions import ReplicationCounters
from logboat.raftlog import (
    CommittedEntry,
    LogPage,
    NotTransferred,
    PeerStatus,
    RaftStatus,
    Role,
    TransferOutcome,
    Transferred,
)
from logboat.seam.fault_switches import FaultSwitches
from logboat.wire import ErrorCode, Message
from logboat.wire.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from logboat.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)
from logboat.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
)
from logboat.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from logboat.wire.messages.delete_records import DeleteRecordsRequest, DeleteRecordsResponse
from logboat.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from logboat.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResponse,
)
from logboat.wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    ReplicaState,
)
from logboat.wire.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse
from logboat.wire.messages.fetch import FetchRequest, FetchResponse
from logboat.wire.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from logboat.wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from logboat.wire.messages.produce import ProduceRequest, ProduceResponse
from logboat.wire.records import assign_offsets, batches, parse_header

NOW_MS = 1_700_000_000_000


def broker(node_id: int, *, fenced: bool = False) -> BrokerImage:
    return BrokerImage(
        node_id=node_id,
        broker_epoch=node_id,
        incarnation_id=UUID(int=node_id),
        directory_id=UUID(int=100 + node_id),
        kafka=Endpoint("127.0.0.1", 9092 + node_id),
        internode=Endpoint("127.0.0.1", 9192 + node_id),
        http=Endpoint("127.0.0.1", 8082 + node_id),
        rack=None,
        fenced=fenced,
        in_controlled_shutdown=False,
    )


def topic(name: str, leaders: Sequence[int] = (1, 2, 3), *, leader_epoch: int = 0) -> TopicImage:
    return TopicImage(
        name=name,
        topic_id=UUID(int=sum(name.encode())),
        partitions=tuple(
            PartitionImage(
                partition=number,
                replicas=(1, 2, 3),
                isr=(1, 2, 3) if leader != NO_LEADER else (2,),
                leader=leader,
                leader_epoch=leader_epoch,
                partition_epoch=0,
            )
            for number, leader in enumerate(leaders)
        ),
        min_insync_replicas=2,
        flush_messages=1,
    )


class NewLog:
    """Of a quorum that has only elected a leader."""

    def page(self, start: int | None, limit: int) -> LogPage:
        entries = (CommittedEntry(2, 1, None),) if start in (None, 2) and limit else ()
        return LogPage(2, 0, 2, entries)

    async def transfer(self, voter: int) -> TransferOutcome:
        if voter == 3:
            return NotTransferred("node 3 did not take over in time")
        return Transferred(voter)


class FakeNode:
    """Node 1 of three. Tests set `errors`, `unreachable`, `silent`, and look into `asked`."""

    node_id = 1
    max_message_bytes = 100_000

    def __init__(self) -> None:
        self.current = ClusterImage(
            index=7,
            cluster_id="the-cluster",
            controller_id=1,
            controller_epoch=3,
            controller_term=1,
            brokers={number: broker(number) for number in (1, 2, 3)},
        )
        self.reasons: list[str] = []
        self.errors: dict[tuple[str, int], ErrorCode] = {}
        self.unreachable: set[int] = set()
        self.silent: set[int] = set()
        self.slow_to_lead: dict[tuple[str, int], int] = {}
        """How often the leader of a partition still says that it does not lead."""
        self.producer_ids = 1000
        self.faults: FaultSwitches | None = None
        self.election_error = ErrorCode.NONE
        self.history = MetadataHistory()
        self.counted = NodeCounters((), ReplicationCounters(), {})
        self.asked: list[int] = []
        self.produced: Counter[tuple[str, int]] = Counter()
        """Produce requests by partition."""
        self.logs: dict[tuple[str, int], bytes] = {}
        self.ends: dict[tuple[str, int], int] = {}
        self.starts: dict[tuple[str, int], int] = {}
        """Log start offsets, 0 where none is named."""
        self.cuts: dict[tuple[str, int], tuple[int, int]] = {}
        """(epoch, end offset) up to which a log that was cut agrees with its readers."""
        self.sequences: dict[tuple[str, int, int, int], int] = {}
        """Base offsets of idempotent batches: (topic, partition, producer id, base sequence)."""
        self.lose_answers = 0
        """How many produce requests are carried out without an answer."""
        self.moved = asyncio.Event()
        """Set, and replaced, whenever something is appended."""
        self.quorum = RaftStatus(
            role=Role.LEADER,
            term=4,
            leader_id=1,
            commit_index=89,
            applied_index=89,
            last_index=94,
            synced_index=94,
            snapshot_index=0,
            peers={peer: PeerStatus(True, None, None) for peer in (2, 3)},
        )
        self.quorum_voters: list[ReplicaState] = []
        self.log: QuorumLog | None = NewLog()
        self.answers: dict[str, Callable[[bytes], Awaitable[bytes]]] = {}
        """What this node serves to others, by part of HTTP."""
        self.other_answers: dict[str, Callable[[bytes], Awaitable[bytes]]] = {}
        """What all other nodes serve to this one."""
        self.quorum_observers: list[ReplicaState] = []
        self.replaced: AddRaftVoterRequest | None = None
        self.replace_error = ErrorCode.NONE

    def add(self, added: TopicImage) -> None:
        topics = {**self.current.topics, added.name: added}
        names = {found.topic_id: name for name, found in topics.items()}
        self.current = replace(
            self.current, topics=MappingProxyType(topics), topic_names=MappingProxyType(names)
        )

    def now_ms(self) -> int:
        return NOW_MS

    def image(self) -> ClusterImage:
        return self.current

    def why_not_ready(self) -> Sequence[str]:
        return self.reasons

    def quorum_role(self) -> str:
        return "leader"

    def quorum_status(self) -> RaftStatus:
        return self.quorum

    def loop_lag(self) -> LagSummary:
        return LagSummary(p50_s=0.001, p99_s=0.01, p999_s=0.05, largest_s=0.07, samples=3000)

    def local_replica(self, topic: str, partition: int) -> LocalReplica | None:
        if partition != 0:
            return None
        end = self.ends.get((topic, partition), 0)
        return LocalReplica("leader", end, 0, end)

    def append(
        self, name: str, partition: int, batch: bytes | bytearray, *, leader_epoch: int = 0
    ) -> int:
        base = self.ends.get((name, partition), 0)
        mutable = bytearray(batch)
        assign_offsets(mutable, parse_header(mutable), base_offset=base, leader_epoch=leader_epoch)
        self.logs[name, partition] = self.logs.get((name, partition), b"") + mutable
        self.ends[name, partition] = next(batches(mutable)).header.next_offset
        self.wake()
        return base

    def _append_once(self, name: str, partition: int, batch: bytes | bytearray) -> int:
        header = parse_header(batch)
        if header.producer_id < 0:
            return self.append(name, partition, batch)
        identity = (name, partition, header.producer_id, header.base_sequence)
        if identity not in self.sequences:
            self.sequences[identity] = self.append(name, partition, batch)
        return self.sequences[identity]

    def wake(self) -> None:
        """Let waiting fetches look again."""
        moved, self.moved = self.moved, asyncio.Event()
        moved.set()

    def _ask(self, node_id: int) -> None:
        self.asked.append(node_id)
        if node_id in self.unreachable:
            raise Unreachable
        if node_id in self.silent:
            raise AnswerLost

    async def produce(
        self, node_id: int, request: ProduceRequest, deadline: float
    ) -> ProduceResponse:
        self._ask(node_id)
        name = request.topic_data[0].name
        answers = []
        for data in request.topic_data[0].partition_data:
            self.produced[name, data.index] += 1
            assert self.current.topics[name].partitions[data.index].leader == node_id
            answer = ProduceResponse.PartitionProduceResponse(index=data.index)
            if (name, data.index) in self.errors:
                answer.error_code = self.errors[name, data.index]
            else:
                assert isinstance(data.records, bytes | bytearray)
                answer.base_offset = self._append_once(name, data.index, data.records)
            answers.append(answer)
        if self.lose_answers:
            self.lose_answers -= 1
            raise AnswerLost
        topics = [ProduceResponse.TopicProduceResponse(name=name, partition_responses=answers)]
        return ProduceResponse(responses=topics)

    async def fetch(self, node_id: int, request: FetchRequest, deadline: float) -> FetchResponse:
        self._ask(node_id)
        name = request.topics[0].topic
        wanted = request.topics[0].partitions[0]
        where = (name, wanted.partition)
        if self.ends.get(where, 0) == wanted.fetch_offset and request.max_wait_ms:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.moved.wait(), request.max_wait_ms / 1000)
        end, start = self.ends.get(where, 0), self.starts.get(where, 0)
        answer = FetchResponse.PartitionData(
            partition_index=wanted.partition, high_watermark=end, log_start_offset=start
        )
        epoch, cut = self.cuts.get(where, (0, end))
        if where in self.errors:
            answer.error_code = self.errors[where]
        elif self.current.topic_by_id(request.topics[0].topic_id) is None:
            answer.error_code = ErrorCode.UNKNOWN_TOPIC_ID
        elif wanted.last_fetched_epoch >= 0 and wanted.fetch_offset > cut:
            answer.diverging_epoch = FetchResponse.EpochEndOffset(epoch=epoch, end_offset=cut)
        elif not start <= wanted.fetch_offset <= end:
            answer.error_code = ErrorCode.OFFSET_OUT_OF_RANGE
        else:
            found = b"".join(
                batch.view
                for batch in batches(self.logs.get(where, b""))
                if batch.header.last_offset >= wanted.fetch_offset
            )
            answer.records = [found[: len(found) // 2], found[len(found) // 2 :]]
        topics = [FetchResponse.FetchableTopicResponse(topic=name, partitions=[answer])]
        return FetchResponse(responses=topics)

    async def list_offsets(
        self, node_id: int, request: ListOffsetsRequest, deadline: float
    ) -> ListOffsetsResponse:
        self._ask(node_id)
        name = request.topics[0].name
        wanted = request.topics[0].partitions[0]
        end = self.ends.get((name, wanted.partition_index), 0)
        start = self.starts.get((name, wanted.partition_index), 0)
        offset = {-1: end, -2: start}.get(wanted.timestamp, -1)
        answer = ListOffsetsResponse.ListOffsetsPartitionResponse(
            partition_index=wanted.partition_index, offset=offset
        )
        where = (name, wanted.partition_index)
        if self.slow_to_lead.get(where, 0) > 0:
            self.slow_to_lead[where] -= 1
            answer.error_code = ErrorCode.NOT_LEADER_OR_FOLLOWER
        topics = [ListOffsetsResponse.ListOffsetsTopicResponse(name=name, partitions=[answer])]
        return ListOffsetsResponse(topics=topics)

    async def delete_records(
        self, node_id: int, request: DeleteRecordsRequest, deadline: float
    ) -> DeleteRecordsResponse:
        raise Unreachable

    async def new_producer_id(self, deadline: float) -> int:
        self._ask(0)
        self.producer_ids += 1
        return self.producer_ids

    async def reorder_replicas(
        self, request: AlterPartitionReassignmentsRequest, deadline: float
    ) -> AlterPartitionReassignmentsResponse:
        self._ask(0)
        (asked,) = request.topics
        (wanted,) = asked.partitions
        assert wanted.replicas is not None
        self.alter(asked.name, wanted.partition_index, replicas=tuple(wanted.replicas))
        verdict = AlterPartitionReassignmentsResponse.ReassignablePartitionResponse(
            partition_index=wanted.partition_index
        )
        answers = [
            AlterPartitionReassignmentsResponse.ReassignableTopicResponse(
                name=asked.name, partitions=[verdict]
            )
        ]
        return AlterPartitionReassignmentsResponse(responses=answers)

    def alter(self, name: str, number: int, **changes: Any) -> None:
        found = self.current.topics[name]
        partitions = list(found.partitions)
        partitions[number] = replace(partitions[number], **changes)
        self.add(replace(found, partitions=tuple(partitions)))

    async def elect_leaders(
        self, request: ElectLeadersRequest, deadline: float
    ) -> ElectLeadersResponse:
        self._ask(0)
        assert request.topic_partitions is not None
        asked = request.topic_partitions[0]
        result = ElectLeadersResponse.PartitionResult(
            partition_id=asked.partitions[0], error_code=self.election_error
        )
        if not self.election_error:
            (number,) = asked.partitions
            preferred = self.current.topics[asked.topic].partitions[number].replicas[0]
            self.alter(asked.topic, number, leader=preferred, leader_epoch=1)
        results = [
            ElectLeadersResponse.ReplicaElectionResult(topic=asked.topic, partition_result=[result])
        ]
        return ElectLeadersResponse(replica_election_results=results)

    def counters(self) -> NodeCounters:
        return self.counted

    def fault_switches(self) -> FaultSwitches | None:
        return self.faults

    def metadata_history(self) -> MetadataHistory:
        return self.history

    async def create_topics(
        self, request: CreateTopicsRequest, deadline: float
    ) -> CreateTopicsResponse:
        self._ask(0)
        wanted = request.topics[0]
        result = CreateTopicsResponse.CreatableTopicResult(name=wanted.name)
        if wanted.name in self.current.topics:
            result.error_code = ErrorCode.TOPIC_ALREADY_EXISTS
        elif not re.fullmatch(r"[a-zA-Z0-9._-]{1,249}", wanted.name):
            result.error_code = ErrorCode.INVALID_TOPIC_EXCEPTION
        elif wanted.num_partitions > 100:
            result.error_code = ErrorCode.INVALID_PARTITIONS
        elif not request.validate_only:
            self.add(topic(wanted.name, leaders=[1] * max(1, wanted.num_partitions)))
        return CreateTopicsResponse(topics=[result])

    async def ask_groups(
        self, node_id: int, request: Message, deadline: float, *, client_id: str = "http"
    ) -> Message:
        raise Unreachable

    async def create_offsets_topic(self, deadline: float) -> None:
        return

    async def create_partitions(
        self, request: CreatePartitionsRequest, deadline: float
    ) -> CreatePartitionsResponse:
        raise Unreachable

    async def alter_configs(
        self, request: IncrementalAlterConfigsRequest, deadline: float
    ) -> IncrementalAlterConfigsResponse:
        raise Unreachable

    async def describe_configs(
        self, node_id: int, request: DescribeConfigsRequest, deadline: float
    ) -> DescribeConfigsResponse:
        self._ask(node_id)
        row = DescribeConfigsResponse.DescribeConfigsResult.DescribeConfigsResourceResult(
            name="cleanup.policy", value="delete"
        )
        results = [
            DescribeConfigsResponse.DescribeConfigsResult(
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
                configs=[row],
            )
            for resource in request.resources
        ]
        return DescribeConfigsResponse(results=results)

    def serve_calls(self, part: str, answer: Callable[[bytes], Awaitable[bytes]]) -> None:
        self.answers[part] = answer

    async def call(self, node_id: int, part: str, question: bytes, deadline: float) -> bytes:
        if part not in self.other_answers:
            raise Unreachable
        return await self.other_answers[part](question)

    def quorum_log(self) -> QuorumLog | None:
        return self.log

    async def describe_quorum(
        self, request: DescribeQuorumRequest, deadline: float
    ) -> DescribeQuorumResponse:
        self._ask(0)
        topic = request.topics[0]
        partition = DescribeQuorumResponse.TopicData.PartitionData(
            leader_id=1,
            leader_epoch=4,
            high_watermark=90,
            current_voters=self.quorum_voters,
            observers=self.quorum_observers,
        )
        found = DescribeQuorumResponse.TopicData(
            topic_name=topic.topic_name, partitions=[partition]
        )
        return DescribeQuorumResponse(topics=[found])

    async def replace_voter(
        self, request: AddRaftVoterRequest, deadline: float
    ) -> AddRaftVoterResponse:
        self._ask(0)
        self.replaced = request
        return AddRaftVoterResponse(error_code=self.replace_error)

    async def delete_topics(
        self, request: DeleteTopicsRequest, deadline: float
    ) -> DeleteTopicsResponse:
        self._ask(0)
        name = request.topics[0].name
        assert name is not None
        result = DeleteTopicsResponse.DeletableTopicResult(name=name)
        if name not in self.current.topics:
            result.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        topics = {kept: image for kept, image in self.current.topics.items() if kept != name}
        self.current = replace(self.current, topics=MappingProxyType(topics))
        return DeleteTopicsResponse(responses=[result])
