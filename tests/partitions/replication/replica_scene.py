"""A few nodes that hold replicas, on virtual time, under a controller that the test plays.

Each node is a host of the simulation with a disk, a network and `Replicas`, and nothing else of a
node. The cluster's metadata is the real state machine, driven by the test: nobody is fenced and no
leader is elected unless a test says so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar
from uuid import UUID

from logboat.jepsen_style.simulation import Host, World
from logboat.metadata.commands import (
    AlterPartition,
    IsrChange,
    IsrMember,
    PartitionId,
    ReplicasLost,
)
from logboat.metadata.image import ClusterImage, PartitionImage
from logboat.metadata.snapshot import compare, empty_image
from logboat.partitions import PeerLost, Replicas, ReplicationConfig, Role
from logboat.partitions.partition import Partition
from logboat.partitions.storage import LogDirectory, PartitionLog
from logboat.wire import (
    ApiKey,
    ErrorCode,
    Message,
    RequestHeader,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
)
from logboat.wire.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from logboat.wire.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
)
from logboat.wire.messages.fetch import FetchRequest, FetchResponse
from logboat.wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from logboat.wire.messages.produce import ProduceRequest, ProduceResponse
from logboat.wire.records import Record, batches, decode_records, encode_batch
from tests.metadata.cluster_builder import Cluster

T = TypeVar("T")

PORT = 9093
TOPIC = "t"
CONFIG = ReplicationConfig(
    replica_lag_time_max_ms=1_000,
    replica_fetch_wait_max_ms=500,
    replica_fetch_backoff_ms=20,
    replica_socket_timeout_ms=1_000,
    alter_partition_timeout_ms=500,
)
NO_ERROR = ErrorCode.NONE

Held = list[tuple[int, int, bytes]]
"""Offset, leader epoch and value of each record in a log."""


@dataclass(frozen=True)
class Answer:
    """Of a produce request to one partition."""

    error: ErrorCode
    base_offset: int


def batch(*values: bytes, producer_id: int = -1, sequence: int = -1) -> bytes:
    records = [Record(value=value, timestamp=1) for value in values]
    return bytes(
        encode_batch(
            records,
            producer_id=producer_id,
            producer_epoch=-1 if producer_id < 0 else 0,
            base_sequence=sequence,
        )
    )


def content(log: PartitionLog) -> Held:
    held: Held = []
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        read = log.read(offset, max_bytes=1 << 20, upper_bound=1 << 40, at_least_one=True)
        for part in read.parts:
            for found in batches(part):
                epoch = found.header.partition_leader_epoch
                held += [(r.offset, epoch, r.value or b"") for r in decode_records(found.view)]
        assert read.next_offset > offset
        offset = read.next_offset
    return held


class ReplicaNode:
    """One node; `replicas` is that of its running process."""

    replicas: Replicas
    directory: LogDirectory

    def __init__(self, scene: ReplicaScene, node_id: int) -> None:
        self.scene = scene
        self.node_id = node_id
        self.host: Host = scene.world.host(f"n{node_id}")
        self.ready = False
        self.deaf = False
        """The image does not reach it."""
        self.seen: ClusterImage = empty_image("test-cluster")
        self.stopping: asyncio.Event | None = None

    @property
    def alive(self) -> bool:
        return self.host.alive

    def partition(self, number: int = 0, topic: str = TOPIC) -> Partition:
        return self.replicas.find(topic, number)

    def log(self, number: int = 0) -> Held:
        return content(self.partition(number).log)

    async def main(self, host: Host) -> None:
        self.ready = False
        self.seen = empty_image("test-cluster")
        self.stopping = asyncio.Event()
        directory = await LogDirectory.open(
            "data",
            cluster_id="test-cluster",
            node_id=self.node_id,
            disk=host.disk,
            clock=host.clock,
            rng=host.rng,
            on_fatal=host.exit,
        )
        self.directory = directory
        self.replicas = Replicas(
            node_id=self.node_id,
            log_directory=directory,
            config=self.scene.config,
            broker_configs=self.scene.broker_configs,
            disk=host.disk,
            clock=host.clock,
            rng=host.rng,
            controller=ControllerOf(self.scene, self.node_id),
            peers=Peers(self.scene, host),
            on_fatal=host.exit,
        )
        await self.replicas.start()
        server = await asyncio.start_server(self._serve, host.name, PORT)
        self.hear()
        registered = self.scene.metadata.register(self.node_id, clean=directory.clean)
        assert registered.error == NO_ERROR, registered
        self.scene.publish()
        self.replicas.set_broker_epoch(self.scene.metadata.broker(self.node_id).broker_epoch)
        await self.replicas.wait_recovered()
        self.scene.metadata.unfence(self.node_id)
        self.scene.publish()
        self.ready = True
        await self.stopping.wait()
        server.close()
        await self.replicas.stop()
        await directory.write_clean_marker(self.scene.metadata.broker(self.node_id).broker_epoch)
        await directory.close()

    def hear(self) -> None:
        """Take up the newest image; to be called on the node's own loop."""
        image = self.scene.metadata.image
        if self.deaf or image is self.seen:
            return
        before, self.seen = self.seen, image
        self.replicas.on_image(compare(before, image))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                header, request = decode_request(await _read_frame(reader))
                if isinstance(request, FetchRequest):
                    response: Message = await self.replicas.fetch(
                        request, header.api_version, writer, from_replica=True
                    )
                else:
                    assert isinstance(request, ListOffsetsRequest)
                    response = self.replicas.list_offsets(
                        request, header.api_version, from_replica=True
                    )
                if (hook := self.scene.before_answer) is not None:
                    hook(self.node_id, request, response)
                _write_frame(writer, encode_response(header, response))
        except (asyncio.IncompleteReadError, OSError):
            pass
        finally:
            self.replicas.forget_sessions(writer)
            writer.close()


