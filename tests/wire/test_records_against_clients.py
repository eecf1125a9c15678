"""Two clients that share no code with us: kafka-python's record builder, and librdkafka together
with the broker that it brings along for its own tests."""

from __future__ import annotations

import random
import socket
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from kafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder

from logboat.wire import ApiKey, Message, RequestHeader, decode_response, encode_request
from logboat.wire.compression import Compression
from logboat.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from logboat.wire.messages.fetch import FetchRequest, FetchResponse
from logboat.wire.messages.metadata import MetadataRequest, MetadataResponse
from logboat.wire.messages.produce import ProduceRequest, ProduceResponse
from logboat.wire.records import (
    Record,
    assign_offsets,
    batches,
    check_crc,
    check_from_client,
    decode_records,
    encode_batch,
    parse_header,
)


def some_records(rng: random.Random) -> list[Record]:
    return [
        Record(
            key=rng.choice([None, b"", rng.randbytes(rng.randrange(200))]),
            value=rng.choice([None, b"", b"text " * rng.randrange(500)]),
            headers=[("h" * n, rng.choice([None, b"x" * n])) for n in range(rng.randrange(4))],
            timestamp=1_700_000_000_000 + rng.randrange(-1000, 100_000),
        )
        for _ in range(rng.randint(1, 80))
    ]


# kafka-python


@pytest.mark.parametrize("seed", range(10))
def test_batches_have_the_bytes_of_kafka_python(seed: int) -> None:
    records = some_records(random.Random(seed))
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=0,
        is_transactional=seed % 2,
        producer_id=seed,
        producer_epoch=1,
        base_sequence=5,
        batch_size=10**9,
    )
    for offset, record in enumerate(records):
        builder.append(offset, record.timestamp, record.key, record.value, record.headers)
    ours = encode_batch(
        records,
        leader_epoch=0,
        producer_id=seed,
        producer_epoch=1,
        base_sequence=5,
        transactional=bool(seed % 2),
    )
    assert ours == bytes(builder.build())


@pytest.mark.parametrize(
    "codec", [Compression.NONE, Compression.GZIP, Compression.LZ4, Compression.ZSTD]
)
def test_kafka_python_and_we_read_each_others_batches(codec: Compression) -> None:
    records = some_records(random.Random(codec))
    ours = DefaultRecordBatch(memoryview(bytes(encode_batch(records, compression=codec))))
    assert ours.validate_crc()
    assert [(r.key, r.value, r.headers, r.timestamp) for r in ours] == [
        (r.key, r.value, list(r.headers), r.timestamp) for r in records
    ]
    builder = DefaultRecordBatchBuilder(2, codec, 0, -1, -1, -1, 10**9)
    for offset, record in enumerate(records):
        builder.append(offset, record.timestamp, record.key, record.value, record.headers)
    theirs = bytes(builder.build())
    (batch,) = batches(theirs)
    check_crc(batch)
    assert [(r.key, r.value, r.timestamp) for r in decode_records(theirs)] == [
        (r.key, r.value, r.timestamp) for r in records
    ]


# librdkafka


class MockBroker:
    """librdkafka's own broker, asked through our codec over a plain socket."""

    def __init__(self, host: str, port: int) -> None:
        self.address = f"{host}:{port}"
        self._socket = socket.create_connection((host, port), timeout=60)
        self._answers = self._socket.makefile("rb")

    def close(self) -> None:
        self._answers.close()
        self._socket.close()

    def ask(self, key: ApiKey, version: int, request: Message) -> Any:
        header = RequestHeader(
            api_key=key, api_version=version, correlation_id=5, client_id="logboat"
        )
        frame = b"".join(encode_request(header, request))
        self._socket.sendall(len(frame).to_bytes(4, "big") + frame)
        length = int.from_bytes(self._answers.read(4), "big")
        return decode_response(header, self._answers.read(length))


@pytest.fixture(scope="module")
def producer() -> Producer:
    return Producer({"test.mock.num.brokers": 1, "log_level": 0, "linger.ms": 20})


@pytest.fixture(scope="module")
def broker(producer: Producer) -> Iterator[MockBroker]:
    (description,) = producer.list_topics(timeout=60).brokers.values()
    mock = MockBroker(description.host, description.port)
    yield mock
    mock.close()


