"""A Kafka client for tests inside the simulation: asyncio only, so it runs on a host like a node.

It speaks through `wire`, as the nodes do, and so proves nothing about the bytes themselves; the
foreign clients do that. Histories that a checker judges are recorded through a codec of their own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar, cast

from ...wire import (
    ApiKey,
    ErrorCode,
    Message,
    Records,
    RequestHeader,
    decode_response,
    encode_request,
)
from ...wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from ...wire.messages.fetch import FetchRequest, FetchResponse
from ...wire.messages.metadata import MetadataRequest, MetadataResponse
from ...wire.messages.produce import ProduceRequest, ProduceResponse
from ...wire.records import Record, batches, decode_records, encode_batch

Response = TypeVar("Response", bound=Message)

Address = tuple[str, int]

METADATA_VERSION = 9
CREATE_TOPICS_VERSION = 6
PRODUCE_VERSION = 9
FETCH_VERSION = 12
"""The last ones that name topics by name."""

RETRY_S = 0.05
REQUEST_TIMEOUT_S = 2.0
FETCH_BYTES = 1 << 20


class Refused(Exception):
    """The cluster's answer is an error that trying again does not change."""


@dataclass(frozen=True, slots=True)
class Partition:
    """One partition as the metadata shows it; leader -1 means none."""

    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


