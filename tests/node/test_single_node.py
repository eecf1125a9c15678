"""One whole node, asked over its own ports."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random
from typing import NoReturn
from uuid import UUID

import pytest

from logboat.node.run import Node
from logboat.partitions.storage import LogDirectory
from logboat.seam import SystemClock
from logboat.seam.real_disk import RealDisk
from logboat.wire import ApiKey, Buffer, ErrorCode, Message, api
from logboat.wire.messages.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)
from logboat.wire.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from logboat.wire.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
)
from logboat.wire.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from logboat.wire.messages.broker_registration import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)
from logboat.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from logboat.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from logboat.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from logboat.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse
from logboat.wire.messages.fetch import FetchRequest, FetchResponse
from logboat.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from logboat.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from logboat.wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from logboat.wire.messages.metadata import MetadataRequest, MetadataResponse
from logboat.wire.messages.produce import ProduceRequest, ProduceResponse
from logboat.wire.records import Record, batches, decode_records, encode_batch
from tests.node.running_node import node_config, port, running_node
from tests.node.wire_client import WireClient

MAGIC_POSITION = 16
"""Of the format version in a batch."""

Produced = ProduceResponse.TopicProduceResponse.PartitionProduceResponse


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[Node]:
    async with running_node(tmp_path / "data") as running:
        yield running


@pytest.fixture
async def client(node: Node) -> AsyncIterator[WireClient]:
    async with await WireClient.connect(port(node)) as connected:
        yield connected


def batch(node: Node, *values: bytes) -> bytearray:
    return encode_batch([Record(value=value, timestamp=node.clock.now_ms()) for value in values])


def produce(
    records: Buffer, *, topic: str = "t", topic_id: UUID | None = None, acks: int = -1
) -> ProduceRequest:
    Topic = ProduceRequest.TopicProduceData
    data = Topic(name=topic, partition_data=[Topic.PartitionProduceData(index=0, records=records)])
    if topic_id is not None:
        data.topic_id = topic_id
    return ProduceRequest(acks=acks, timeout_ms=5_000, topic_data=[data])


async def produced(client: WireClient, request: ProduceRequest, version: int = 9) -> Produced:
    response = await client.ask(request, version, ProduceResponse)
    return response.responses[0].partition_responses[0]


def fetch(
    *, topic: str = "t", topic_id: UUID | None = None, offset: int = 0, replica_id: int = -1
) -> FetchRequest:
    Topic = FetchRequest.FetchTopic
    asked = Topic(
        topic=topic,
        partitions=[
            Topic.FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
        ],
    )
    if topic_id is not None:
        asked.topic_id = topic_id
    return FetchRequest(replica_id=replica_id, max_wait_ms=100, min_bytes=1, topics=[asked])


def values(response: FetchResponse) -> list[bytes | None]:
    records = response.responses[0].partitions[0].records
    assert isinstance(records, memoryview)
    return [record.value for one in batches(records) for record in decode_records(one.view)]


async def create(client: WireClient, *names: str, partitions: int = 1) -> list[ErrorCode]:
    request = CreateTopicsRequest(
        topics=[
            CreateTopicsRequest.CreatableTopic(
                name=name, num_partitions=partitions, replication_factor=1
            )
            for name in names
        ],
        timeout_ms=5_000,
    )
    response = await client.ask(request, 5, CreateTopicsResponse)
    return [ErrorCode(topic.error_code) for topic in response.topics]


async def metadata(client: WireClient, name: str) -> MetadataResponse.MetadataResponseTopic:
    asked = MetadataRequest.MetadataRequestTopic(name=name)
    return (await client.ask(MetadataRequest(topics=[asked]), 12, MetadataResponse)).topics[0]


async def test_a_topic_that_is_named_comes_into_being_and_takes_records(
    node: Node, client: WireClient
) -> None:
    topic = await metadata(client, "t")
    assert topic.error_code == ErrorCode.NONE
    assert topic.partitions[0].leader_id == 1
    for version, first in ((3, 0), (9, 2), (12, 4)):
        answer = await produced(client, produce(batch(node, b"a", b"b")), version)
        assert (answer.error_code, answer.base_offset) == (ErrorCode.NONE, first)
    by_id = produce(batch(node, b"c"), topic_id=topic.topic_id)
    assert (await produced(client, by_id, 13)).base_offset == 6
    for version in (4, 11, 12):
        assert values(await client.ask(fetch(), version, FetchResponse)) == [b"a", b"b"] * 3 + [
            b"c"
        ]
    by_id_response = await client.ask(fetch(topic_id=topic.topic_id), 13, FetchResponse)
    assert len(values(by_id_response)) == 7


async def test_metadata_is_told_in_every_version(client: WireClient) -> None:
    await create(client, "t")
    for version in range(14):
        request = MetadataRequest(topics=[] if version == 0 else None)
        response = await client.ask(request, version, MetadataResponse)
        assert [topic.name for topic in response.topics] == ["t"]
        assert [broker.node_id for broker in response.brokers] == [1]
        assert version == 0 or response.controller_id == 1
        assert version < 2 or response.cluster_id == "test-cluster"
    nothing = await client.ask(MetadataRequest(topics=[]), 1, MetadataResponse)
    assert nothing.topics == []


async def test_metadata_by_id_and_of_unknown_or_illegal_topics(client: WireClient) -> None:
    Topic = MetadataRequest.MetadataRequestTopic
    topic_id = (await metadata(client, "t")).topic_id
    request = MetadataRequest(
        topics=[
            Topic(topic_id=topic_id, name=None),
            Topic(topic_id=UUID(int=5), name=None),
            Topic(name="not there"),
            Topic(name="nor there"),
        ],
        allow_auto_topic_creation=False,
    )
    request.topics[3].name = "nor-there"  # type: ignore[index]
    response = await client.ask(request, 12, MetadataResponse)
    assert [(topic.error_code, topic.name) for topic in response.topics] == [
        (ErrorCode.NONE, "t"),
        (ErrorCode.UNKNOWN_TOPIC_ID, None),
        (ErrorCode.INVALID_TOPIC_EXCEPTION, "not there"),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "nor-there"),
    ]


async def test_create_then_produce_through_the_same_node_works_at_once(
    node: Node, client: WireClient
) -> None:
    """RULES A6, twenty times."""
    for number in range(20):
        name = f"t{number}"
        assert await create(client, name) == [ErrorCode.NONE]
        answer = await produced(client, produce(batch(node, b"x"), topic=name))
        assert answer.error_code == ErrorCode.NONE


async def test_topics_are_refused_and_deleted(client: WireClient) -> None:
    assert await create(client, "t", "t.bad name") == [
        ErrorCode.NONE,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
    ]
    assert await create(client, "t") == [ErrorCode.TOPIC_ALREADY_EXISTS]
    too_many = CreateTopicsRequest(
        topics=[
            CreateTopicsRequest.CreatableTopic(name="r", num_partitions=1, replication_factor=2)
        ],
        timeout_ms=5_000,
    )
    response = await client.ask(too_many, 7, CreateTopicsResponse)
    assert response.topics[0].error_code == ErrorCode.INVALID_REPLICATION_FACTOR
    deletion = DeleteTopicsRequest(topic_names=["t", "u"], timeout_ms=5_000)
    deleted = await client.ask(deletion, 3, DeleteTopicsResponse)
    assert [(topic.name, topic.error_code) for topic in deleted.responses] == [
        ("t", ErrorCode.NONE),
        ("u", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]


async def test_bad_batches_are_refused_and_good_ones_still_taken(
    node: Node, client: WireClient
) -> None:
    await create(client, "t")
    wrong_crc = batch(node, b"x")
    wrong_crc[-1] ^= 1
    assert (await produced(client, produce(wrong_crc))).error_code == ErrorCode.CORRUPT_MESSAGE
    for magic in (0, 1):
        old = batch(node, b"x")
        old[MAGIC_POSITION] = magic
        refused = ErrorCode((await produced(client, produce(old))).error_code)
        assert refused in (
            ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
            ErrorCode.CORRUPT_MESSAGE,
            ErrorCode.INVALID_RECORD,
        )
    large = batch(node, bytes(2 << 20))
    assert (await produced(client, produce(large))).error_code == ErrorCode.MESSAGE_TOO_LARGE
    unknown = await produced(client, produce(batch(node, b"x"), topic="no-such-topic"))
    assert unknown.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    acks = await produced(client, produce(batch(node, b"x"), acks=2))
    assert acks.error_code == ErrorCode.INVALID_REQUIRED_ACKS
    good = await produced(client, produce(batch(node, b"x")))
    assert (good.error_code, good.base_offset) == (ErrorCode.NONE, 0)


async def test_acks_0_is_not_answered_and_its_failure_closes_the_connection(
    node: Node, client: WireClient
) -> None:
    await create(client, "t")
    client.send(produce(batch(node, b"x"), acks=0), 9)
    answer = await produced(client, produce(batch(node, b"y")))
    assert answer.base_offset == 1
    client.send(produce(batch(node, b"x"), topic="no-such-topic", acks=0), 9)
    assert await client.is_closed()


async def test_pipelined_produce_requests_are_appended_in_their_order(
    node: Node, client: WireClient
) -> None:
    await create(client, "t")
    headers = [client.send(produce(batch(node, b"%d" % n)), 9) for n in range(50)]
    for number, header in enumerate(headers):
        response = await client.receive(header, ProduceResponse)
        assert response.responses[0].partition_responses[0].base_offset == number


@pytest.mark.parametrize("version", [4, 12])
async def test_b5_a_stranger_is_no_replica(client: WireClient, version: int) -> None:
    """RULES B5: neither a follower's fetch nor its questions are served to clients."""
    await create(client, "t")
    refused = await client.ask(fetch(replica_id=2), version, FetchResponse)
    assert refused.responses[0].partitions[0].error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    with_state = fetch()
    with_state.replica_state = FetchRequest.ReplicaState(replica_id=2, replica_epoch=1)
    answer = await client.ask(with_state, 15, FetchResponse)
    assert answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    Topic = ListOffsetsRequest.ListOffsetsTopic
    offsets = ListOffsetsRequest(
        replica_id=2,
        topics=[Topic(name="t", partitions=[Topic.ListOffsetsPartition(timestamp=-1)])],
    )
    listed = await client.ask(offsets, 4, ListOffsetsResponse)
    assert listed.topics[0].partitions[0].error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED


@pytest.mark.parametrize(
    ("request_", "kind"),
    [
        (BrokerRegistrationRequest(broker_id=1), BrokerRegistrationResponse),
        (BrokerHeartbeatRequest(broker_id=1, broker_epoch=1), BrokerHeartbeatResponse),
        (AlterPartitionRequest(broker_id=1), AlterPartitionResponse),
        (AllocateProducerIdsRequest(broker_id=1), AllocateProducerIdsResponse),
        (AssignReplicasToDirsRequest(broker_id=1), AssignReplicasToDirsResponse),
    ],
)
async def test_b5_a_stranger_asks_the_controller_nothing(
    node: Node, client: WireClient, request_: Message, kind: type[Message]
) -> None:
    before = node.machine.image.index
    name = type(request_).__name__.removesuffix("Request")
    known = next(api(key) for key in ApiKey if api(key).name == name)
    response = await client.ask(request_, known.max_version, kind)
    assert getattr(response, "error_code") == ErrorCode.CLUSTER_AUTHORIZATION_FAILED  # noqa: B009
    assert node.machine.image.index == before


async def test_producer_ids_are_never_given_twice(client: WireClient) -> None:
    given = set()
    for _ in range(20):
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1_000)
        answer = await client.ask(request, 4, InitProducerIdResponse)
        assert (answer.error_code, answer.producer_epoch) == (ErrorCode.NONE, 0)
        given.add(answer.producer_id)
    assert len(given) == 20
    transactional = InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=1_000)
    refused = await client.ask(transactional, 4, InitProducerIdResponse)
    assert refused.error_code == ErrorCode.UNSUPPORTED_VERSION