def fetch(broker: MockBroker, version: int, topic: str, offset: int) -> memoryview:
    metadata: MetadataResponse = broker.ask(
        ApiKey.METADATA,
        12,
        MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name=topic)]),
    )
    partition = FetchRequest.FetchPartition(
        partition=0, fetch_offset=offset, partition_max_bytes=10_000_000
    )
    asked = FetchRequest.FetchTopic(topic=topic, partitions=[partition])
    if version >= 13:
        asked.topic_id = metadata.topics[0].topic_id
    request = FetchRequest(max_wait_ms=100, min_bytes=1, topics=[asked])
    response: FetchResponse = broker.ask(ApiKey.FETCH, version, request)
    answer = response.responses[0].partitions[0]
    assert answer.error_code == 0
    assert isinstance(answer.records, memoryview)
    return answer.records


def test_the_mock_broker_understands_our_requests(broker: MockBroker) -> None:
    answer: ApiVersionsResponse = broker.ask(ApiKey.API_VERSIONS, 2, ApiVersionsRequest())
    served = {row.api_key: row for row in answer.api_keys}
    assert ApiKey.PRODUCE in served
    for version in range(served[ApiKey.METADATA].max_version + 1):
        metadata: MetadataResponse = broker.ask(
            ApiKey.METADATA, version, MetadataRequest(topics=None if version else [])
        )
        assert [node.port for node in metadata.brokers] == [int(broker.address.split(":")[1])]


@pytest.mark.parametrize("codec", Compression, ids=lambda codec: codec.name.lower())
def test_batches_of_librdkafka_are_read(broker: MockBroker, codec: Compression) -> None:
    topic = f"from-librdkafka-{codec.name.lower()}"
    records = some_records(random.Random(codec + 100))
    sender = Producer(
        {
            "bootstrap.servers": broker.address,
            "log_level": 0,
            "linger.ms": 50,
            "compression.type": codec.name.lower(),
        }
    )
    for record in records:
        sender.produce(
            topic,
            key=record.key,
            value=record.value,
            headers=list(record.headers),
            timestamp=record.timestamp,
            partition=0,
        )
    assert sender.flush(10) == 0
    for version in (4, 11, 12, 13, 16):
        read: list[Record] = []
        codecs = []
        # The mock answers with one batch at a time, and on a busy machine the first record goes
        # alone, uncompressed, since compressing it would make it grow.
        while len(read) < len(records):
            for batch in batches(fetch(broker, version, topic, len(read))):
                check_crc(batch)
                check_from_client(batch.header)
                codecs.append(batch.header.compression)
                read += decode_records(batch.view)
        assert codec in codecs
        assert set(codecs) <= {codec, Compression.NONE}
        assert [record.offset for record in read] == list(range(len(records)))
        assert [(r.key, r.value, list(r.headers), r.timestamp) for r in read] == [
            (r.key, r.value, list(r.headers), r.timestamp) for r in records
        ]


@pytest.mark.parametrize("codec", Compression, ids=lambda codec: codec.name.lower())
def test_librdkafka_reads_our_batches(broker: MockBroker, codec: Compression) -> None:
    topic = f"from-logboat-{codec.name.lower()}"
    broker.ask(
        ApiKey.METADATA,
        4,
        MetadataRequest(
            topics=[MetadataRequest.MetadataRequestTopic(name=topic)],
            allow_auto_topic_creation=True,
        ),
    )
    records = some_records(random.Random(codec + 200))
    data = encode_batch(records, compression=codec)
    assign_offsets(data, parse_header(data), base_offset=0, leader_epoch=0)
    partition = ProduceRequest.PartitionProduceData(index=0, records=data)
    sent = ProduceRequest.TopicProduceData(name=topic, partition_data=[partition])
    answer: ProduceResponse = broker.ask(
        ApiKey.PRODUCE, 9, ProduceRequest(acks=-1, timeout_ms=5000, topic_data=[sent])
    )
    assert answer.responses[0].partition_responses[0].error_code == 0

    consumer = Consumer(
        {
            "bootstrap.servers": broker.address,
            "group.id": "g",
            "log_level": 0,
            "check.crcs": True,
        }
    )
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    try:
        read = consumer.consume(len(records), timeout=60)
    finally:
        consumer.close()
    assert [(r.offset(), r.key(), r.value(), r.timestamp()[1]) for r in read] == [
        (offset, record.key, record.value, record.timestamp)
        for offset, record in enumerate(records)
    ]
    assert [r.headers() or [] for r in read] == [list(record.headers) for record in records]
