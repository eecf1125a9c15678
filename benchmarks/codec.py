"""What decoding and encoding cost, in microseconds of CPU per call, best of five.

    python benchmarks/codec.py

The cases are those of the table that the codec was chosen by; "joined" is what a caller pays who
needs one contiguous answer instead of a list of buffers.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from uuid import UUID

from logboat.wire import ApiKey, Message, RequestHeader, decode_request_header, encode_request
from logboat.wire.messages.fetch import FetchRequest, FetchResponse
from logboat.wire.messages.metadata import MetadataResponse
from logboat.wire.messages.produce import ProduceRequest, ProduceResponse
from logboat.wire.records import Record, batches, check_crc, decode_records, encode_batch

TOPIC_ID = UUID(int=0x5EED)


def microseconds(call: Callable[[], object], rounds: int = 5) -> float:
    call()
    repeats = 1
    while True:
        spent = _cpu(call, repeats)
        if spent > 0.02:
            break
        repeats *= 4
    return min(_cpu(call, repeats) for _ in range(rounds)) / repeats * 1e6


def _cpu(call: Callable[[], object], repeats: int) -> float:
    started = time.process_time()
    for _ in range(repeats):
        call()
    return time.process_time() - started


def produce_request(topics: int, partitions: int, size: int) -> ProduceRequest:
    return ProduceRequest(
        acks=-1,
        timeout_ms=30_000,
        topic_data=[
            ProduceRequest.TopicProduceData(
                name=f"topic-{topic}",
                partition_data=[
                    ProduceRequest.PartitionProduceData(index=index, records=bytes(size))
                    for index in range(partitions)
                ],
            )
            for topic in range(topics)
        ],
    )


def produce_response(partitions: int) -> ProduceResponse:
    answers = [
        ProduceResponse.PartitionProduceResponse(index=index, base_offset=2**40)
        for index in range(partitions)
    ]
    topic = ProduceResponse.TopicProduceResponse(name="topic-0", partition_responses=answers)
    return ProduceResponse(responses=[topic])


def fetch_request(partitions: int) -> FetchRequest:
    asked = [
        FetchRequest.FetchPartition(partition=index, fetch_offset=2**40, partition_max_bytes=2**20)
        for index in range(partitions)
    ]
    return FetchRequest(topics=[FetchRequest.FetchTopic(topic_id=TOPIC_ID, partitions=asked)])


def fetch_response(partitions: int, size: int) -> FetchResponse:
    answers = [
        FetchResponse.PartitionData(partition_index=index, records=memoryview(bytes(size)))
        for index in range(partitions)
    ]
    topic = FetchResponse.FetchableTopicResponse(topic_id=TOPIC_ID, partitions=answers)
    return FetchResponse(responses=[topic])


def metadata_response(partitions: int) -> MetadataResponse:
    topics = [
        MetadataResponse.MetadataResponseTopic(
            name=f"topic-{number}",
            topic_id=UUID(int=number + 1),
            partitions=[
                MetadataResponse.MetadataResponsePartition(
                    partition_index=index,
                    leader_id=1,
                    leader_epoch=5,
                    replica_nodes=[1, 2, 3],
                    isr_nodes=[1, 2, 3],
                )
                for index in range(10)
            ],
        )
        for number in range(partitions // 10)
    ]
    brokers = [
        MetadataResponse.MetadataResponseBroker(node_id=node, host="127.0.0.1", port=9092)
        for node in (1, 2, 3)
    ]
    return MetadataResponse(brokers=brokers, cluster_id="cluster", topics=topics)


def decoding(key: ApiKey, message: Message, version: int) -> float:
    """Header and body out of a frame, as a connection does it."""
    header = RequestHeader(api_key=key, api_version=version, correlation_id=1, client_id="client")
    frame = memoryview(bytearray(b"".join(encode_request(header, message))))
    kind = type(message)

    def decode() -> None:
        read, position = decode_request_header(frame)
        kind.decode_from(frame, position, read.api_version)

    return microseconds(decode)


def encoding(message: Message, version: int) -> float:
    return microseconds(lambda: message.encode(version))


def joined(message: Message, version: int) -> float:
    return microseconds(lambda: b"".join(message.encode(version)))


def batch_cases() -> list[tuple[str, float]]:
    small = encode_batch([Record(value=bytes(1000)) for _ in range(16)])
    large = encode_batch([Record(value=bytes(1000)) for _ in range(1000)])
    records = [Record(key=b"key", value=bytes(100), timestamp=1) for _ in range(100)]
    many = encode_batch(records)

    def headers(data: bytearray) -> Callable[[], None]:
        def walk() -> None:
            for _ in batches(data):
                pass

        return walk

    def checked(data: bytearray) -> Callable[[], None]:
        def walk() -> None:
            for batch in batches(data):
                check_crc(batch)

        return walk

    return [
        ("Batch header, 16 KB", microseconds(headers(small))),
        ("Batch header and CRC, 16 KB", microseconds(checked(small))),
        ("Batch header and CRC, 1 MB", microseconds(checked(large))),
        ("Decode 100 records of 100 B", microseconds(lambda: decode_records(many))),
        ("Encode 100 records of 100 B", microseconds(lambda: encode_batch(records))),
    ]


def cases() -> list[tuple[str, float]]:
    produce, fetch = ApiKey.PRODUCE, ApiKey.FETCH
    return [
        ("Produce request decode, 16 KB", decoding(produce, produce_request(1, 1, 16_000), 12)),
        ("Produce request decode, 1 MB", decoding(produce, produce_request(1, 1, 10**6), 12)),
        (
            "Produce request decode, 10 x 10 x 1 KB",
            decoding(produce, produce_request(10, 10, 1000), 12),
        ),
        ("Produce response encode, 1 partition", encoding(produce_response(1), 12)),
        ("Produce response encode, 100 partitions", encoding(produce_response(100), 12)),
        ("Fetch request decode, 1 partition", decoding(fetch, fetch_request(1), 13)),
        ("Fetch request decode, 100 partitions", decoding(fetch, fetch_request(100), 13)),
        ("Fetch response encode, 16 KB", encoding(fetch_response(1, 16_000), 13)),
        ("Fetch response encode, 16 KB, joined", joined(fetch_response(1, 16_000), 13)),
        ("Fetch response encode, 1 MB", encoding(fetch_response(1, 10**6), 13)),
        ("Fetch response encode, 1 MB, joined", joined(fetch_response(1, 10**6), 13)),
        ("Fetch response encode, 100 x 1 KB", encoding(fetch_response(100, 1000), 13)),
        ("Metadata response encode, 1000 partitions", encoding(metadata_response(1000), 12)),
        *batch_cases(),
    ]


def main() -> None:
    for name, cost in cases():
        print(f"{name:44} {cost:9.2f}")


if __name__ == "__main__":
    main()