async def test_a_group_finds_its_coordinator_at_the_first_question(client: WireClient) -> None:
    answer = await client.ask(FindCoordinatorRequest(key="g"), 2, FindCoordinatorResponse)
    assert (answer.error_code, answer.node_id) == (ErrorCode.NONE, 1)
    many = FindCoordinatorRequest(coordinator_keys=["g", "h"])
    found = await client.ask(many, 4, FindCoordinatorResponse)
    assert [one.node_id for one in found.coordinators] == [1, 1]
    transactions = FindCoordinatorRequest(key="x", key_type=1)
    refused = await client.ask(transactions, 2, FindCoordinatorResponse)
    assert refused.error_code == ErrorCode.UNSUPPORTED_VERSION


async def test_cluster_and_settings_are_described(client: WireClient) -> None:
    await create(client, "t")
    cluster = await client.ask(DescribeClusterRequest(), 2, DescribeClusterResponse)
    assert (cluster.cluster_id, cluster.controller_id) == ("test-cluster", 1)
    Resource = DescribeConfigsRequest.DescribeConfigsResource
    request = DescribeConfigsRequest(
        resources=[
            Resource(resource_type=2, resource_name="t", configuration_keys=None),
            Resource(resource_type=4, resource_name="1", configuration_keys=["node.id", "x"]),
            Resource(resource_type=2, resource_name="none", configuration_keys=None),
            Resource(resource_type=4, resource_name="2", configuration_keys=None),
        ],
        include_synonyms=True,
    )
    topic, broker, missing, other = (await client.ask(request, 4, DescribeConfigsResponse)).results
    assert {row.name: row.value for row in topic.configs}["flush.messages"] == "1"
    assert [(row.name, row.value) for row in broker.configs] == [("node.id", "1")]
    assert missing.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert other.error_code == ErrorCode.INVALID_REQUEST


