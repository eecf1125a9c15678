"""The few requests that the clients make, each in its last version without flexible fields; what
members of the consumer protocol say (KIP-848) has no such version, see `consumer_group_requests`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

from .primitives import Reader, Writer


class Api(IntEnum):
    PRODUCE = 0
    FETCH = 1
    LIST_OFFSETS = 2
    METADATA = 3
    OFFSET_COMMIT = 8
    OFFSET_FETCH = 9
    FIND_COORDINATOR = 10
    JOIN_GROUP = 11
    HEARTBEAT = 12
    LEAVE_GROUP = 13
    SYNC_GROUP = 14
    CREATE_TOPICS = 19
    DELETE_TOPICS = 20
    DELETE_RECORDS = 21
    INIT_PRODUCER_ID = 22
    OFFSET_FOR_LEADER_EPOCH = 23
    ELECT_LEADERS = 43
    INCREMENTAL_ALTER_CONFIGS = 44
    CONSUMER_GROUP_HEARTBEAT = 68


VERSIONS: Mapping[Api, int] = {
    Api.PRODUCE: 7,
    Api.FETCH: 11,
    Api.LIST_OFFSETS: 4,
    Api.METADATA: 7,
    Api.OFFSET_COMMIT: 7,
    Api.OFFSET_FETCH: 5,
    Api.FIND_COORDINATOR: 2,
    Api.JOIN_GROUP: 5,
    Api.HEARTBEAT: 3,
    Api.LEAVE_GROUP: 3,
    Api.SYNC_GROUP: 3,
    Api.CREATE_TOPICS: 4,
    Api.DELETE_TOPICS: 3,
    Api.DELETE_RECORDS: 1,
    Api.INIT_PRODUCER_ID: 1,
    Api.OFFSET_FOR_LEADER_EPOCH: 3,
    Api.ELECT_LEADERS: 1,
    Api.INCREMENTAL_ALTER_CONFIGS: 0,
    Api.CONSUMER_GROUP_HEARTBEAT: 1,
}

FLEXIBLE: Mapping[Api, int] = {
    Api.OFFSET_COMMIT: 8,
    Api.OFFSET_FETCH: 6,
    Api.CONSUMER_GROUP_HEARTBEAT: 0,
}
"""The first version with flexible fields, of those that are asked in one."""

ERRORS: Mapping[int, str] = {
    -1: "UNKNOWN_SERVER_ERROR",
    0: "NONE",
    1: "OFFSET_OUT_OF_RANGE",
    2: "CORRUPT_MESSAGE",
    3: "UNKNOWN_TOPIC_OR_PARTITION",
    5: "LEADER_NOT_AVAILABLE",
    6: "NOT_LEADER_OR_FOLLOWER",
    7: "REQUEST_TIMED_OUT",
    8: "BROKER_NOT_AVAILABLE",
    9: "REPLICA_NOT_AVAILABLE",
    10: "MESSAGE_TOO_LARGE",
    13: "NETWORK_EXCEPTION",
    14: "COORDINATOR_LOAD_IN_PROGRESS",
    15: "COORDINATOR_NOT_AVAILABLE",
    16: "NOT_COORDINATOR",
    19: "NOT_ENOUGH_REPLICAS",
    20: "NOT_ENOUGH_REPLICAS_AFTER_APPEND",
    22: "ILLEGAL_GENERATION",
    25: "UNKNOWN_MEMBER_ID",
    27: "REBALANCE_IN_PROGRESS",
    36: "TOPIC_ALREADY_EXISTS",
    38: "INVALID_REPLICATION_FACTOR",
    41: "NOT_CONTROLLER",
    45: "OUT_OF_ORDER_SEQUENCE_NUMBER",
    46: "DUPLICATE_SEQUENCE_NUMBER",
    47: "INVALID_PRODUCER_EPOCH",
    56: "KAFKA_STORAGE_ERROR",
    59: "UNKNOWN_PRODUCER_ID",
    74: "FENCED_LEADER_EPOCH",
    75: "UNKNOWN_LEADER_EPOCH",
    78: "OFFSET_NOT_AVAILABLE",
    79: "MEMBER_ID_REQUIRED",
    110: "FENCED_MEMBER_EPOCH",
    113: "STALE_MEMBER_EPOCH",
}
"""Names of the error codes that these requests may be answered with."""


def error_name(code: int) -> str:
    return ERRORS.get(code, f"ERROR_{code}")


class TopicPartition(NamedTuple):
    topic: str
    partition: int

    @property
    def key(self) -> str:
        """As histories name it."""
        return f"{self.topic}-{self.partition}"


class Broker(NamedTuple):
    node_id: int
    host: str
    port: int


class PartitionMetadata(NamedTuple):
    """-1 as leader: there is none."""

    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


class Metadata(NamedTuple):
    brokers: tuple[Broker, ...]
    controller: int
    partitions: dict[TopicPartition, PartitionMetadata]


def metadata_request(topics: Sequence[str]) -> Writer:
    writer = Writer().array(topics, Writer.string)
    return writer.int8(0)  # No creation by asking.


def metadata_response(reader: Reader) -> Metadata:
    reader.int32()  # Throttle time.
    brokers = reader.array(_broker)
    reader.string()
    controller = reader.int32()
    partitions: dict[TopicPartition, PartitionMetadata] = {}

    def topic(reader: Reader) -> None:
        reader.int16()
        name = reader.string() or ""
        reader.int8()
        for number, found in reader.array(_partition_metadata):
            partitions[TopicPartition(name, number)] = found

    reader.array(topic)
    return Metadata(tuple(brokers), controller, partitions)


def _broker(reader: Reader) -> Broker:
    node_id, host, port = reader.int32(), reader.string() or "", reader.int32()
    reader.string()  # Rack.
    return Broker(node_id, host, port)


def _partition_metadata(reader: Reader) -> tuple[int, PartitionMetadata]:
    reader.int16()
    number, leader, epoch = reader.int32(), reader.int32(), reader.int32()
    replicas, isr = reader.array(Reader.int32), reader.array(Reader.int32)
    reader.array(Reader.int32)
    return number, PartitionMetadata(leader, epoch, tuple(replicas), tuple(isr))


def create_topic_request(
    name: str,
    *,
    partitions: int,
    replication_factor: int,
    configs: Mapping[str, str],
    timeout_ms: int,
) -> Writer:
    def topic(writer: Writer, _: None) -> None:
        writer.string(name).int32(partitions).int16(replication_factor)
        writer.array((), Writer.string)
        writer.array(configs.items(), lambda w, item: w.string(item[0]).string(item[1]))

    return Writer().array([None], topic).int32(timeout_ms).int8(0)


def create_topic_response(reader: Reader) -> tuple[int, str]:
    """(error, message) of the one topic."""
    reader.int32()
    ((error, message),) = reader.array(lambda r: (r.string(), r.int16(), r.string() or "")[1:])
    return error, message


def delete_topic_request(name: str, *, timeout_ms: int) -> Writer:
    return Writer().array([name], Writer.string).int32(timeout_ms)


def delete_topic_response(reader: Reader) -> int:
    """The error of the one topic."""
    reader.int32()
    (error,) = reader.array(lambda r: (r.string(), r.int16())[1])
    return error


_TOPIC_RESOURCE = 2
_SET = 0


def alter_topic_request(name: str, configs: Mapping[str, str]) -> Writer:
    """These settings, whatever others there are."""

    def resource(writer: Writer, _: None) -> None:
        writer.int8(_TOPIC_RESOURCE).string(name)
        writer.array(configs.items(), lambda w, item: w.string(item[0]).int8(_SET).string(item[1]))

    return Writer().array([None], resource).int8(0)


def alter_topic_response(reader: Reader) -> int:
    """The error of the one topic."""
    reader.int32()
    (error,) = reader.array(lambda r: (r.int16(), r.string(), r.int8(), r.string())[0])
    return error


def produce_request(
    partition: TopicPartition, batch: bytes, *, acks: int, timeout_ms: int
) -> Writer:
    def topic(writer: Writer, _: None) -> None:
        writer.string(partition.topic)
        writer.array([None], lambda w, _: w.int32(partition.partition).blob(batch))

    return Writer().string(None).int16(acks).int32(timeout_ms).array([None], topic)


def produce_response(reader: Reader) -> tuple[int, int]:
    """(error, base offset) of the one partition."""

    def answer(reader: Reader) -> tuple[int, int]:
        reader.int32()
        error, base_offset = reader.int16(), reader.int64()
        reader.int64()
        reader.int64()
        return error, base_offset

    (((error, base_offset),),) = reader.array(lambda r: (r.string(), r.array(answer))[1])
    return error, base_offset


class FetchPosition(NamedTuple):
    leader_epoch: int
    offset: int


class Fetched(NamedTuple):
    error: int
    high_watermark: int
    log_start_offset: int
    records: bytes


def fetch_request(
    wanted: Mapping[TopicPartition, FetchPosition], *, max_wait_ms: int, max_bytes: int
) -> Writer:
    by_topic: dict[str, list[tuple[int, FetchPosition]]] = {}
    for partition, position in wanted.items():
        by_topic.setdefault(partition.topic, []).append((partition.partition, position))

    def one(writer: Writer, item: tuple[int, FetchPosition]) -> None:
        number, position = item
        writer.int32(number).int32(position.leader_epoch).int64(position.offset)
        writer.int64(-1).int32(max_bytes)

    writer = Writer().int32(-1).int32(max_wait_ms).int32(1).int32(max_bytes)
    writer.int8(0).int32(0).int32(-1)  # Read uncommitted, no session.
    writer.array(by_topic.items(), lambda w, item: w.string(item[0]).array(item[1], one))
    writer.array((), Writer.string)
    return writer.string("")


def fetch_response(reader: Reader) -> dict[TopicPartition, Fetched]:
    reader.int32()
    error = reader.int16()
    reader.int32()
    found: dict[TopicPartition, Fetched] = {}

    def topic(reader: Reader) -> None:
        name = reader.string() or ""
        for number, fetched in reader.array(_fetched):
            found[TopicPartition(name, number)] = fetched

    reader.array(topic)
    if error:
        return {partition: fetched._replace(error=error) for partition, fetched in found.items()}
    return found


def _fetched(reader: Reader) -> tuple[int, Fetched]:
    number, error, high_watermark = reader.int32(), reader.int16(), reader.int64()
    reader.int64()  # Last stable offset.
    log_start_offset = reader.int64()
    reader.array(lambda r: (r.int64(), r.int64()))  # Aborted transactions.
    reader.int32()  # Preferred read replica.
    return number, Fetched(error, high_watermark, log_start_offset, reader.blob() or b"")


def list_offsets_request(partition: TopicPartition, timestamp: int) -> Writer:
    def topic(writer: Writer, _: None) -> None:
        writer.string(partition.topic)
        writer.array([None], lambda w, _: w.int32(partition.partition).int32(-1).int64(timestamp))

    return Writer().int32(-1).int8(0).array([None], topic)


def list_offsets_response(reader: Reader) -> tuple[int, int]:
    """(error, offset) of the one partition."""
    reader.int32()

    def answer(reader: Reader) -> tuple[int, int]:
        reader.int32()
        error = reader.int16()
        reader.int64()
        offset = reader.int64()
        reader.int32()
        return error, offset

    (((error, offset),),) = reader.array(lambda r: (r.string(), r.array(answer))[1])
    return error, offset


class EpochEnd(NamedTuple):
    """Of the largest leader epoch of a log that is no larger than the one asked for."""

    error: int
    leader_epoch: int
    end_offset: int
    """Where it ends there; -1, as the epoch: the log begins later."""


def epoch_end_request(
    partition: TopicPartition, *, current_leader_epoch: int, leader_epoch: int
) -> Writer:
    def one(writer: Writer, _: None) -> None:
        writer.int32(partition.partition).int32(current_leader_epoch).int32(leader_epoch)

    def topic(writer: Writer, _: None) -> None:
        writer.string(partition.topic).array([None], one)

    return Writer().int32(-1).array([None], topic)


def epoch_end_response(reader: Reader) -> EpochEnd:
    """Of the one partition."""
    reader.int32()

    def answer(reader: Reader) -> EpochEnd:
        error = reader.int16()
        reader.int32()
        return EpochEnd(error, reader.int32(), reader.int64())

    ((end,),) = reader.array(lambda r: (r.string(), r.array(answer))[1])
    return end


def delete_records_request(partition: TopicPartition, before: int, *, timeout_ms: int) -> Writer:
    def topic(writer: Writer, _: None) -> None:
        writer.string(partition.topic)
        writer.array([None], lambda w, _: w.int32(partition.partition).int64(before))

    return Writer().array([None], topic).int32(timeout_ms)


def delete_records_response(reader: Reader) -> tuple[int, int]:
    """(error, low watermark) of the one partition."""
    reader.int32()

    def answer(reader: Reader) -> tuple[int, int]:
        reader.int32()
        low_watermark = reader.int64()
        return reader.int16(), low_watermark

    (((error, low_watermark),),) = reader.array(lambda r: (r.string(), r.array(answer))[1])
    return error, low_watermark


def init_producer_id_request() -> Writer:
    return Writer().string(None).int32(60_000)


def init_producer_id_response(reader: Reader) -> tuple[int, int, int]:
    """(error, producer id, producer epoch)."""
    reader.int32()
    return reader.int16(), reader.int64(), reader.int16()
