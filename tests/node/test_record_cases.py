"""Records through the sockets of one node: the cases that have cost other brokers' users data."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from logboat.node.run import Node
from logboat.seam import SystemClock
from logboat.wire import ErrorCode
from logboat.wire.compression import Compression
from logboat.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from logboat.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from logboat.wire.messages.fetch import FetchRequest, FetchResponse
from logboat.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from logboat.wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from logboat.wire.messages.metadata import MetadataRequest, MetadataResponse
from logboat.wire.messages.produce import ProduceRequest, ProduceResponse
from logboat.wire.records import Record, batches, crc_of, decode_records, encode_batch
from tests.node.running_node import port, running_node
from tests.node.wire_client import WireClient

NONE = ErrorCode.NONE
Topic = ProduceRequest.TopicProduceData
Produced = ProduceResponse.TopicProduceResponse.PartitionProduceResponse


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[Node]:
    async with running_node(tmp_path / "data") as running:
        yield running


@pytest.fixture
async def client(node: Node) -> AsyncIterator[WireClient]:
    async with await WireClient.connect(port(node)) as connected:
        yield connected


async def create(client: WireClient, topic: str, partitions: int = 1, **configs: str) -> None:
    Creatable = CreateTopicsRequest.CreatableTopic
    request = CreateTopicsRequest(
        topics=[
            Creatable(
                name=topic,
                num_partitions=partitions,
                replication_factor=1,
                configs=[
                    Creatable.CreatableTopicConfig(name=name.replace("_", "."), value=value)
                    for name, value in configs.items()
                ],
            )
        ],
        timeout_ms=5_000,
    )
    response = await client.ask(request, 5, CreateTopicsResponse)
    assert response.topics[0].error_code == NONE, response.topics[0].error_message


def to(
    *partitions: tuple[int, bytes | bytearray], acks: int = -1, topic: str = "t"
) -> ProduceRequest:
    data = [Topic.PartitionProduceData(index=index, records=data) for index, data in partitions]
    return ProduceRequest(
        acks=acks, timeout_ms=5_000, topic_data=[Topic(name=topic, partition_data=data)]
    )


async def put(
    client: WireClient, data: bytes | bytearray, version: int = 9, acks: int = -1
) -> Produced:
    response = await client.ask(to((0, data), acks=acks), version, ProduceResponse)
    return response.responses[0].partition_responses[0]


async def look_up(client: WireClient, timestamp: int) -> tuple[int, int]:
    """(offset, timestamp)."""
    Asked = ListOffsetsRequest.ListOffsetsTopic
    asked = Asked(
        name="t",
        partitions=[Asked.ListOffsetsPartition(partition_index=0, timestamp=timestamp)],
    )
    request = ListOffsetsRequest(replica_id=-1, topics=[asked])
    response = await client.ask(request, 8, ListOffsetsResponse)
    answer = response.topics[0].partitions[0]
    assert answer.error_code == NONE
    return answer.offset, answer.timestamp


async def fetched(
    client: WireClient,
    offsets: dict[int, int],
    *,
    version: int = 11,
    max_bytes: int = 1 << 20,
    partition_max_bytes: int = 1 << 20,
) -> dict[int, FetchResponse.FetchableTopicResponse.PartitionData]:
    Asked = FetchRequest.FetchTopic
    asked = Asked(
        topic="t",
        partitions=[
            Asked.FetchPartition(
                partition=partition, fetch_offset=offset, partition_max_bytes=partition_max_bytes
            )
            for partition, offset in offsets.items()
        ],
    )
    request = FetchRequest(max_wait_ms=100, min_bytes=1, max_bytes=max_bytes, topics=[asked])
    response = await client.ask(request, version, FetchResponse)
    return {data.partition_index: data for data in response.responses[0].partitions}


def records_of(data: FetchResponse.FetchableTopicResponse.PartitionData) -> list[Record]:
    assert data.error_code == NONE
    if data.records is None:
        return []
    assert isinstance(data.records, memoryview)
    return [r for batch in batches(data.records) for r in decode_records(batch.view)]


def record(value: bytes = b"v", timestamp: int = 1000) -> Record:
    return Record(key=b"k", value=value, timestamp=timestamp)


def with_codec(codec: int) -> bytearray:
    data = encode_batch([record()])
    data[22] |= codec
    data[17:21] = crc_of(data).to_bytes(4, "big")
    return data


# Looking up.


@pytest.mark.parametrize("layout", ["four batches", "one batch", "lz4"])
async def test_p07_offsets_by_time_before_and_after_a_restart(tmp_path: Path, layout: str) -> None:
    async def check(client: WireClient) -> None:
        expected = {0: 0, 1: 0, 2: 0, 3: 1, 4: 1, 5: 2, 6: 2, 7: 3, 8: 3}
        for timestamp, offset in expected.items():
            assert await look_up(client, timestamp) == (offset, 2 * offset + 2)
        assert await look_up(client, 9) == (-1, -1)
        assert await look_up(client, -2) == (0, -1)
        assert await look_up(client, -1) == (4, -1)
        assert await look_up(client, -3) == (3, 8)
        assert await look_up(client, -4) == (0, -1)

    records = [record(timestamp=time) for time in (2, 4, 6, 8)]
    async with (
        running_node(tmp_path / "data") as node,
        await WireClient.connect(port(node)) as client,
    ):
        await create(client, "t")
        if layout == "four batches":
            for one in records:
                await put(client, encode_batch([one]))
        else:
            codec = Compression.LZ4 if layout == "lz4" else Compression.NONE
            await put(client, encode_batch(records, compression=codec))
        await check(client)
    async with (
        running_node(tmp_path / "data") as node,
        await WireClient.connect(port(node)) as client,
    ):
        await node.services.new_logs_open(float("inf"))
        await check(client)


@pytest.mark.parametrize("claimed", [-1, 0, 999_999])
async def test_p09_what_is_fetched_back_has_the_right_max_timestamp(
    client: WireClient, claimed: int
) -> None:
    await create(client, "t")
    for codec in (Compression.NONE, Compression.GZIP):
        data = encode_batch(
            [record(timestamp=1000 + delta) for delta in (0, 5000, 2000)], compression=codec
        )
        data[35:43] = claimed.to_bytes(8, "big", signed=True)
        data[17:21] = crc_of(data).to_bytes(4, "big")
        base_offset = (await put(client, data)).base_offset
        back = (await fetched(client, {0: base_offset}))[0].records
        assert isinstance(back, memoryview)
        (batch,) = batches(back)
        assert batch.header.max_timestamp == 6000
        assert crc_of(batch.view) == batch.header.crc
    assert await look_up(client, 3000) == (1, 6000)
    assert await look_up(client, 6001) == (-1, -1)


# Fetching.


async def test_p11_a_first_batch_over_the_limits_is_returned_whole(client: WireClient) -> None:
    await create(client, "t")
    await put(client, encode_batch([record(bytes(900_000))]))
    for number in range(10):
        await put(client, encode_batch([record(b"%d" % number)]))
    seen: list[Record] = []
    while len(seen) < 11:
        offset = seen[-1].offset + 1 if seen else 0
        answer = await fetched(client, {0: offset}, max_bytes=1, partition_max_bytes=1)
        fresh = records_of(answer[0])
        assert len(fresh) == 1
        seen += fresh
    assert [len(one.value or b"") for one in seen] == [900_000, *[1] * 10]


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
async def test_p11_two_partitions_over_the_limits_take_turns(
    client: WireClient, order: Sequence[int]
) -> None:
    await create(client, "t", partitions=2)
    big = encode_batch([record(bytes(50_000))])
    for partition in (0, 1):
        await client.ask(to((partition, big)), 9, ProduceResponse)
    answer = await fetched(client, dict.fromkeys(order, 0), max_bytes=1, partition_max_bytes=1)
    assert len(records_of(answer[order[0]])) == 1
    assert records_of(answer[order[1]]) == []
    answer = await fetched(client, {order[0]: 1, order[1]: 0}, max_bytes=1, partition_max_bytes=1)
    assert len(records_of(answer[order[1]])) == 1


# Producing.


async def test_p17_zstd_needs_produce_version_7_and_is_fetched_as_it_is(
    client: WireClient,
) -> None:
    """Fetch below version 10 gets zstd all the same, as from Apache Kafka 4."""
    await create(client, "t")
    zstd = encode_batch([record(bytes(500))], compression=Compression.ZSTD)
    for version in (3, 6):
        answer = await put(client, zstd, version)
        assert (answer.error_code, answer.base_offset) == (
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
            -1,
        )
    assert (await put(client, zstd, 7)).base_offset == 0
    assert (await put(client, zstd, 9)).base_offset == 1
    for version in (4, 9, 10, 11):
        answer_data = (await fetched(client, {0: 0}, version=version))[0]
        assert len(records_of(answer_data)) == 2


async def test_p17_a_topics_own_zstd_is_fetched_by_old_and_new(client: WireClient) -> None:
    await create(client, "t", compression_type="zstd")
    plain = encode_batch([record(bytes(500))])
    assert (await put(client, plain, 3)).base_offset == 0
    for version in (4, 9, 10, 11):
        answer = (await fetched(client, {0: 0}, version=version))[0]
        assert [one.value for one in records_of(answer)] == [bytes(500)]
        assert isinstance(answer.records, memoryview)
        assert next(batches(answer.records)).header.compression is Compression.ZSTD


@pytest.mark.parametrize("codec", [5, 7])
async def test_p17_an_unknown_codec_is_refused_and_touches_no_other_partition(
    client: WireClient, codec: int
) -> None:
    await create(client, "t", partitions=2)
    request = to((0, with_codec(codec)), (1, encode_batch([record()])))
    response = await client.ask(request, 9, ProduceResponse)
    bad, good = response.responses[0].partition_responses
    assert (bad.error_code, bad.base_offset) == (ErrorCode.INVALID_RECORD, -1)
    assert (good.error_code, good.base_offset) == (NONE, 0)
    assert await look_up(client, -1) == (0, -1)


async def test_p20_acks_0_is_never_answered_and_keeps_its_place(client: WireClient) -> None:
    await create(client, "t")
    named = MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name="t")])
    client.send(to((0, encode_batch([record(b"1")])), acks=0), 9)
    second = client.send(named, 9)
    third = client.send(to((0, encode_batch([record(b"3")])), acks=1), 9)
    client.send(to((0, encode_batch([record(b"4")])), acks=0), 9)
    fifth = client.send(ApiVersionsRequest(), 2)
    # Each answer is decoded by the header of its own request: another order would not fit.
    assert (await client.receive(second, MetadataResponse)).topics[0].name == "t"
    answer = (await client.receive(third, ProduceResponse)).responses[0].partition_responses[0]
    assert (answer.error_code, answer.base_offset) == (NONE, 1)
    assert (await client.receive(fifth, ApiVersionsResponse)).error_code == NONE
    stored = records_of((await fetched(client, {0: 0}))[0])
    assert [one.value for one in stored] == [b"1", b"3", b"4"]


@pytest.mark.parametrize("acks", [2, -2])
async def test_p20_other_acks_are_refused_and_nothing_is_stored(
    client: WireClient, acks: int
) -> None:
    await create(client, "t")
    answer = await put(client, encode_batch([record()]), acks=acks)
    assert (answer.error_code, answer.base_offset) == (ErrorCode.INVALID_REQUIRED_ACKS, -1)
    assert await look_up(client, -1) == (0, -1)


# Idempotent producers.


async def producer_id(client: WireClient) -> int:
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
    response = await client.ask(request, 4, InitProducerIdResponse)
    assert response.error_code == NONE
    return response.producer_id


def pair(producer: int, sequence: int, epoch: int = 0, count: int = 2) -> bytearray:
    # Of today: what a producer last wrote long ago is forgotten, by the time of its records.
    now = record(timestamp=SystemClock().now_ms())
    return encode_batch(
        [now] * count, producer_id=producer, producer_epoch=epoch, base_sequence=sequence
    )


async def test_p36_repeats_gaps_and_overlaps_before_and_after_a_restart(tmp_path: Path) -> None:
    out_of_order = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER

    async def resent(client: WireClient, sequence: int, count: int = 2) -> tuple[int, int]:
        answer = await put(client, pair(producer, sequence, count=count))
        return answer.error_code, answer.base_offset

    async def check(client: WireClient) -> None:
        for sequence in (12, 10, 4):
            assert await resent(client, sequence) == (NONE, sequence)
        code, _ = await resent(client, 0)
        assert code in (out_of_order, ErrorCode.DUPLICATE_SEQUENCE_NUMBER)
        assert (await resent(client, 20))[0] == out_of_order
        assert (await resent(client, 12, count=4))[0] == out_of_order
        negative_epoch = await put(client, pair(producer, 14, epoch=-1))
        assert negative_epoch.error_code == ErrorCode.INVALID_RECORD
        assert await look_up(client, -1) == (14, -1)

    async with (
        running_node(tmp_path / "data") as node,
        await WireClient.connect(port(node)) as client,
    ):
        await create(client, "t")
        producer = await producer_id(client)
        for sequence in range(0, 14, 2):
            assert await resent(client, sequence) == (NONE, sequence)
        await check(client)
    async with (
        running_node(tmp_path / "data") as node,
        await WireClient.connect(port(node)) as client,
    ):
        await node.services.new_logs_open(float("inf"))
        await check(client)
        assert (await put(client, pair(producer, 0, epoch=1))).base_offset == 14
        assert (await put(client, pair(producer, 14))).error_code in (
            ErrorCode.INVALID_PRODUCER_EPOCH,
        )
        other = await producer_id(client)
        assert other != producer
        # A producer that is not known may begin anywhere (its state may have expired).
        wrapping = pair(other, 2**31 - 2, count=4)
        assert (await put(client, wrapping)).base_offset == 16
        assert (await put(client, pair(other, 2))).base_offset == 20
        assert (await put(client, wrapping)).base_offset == 16