class Connection:
    """One connection, one request at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._correlation_id = 0
        self._turn = asyncio.Lock()

    @classmethod
    async def open(cls, address: Address) -> Connection:
        return cls(*await asyncio.open_connection(*address))

    async def request(self, key: ApiKey, version: int, request: Message) -> Message:
        """Raises OSError or EOFError when the connection ends; it is unusable after any error."""
        async with self._turn:
            self._correlation_id += 1
            header = RequestHeader(
                api_key=key,
                api_version=version,
                correlation_id=self._correlation_id,
                client_id="simulated",
            )
            body = b"".join(encode_request(header, request))
            self._writer.write(len(body).to_bytes(4, "big") + body)
            await self._writer.drain()
            length = int.from_bytes(await self._reader.readexactly(4), "big")
            return decode_response(header, await self._reader.readexactly(length))

    def close(self) -> None:
        self._writer.close()


class KafkaClient:
    """Finds leaders, tries again, gives up at deadlines. Times are seconds.

    `nodes` are the client addresses of all nodes by id; any of them may be dead.
    """

    def __init__(self, nodes: Mapping[int, Address]) -> None:
        self._nodes = dict(nodes)
        self._connections: dict[int, Connection] = {}
        self._leaders: dict[tuple[str, int], int] = {}

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    async def request(
        self, node_id: int, key: ApiKey, version: int, request: Message, kind: type[Response]
    ) -> Response:
        """Ask one node. Raises OSError, EOFError or TimeoutError when there is no answer."""
        try:
            async with asyncio.timeout(REQUEST_TIMEOUT_S):
                connection = self._connections.get(node_id)
                if connection is None:
                    connection = await Connection.open(self._nodes[node_id])
                    self._connections[node_id] = connection
                return cast(Response, await connection.request(key, version, request))
        except (OSError, EOFError, asyncio.CancelledError):
            # What comes later on this connection would be the answer to this request.
            broken = self._connections.pop(node_id, None)
            if broken is not None:
                broken.close()
            raise

    async def any_node(
        self, key: ApiKey, version: int, request: Message, kind: type[Response]
    ) -> Response:
        """Ask the nodes in turn until one answers. Raises OSError when none does."""
        for node_id in self._nodes:
            try:
                return await self.request(node_id, key, version, request, kind)
            except (OSError, EOFError):
                continue
        raise OSError("no node answers")

    async def partitions(self, topic: str) -> dict[int, Partition]:
        """The topic's partitions by number, as some living node knows them; empty if unknown."""
        response = await self.any_node(
            ApiKey.METADATA,
            METADATA_VERSION,
            MetadataRequest(
                topics=[MetadataRequest.MetadataRequestTopic(name=topic)],
                allow_auto_topic_creation=False,
            ),
            MetadataResponse,
        )
        return {
            found.partition_index: Partition(
                found.leader_id,
                found.leader_epoch,
                tuple(found.replica_nodes),
                tuple(found.isr_nodes),
            )
            for found in response.topics[0].partitions
        }

    async def create_topic(
        self,
        name: str,
        *,
        partitions: int = 1,
        replication_factor: int = 3,
        configs: Mapping[str, str] | None = None,
        within: float = 30.0,
    ) -> None:
        """Create it, or find that it exists. Raises Refused or TimeoutError."""
        topic = CreateTopicsRequest.CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=replication_factor,
            configs=[
                CreateTopicsRequest.CreatableTopicConfig(name=key, value=value)
                for key, value in (configs or {}).items()
            ],
        )
        request = CreateTopicsRequest(topics=[topic], timeout_ms=int(REQUEST_TIMEOUT_S * 1000))
        async with asyncio.timeout(within):
            while True:
                try:
                    response = await self.any_node(
                        ApiKey.CREATE_TOPICS, CREATE_TOPICS_VERSION, request, CreateTopicsResponse
                    )
                except OSError:
                    await asyncio.sleep(RETRY_S)
                    continue
                result = response.topics[0]
                error = ErrorCode(result.error_code)
                if error in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
                    return
                # Until enough brokers have registered there is no place for the replicas.
                if not error.retriable and error is not ErrorCode.INVALID_REPLICATION_FACTOR:
                    raise Refused(f"{name}: {error.name}: {result.error_message}")
                await asyncio.sleep(RETRY_S)

    async def leader(self, topic: str, partition: int) -> int:
        """Node id of the leader. Raises OSError while nobody knows one."""
        known = self._leaders.get((topic, partition))
        if known is not None:
            return known
        found = (await self.partitions(topic)).get(partition)
        if found is None or found.leader < 0:
            raise OSError(f"{topic}-{partition} has no leader")
        self._leaders[topic, partition] = found.leader
        return found.leader

    async def produce(
        self,
        topic: str,
        partition: int,
        values: Sequence[bytes],
        *,
        acks: int = -1,
        within: float = 30.0,
    ) -> int:
        """Append one batch, trying again until it is acknowledged; its base offset.

        A retry may append the batch twice. Raises TimeoutError (unknown outcome) or Refused.
        """
        batch = encode_batch([Record(value=value, timestamp=0) for value in values])
        request = ProduceRequest(
            acks=acks,
            timeout_ms=int(REQUEST_TIMEOUT_S * 1000),
            topic_data=[
                ProduceRequest.TopicProduceData(
                    name=topic,
                    partition_data=[
                        ProduceRequest.PartitionProduceData(index=partition, records=[batch])
                    ],
                )
            ],
        )
        async with asyncio.timeout(within):
            while True:
                try:
                    response = await self.request(
                        await self.leader(topic, partition),
                        ApiKey.PRODUCE,
                        PRODUCE_VERSION,
                        request,
                        ProduceResponse,
                    )
                except (OSError, EOFError):
                    await self._forget_leader(topic, partition)
                    continue
                result = response.responses[0].partition_responses[0]
                error = ErrorCode(result.error_code)
                if error is ErrorCode.NONE:
                    return result.base_offset
                if not error.retriable:
                    raise Refused(f"{topic}-{partition}: {error.name}: {result.error_message}")
                await self._forget_leader(topic, partition)

    async def read_all(
        self, topic: str, partition: int, *, within: float = 30.0
    ) -> dict[int, bytes | None]:
        """Every committed record by offset, up to the high watermark. Raises TimeoutError."""
        found: dict[int, bytes | None] = {}
        position = 0
        async with asyncio.timeout(within):
            while True:
                try:
                    response = await self.request(
                        await self.leader(topic, partition),
                        ApiKey.FETCH,
                        FETCH_VERSION,
                        _fetch_request(topic, partition, position),
                        FetchResponse,
                    )
                except (OSError, EOFError):
                    await self._forget_leader(topic, partition)
                    continue
                answer = response.responses[0].partitions[0]
                error = ErrorCode(answer.error_code)
                if error is not ErrorCode.NONE:
                    if not error.retriable:
                        raise Refused(f"{topic}-{partition}: {error.name}")
                    await self._forget_leader(topic, partition)
                    continue
                for record in _records(answer.records):
                    # The first batch may begin before what was asked for.
                    if record.offset >= position:
                        found[record.offset] = record.value
                        position = record.offset + 1
                if position >= answer.high_watermark:
                    return found

    async def _forget_leader(self, topic: str, partition: int) -> None:
        self._leaders.pop((topic, partition), None)
        await asyncio.sleep(RETRY_S)


def _fetch_request(topic: str, partition: int, position: int) -> FetchRequest:
    return FetchRequest(
        max_wait_ms=0,
        min_bytes=1,
        max_bytes=FETCH_BYTES,
        topics=[
            FetchRequest.FetchTopic(
                topic=topic,
                partitions=[
                    FetchRequest.FetchPartition(
                        partition=partition,
                        fetch_offset=position,
                        partition_max_bytes=FETCH_BYTES,
                    )
                ],
            )
        ],
    )


def _records(answered: Records) -> list[Record]:
    if not isinstance(answered, memoryview):
        return []
    whole = batches(answered, partial_tail=True)
    return [record for batch in whole for record in decode_records(batch.view)]