async def _read_frame(reader: asyncio.StreamReader) -> bytes:
    return await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))


def _write_frame(writer: asyncio.StreamWriter, parts: list[Any]) -> None:
    data = b"".join(parts)
    writer.write(len(data).to_bytes(4, "big") + data)


class StreamPeer:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._correlation_id = 0

    async def request(
        self, api_key: ApiKey, version: int, request: object, deadline: float
    ) -> object:
        assert isinstance(request, Message)
        self._correlation_id += 1
        header = RequestHeader(
            api_key=api_key,
            api_version=version,
            correlation_id=self._correlation_id,
            client_id="replica",
        )
        try:
            async with asyncio.timeout_at(deadline):
                _write_frame(self._writer, encode_request(header, request))
                return decode_response(header, await _read_frame(self._reader))
        except (TimeoutError, asyncio.IncompleteReadError, OSError) as error:
            self.close()
            raise PeerLost(repr(error)) from error

    def close(self) -> None:
        self._writer.close()


class Peers:
    def __init__(self, scene: ReplicaScene, host: Host) -> None:
        self._scene = scene
        self._host = host

    async def connect(self, node_id: int, deadline: float) -> StreamPeer:
        try:
            async with asyncio.timeout_at(deadline):
                name = self._scene.nodes[node_id].host.name
                return StreamPeer(*await asyncio.open_connection(name, PORT))
        except (TimeoutError, OSError) as error:
            raise PeerLost(repr(error)) from error


class ControllerOf:
    """The way from one node to the controller."""

    def __init__(self, scene: ReplicaScene, node_id: int) -> None:
        self._scene = scene
        self._node_id = node_id

    async def alter_partition(
        self, request: AlterPartitionRequest, deadline: float
    ) -> AlterPartitionResponse | None:
        scene = self._scene
        await asyncio.sleep(0.001)
        if not scene.controller_reachable:
            return None
        scene.proposals.append(request)
        response = scene.alter_partition(request)
        if scene.refuse_proposals is not None:
            for topic in response.topics:
                for partition in topic.partitions:
                    partition.error_code = scene.refuse_proposals
        await asyncio.sleep(0.001)
        return None if scene.lose_answers else response

    async def assign_replicas_to_dirs(
        self, request: AssignReplicasToDirsRequest, deadline: float
    ) -> AssignReplicasToDirsResponse | None:
        await asyncio.sleep(0.001)
        return self._scene.report_lost(request) if self._scene.controller_reachable else None