async def test_a_restart_keeps_records_topic_ids_and_the_directory(tmp_path: Path) -> None:
    async with running_node(tmp_path / "data") as node:
        async with await WireClient.connect(port(node)) as client:
            topic_id = (await metadata(client, "t")).topic_id
            await produced(client, produce(batch(node, b"a", b"b")))
        first_epoch = node.services.image.brokers[1].broker_epoch
    async with running_node(tmp_path / "data") as node:
        assert node.log_directory is not None
        assert node.log_directory.clean
        assert node.log_directory.previous_broker_epoch == first_epoch
        assert node.services.image.brokers[1].broker_epoch > first_epoch
        async with await WireClient.connect(port(node)) as client:
            # Elected when it was unfenced, a moment ago.
            await node.services.new_logs_open(float("inf"))
            topic = await metadata(client, "t")
            assert topic.topic_id == topic_id
            # A restart bumps the leader epoch (RULES B1).
            assert topic.partitions[0].leader_epoch > 0
            assert values(await client.ask(fetch(), 12, FetchResponse)) == [b"a", b"b"]
            answer = await produced(client, produce(batch(node, b"c")))
            assert answer.base_offset == 2


async def test_a_stop_while_logs_are_being_opened_is_an_orderly_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Clients were let in, through a door that was closed, and the node ended with an error."""
    async with (
        running_node(tmp_path / "data") as node,
        await WireClient.connect(port(node)) as client,
    ):
        await metadata(client, "t")
    opening = asyncio.Event()

    async def open_log(directory: LogDirectory, stored: object, config: object) -> NoReturn:
        opening.set()
        await asyncio.get_running_loop().create_future()
        raise AssertionError

    monkeypatch.setattr(LogDirectory, "open_log", open_log)
    failures: list[BaseException] = []
    disk = RealDisk()
    config = node_config(tmp_path / "data", controlled_shutdown_enable="false")
    node = Node(config, disk, SystemClock(), Random(1), failures.append)
    await node.start()
    await opening.wait()
    await node.stop()
    disk.close()
    assert failures == []


@pytest.fixture
def quiet(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.WARNING)
    return caplog


@pytest.mark.parametrize(
    "data", [b"GET / HTTP/1.1\r\n\r\n", b"\x80\x04\x95garbage-like-a-pickle", b"\x00" * 64]
)
async def test_the_port_of_the_nodes_drops_strangers(
    node: Node, client: WireClient, quiet: pytest.LogCaptureFixture, data: bytes
) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", node.addresses.internode.port)
    writer.write(data)
    async with asyncio.timeout(60):
        assert await reader.read() == b""
    writer.close()
    assert len(quiet.records) == 1
    assert (await metadata(client, "t")).error_code == ErrorCode.NONE