class ReplicaScene:
    """`with World(seed) as world: scene = ReplicaScene(world)`."""

    def __init__(
        self,
        world: World,
        *,
        nodes: int = 3,
        config: ReplicationConfig = CONFIG,
        broker_configs: Mapping[str, str] | None = None,
    ) -> None:
        self.world = world
        self.config = config
        self.broker_configs = dict(broker_configs or {})
        self.metadata = Cluster(brokers=0)
        self.nodes = {node_id: ReplicaNode(self, node_id) for node_id in range(1, nodes + 1)}
        self.controller_reachable = True
        self.lose_answers = False
        """AlterPartition is carried out, but the leader never hears of it."""
        self.refuse_proposals: ErrorCode | None = None
        """AlterPartition is not carried out and answered with this."""
        self.proposals: list[AlterPartitionRequest] = []
        self.before_answer: Callable[[int, Message, Message], None] | None = None
        for node_id in self.nodes:
            self.start(node_id)

    # Nodes.

    def start(self, node_id: int) -> ReplicaNode:
        node = self.nodes[node_id]
        node.ready = False
        node.host.start(node.main)
        self.world.run_until(lambda: node.ready, within=10)
        return node

    def stop(self, node_id: int) -> None:
        """Cleanly."""
        node = self.nodes[node_id]
        self.on(node_id, node.stopping.set)  # type: ignore[union-attr]
        self.world.run_until(lambda: not node.alive, within=10)

    def kill(self, node_id: int) -> None:
        self.nodes[node_id].host.kill()

    def on(self, node_id: int, action: Callable[[], T]) -> T:
        """Do something as that node."""
        with self.world.on(self.nodes[node_id].host.loop):
            return action()

    # Metadata.

    def publish(self) -> None:
        for node in self.nodes.values():
            if node.alive:
                node.host.loop.post(node.hear)

    def image(self, number: int = 0, topic: str = TOPIC) -> PartitionImage:
        return self.metadata.partition(number, topic)

    def create(self, *replicas: int, min_isr: int = 2, partitions: int = 1, **rest: Any) -> None:
        assignments = [replicas or tuple(self.nodes)] * partitions
        self.metadata.create(*assignments, min_isr=min_isr, **rest)
        self.publish()
        self.settle()

    def fence(self, node_id: int) -> None:
        """The controller gives up on that node: it leaves ISR and leaderships."""
        self.metadata.fence(node_id)
        self.publish()

    def unfence(self, node_id: int) -> None:
        self.metadata.unfence(node_id)
        self.publish()

    def alter_partition(self, request: AlterPartitionRequest) -> AlterPartitionResponse:
        changes = [
            IsrChange(
                topic.topic_id,
                change.partition_index,
                change.leader_epoch,
                change.partition_epoch,
                tuple(IsrMember(m.broker_id, m.broker_epoch) for m in change.new_isr_with_epochs),
            )
            for topic in request.topics
            for change in topic.partitions
        ]
        errors: dict[tuple[UUID, int], ErrorCode] = {}
        if self.refuse_proposals is None:
            result = self.metadata.apply(
                AlterPartition(
                    self.metadata.epoch, request.broker_id, request.broker_epoch, tuple(changes)
                )
            )
            if result.error != NO_ERROR:
                return AlterPartitionResponse(error_code=result.error)
            errors = {
                (change.topic_id, change.partition): item.error
                for change, item in zip(changes, result.items, strict=True)
            }
            self.publish()
        return AlterPartitionResponse(
            topics=[
                AlterPartitionResponse.TopicData(
                    topic_id=topic.topic_id,
                    partitions=[
                        AlterPartitionResponse.PartitionData(
                            partition_index=change.partition_index,
                            error_code=errors.get(
                                (topic.topic_id, change.partition_index), ErrorCode.NONE
                            ),
                        )
                        for change in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )

    def report_lost(self, request: AssignReplicasToDirsRequest) -> AssignReplicasToDirsResponse:
        (directory,) = request.directories
        lost = [
            PartitionId(topic.topic_id, partition.partition_index)
            for topic in directory.topics
            for partition in topic.partitions
        ]
        result = self.metadata.apply(
            ReplicasLost(self.metadata.epoch, request.broker_id, request.broker_epoch, tuple(lost))
        )
        self.publish()
        data = AssignReplicasToDirsResponse.DirectoryData
        return AssignReplicasToDirsResponse(
            error_code=result.error,
            directories=[
                data(
                    id=directory.id,
                    topics=[
                        data.TopicData(
                            topic_id=named.topic_id,
                            partitions=[
                                data.TopicData.PartitionData(
                                    partition_index=named.partition, error_code=item.error
                                )
                            ],
                        )
                        for named, item in zip(lost, result.items, strict=False)
                    ],
                )
            ],
        )

    # Time.

    def settle(self, seconds: float = 0.2) -> None:
        self.world.run(seconds)

    def until(self, condition: Callable[[], bool], *, within: float = 10.0) -> None:
        self.world.run_until(condition, within=within)

    def await_role(self, node_id: int, role: Role, number: int = 0) -> Partition:
        def reached() -> bool:
            state = self.nodes[node_id].replicas.partition_state(TOPIC, number)
            return state is not None and state.role is role

        self.until(reached)
        return self.nodes[node_id].partition(number)

    def await_isr(self, *members: int, number: int = 0) -> None:
        self.until(lambda: sorted(self.image(number).isr) == sorted(members))
        self.settle(0.01)

    # Requests, as a client of one node.

    def call(self, node_id: int, work: Coroutine[Any, Any, T], *, within: float = 60.0) -> T:
        return self.world.call(self.nodes[node_id].host, work, within=within)

    def begin(self, node_id: int, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        return self.nodes[node_id].host.spawn(work)

    async def produce_to(
        self,
        node_id: int,
        *values: bytes,
        acks: int = -1,
        timeout_ms: int = 2_000,
        number: int = 0,
        producer_id: int = -1,
        sequence: int = -1,
    ) -> Answer:
        request = ProduceRequest(
            acks=acks,
            timeout_ms=timeout_ms,
            topic_data=[
                ProduceRequest.TopicProduceData(
                    topic_id=self.metadata.image.topics[TOPIC].topic_id,
                    partition_data=[
                        ProduceRequest.PartitionProduceData(
                            index=number,
                            records=batch(*values, producer_id=producer_id, sequence=sequence),
                        )
                    ],
                )
            ],
        )
        response: ProduceResponse = await self.nodes[node_id].replicas.produce(request, 13)
        answer = response.responses[0].partition_responses[0]
        return Answer(ErrorCode(answer.error_code), answer.base_offset)

    def produce(self, node_id: int, *values: bytes, **rest: Any) -> Answer:
        return self.call(node_id, self.produce_to(node_id, *values, **rest))

    async def fetch_from(
        self,
        node_id: int,
        offset: int,
        *,
        epoch: int = -1,
        last_fetched_epoch: int = -1,
        max_wait_ms: int = 0,
    ) -> Any:
        """The answer for partition 0."""
        request = FetchRequest(
            max_wait_ms=max_wait_ms,
            min_bytes=1,
            session_id=0,
            session_epoch=-1,
            topics=[
                FetchRequest.FetchTopic(
                    topic_id=self.metadata.image.topics[TOPIC].topic_id,
                    partitions=[
                        FetchRequest.FetchPartition(
                            partition=0,
                            fetch_offset=offset,
                            current_leader_epoch=epoch,
                            last_fetched_epoch=last_fetched_epoch,
                            partition_max_bytes=1 << 20,
                        )
                    ],
                )
            ],
        )
        response: FetchResponse = await self.nodes[node_id].replicas.fetch(
            request, 17, "client", from_replica=False
        )
        return response.responses[0].partitions[0]

    def fetch(self, node_id: int, offset: int, **rest: Any) -> Any:
        return self.call(node_id, self.fetch_from(node_id, offset, **rest))

    def consume(self, node_id: int) -> list[bytes]:
        """All that a consumer may read now."""
        values: list[bytes] = []
        while True:
            data = self.fetch(node_id, len(values))
            assert data.error_code == NO_ERROR, ErrorCode(data.error_code)
            fresh = [
                record.value or b""
                for part in data.records or []
                for found in batches(part)
                for record in decode_records(found.view)
                if record.offset >= len(values)
            ]
            if not fresh:
                return values
            values += fresh

    def list_offset(self, node_id: int, timestamp: int, version: int = 11) -> tuple[ErrorCode, int]:
        request = ListOffsetsRequest(
            replica_id=-1,
            topics=[
                ListOffsetsRequest.ListOffsetsTopic(
                    name=TOPIC,
                    partitions=[
                        ListOffsetsRequest.ListOffsetsPartition(
                            partition_index=0, timestamp=timestamp
                        )
                    ],
                )
            ],
        )
        response: ListOffsetsResponse = self.on(
            node_id, lambda: self.nodes[node_id].replicas.list_offsets(request, version)
        )
        answer = response.topics[0].partitions[0]
        return ErrorCode(answer.error_code), answer.offset
