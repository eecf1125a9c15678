"""What members of a consumer group say to its coordinator (classic protocol), each in its last
version without flexible fields.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from .primitives import Reader, Writer
from .requests import TopicPartition

GROUP_KEY = 0
CONSUMER = "consumer"
ASSIGNOR = "range"
BY_NOBODY = -1
"""Generation of a commit that no member makes."""


def find_coordinator_request(group: str) -> Writer:
    return Writer().string(group).int8(GROUP_KEY)


def find_coordinator_response(reader: Reader) -> tuple[int, int]:
    """(error, node id)."""
    reader.int32()  # Throttle time.
    error = reader.int16()
    reader.string()
    return error, reader.int32()


class Joined(NamedTuple):
    error: int
    generation_id: int
    leader_id: str
    member_id: str
    members: tuple[str, ...]
    """All of them, told to the leader only."""

    @property
    def leads(self) -> bool:
        return self.member_id == self.leader_id


def join_group_request(
    group: str, member_id: str, topic: str, *, session_timeout_ms: int, rebalance_timeout_ms: int
) -> Writer:
    subscription = Writer().int16(0).array([topic], Writer.string).int32(-1)
    writer = Writer().string(group).int32(session_timeout_ms).int32(rebalance_timeout_ms)
    writer.string(member_id).string(None).string(CONSUMER)
    return writer.array([bytes(subscription.data)], lambda w, data: w.string(ASSIGNOR).blob(data))


def join_group_response(reader: Reader) -> Joined:
    reader.int32()
    error, generation_id = reader.int16(), reader.int32()
    reader.string()
    leader_id, member_id = reader.string() or "", reader.string() or ""

    def member(reader: Reader) -> str:
        name = reader.string() or ""
        reader.string()
        reader.blob()
        return name

    return Joined(error, generation_id, leader_id, member_id, tuple(reader.array(member)))


def sync_group_request(
    group: str,
    generation_id: int,
    member_id: str,
    assignments: Mapping[str, Sequence[TopicPartition]],
) -> Writer:
    writer = Writer().string(group).int32(generation_id).string(member_id).string(None)
    return writer.array(
        assignments.items(), lambda w, item: w.string(item[0]).blob(_assignment(item[1]))
    )


def sync_group_response(reader: Reader) -> tuple[int, tuple[TopicPartition, ...]]:
    """(error, what the member owns now)."""
    reader.int32()
    error, data = reader.int16(), reader.blob()
    if error or not data:
        return error, ()
    assignment = Reader(data)
    assignment.int16()
    owned = assignment.array(lambda r: (r.string() or "", r.array(Reader.int32)))
    return error, tuple(TopicPartition(topic, one) for topic, numbers in owned for one in numbers)


def _assignment(partitions: Iterable[TopicPartition]) -> bytes:
    writer = Writer().int16(0)
    writer.array(by_topic(partitions).items(), _topic_of_numbers)
    return bytes(writer.int32(-1).data)


def heartbeat_request(group: str, generation_id: int, member_id: str) -> Writer:
    return Writer().string(group).int32(generation_id).string(member_id).string(None)


def leave_group_request(group: str, member_id: str) -> Writer:
    return Writer().string(group).array([member_id], lambda w, name: w.string(name).string(None))


def plain_response(reader: Reader) -> int:
    """The error of an answer to a heartbeat or a leave."""
    reader.int32()
    return reader.int16()


def offset_commit_request(
    group: str, generation_id: int, member_id: str, offsets: Mapping[TopicPartition, int]
) -> Writer:
    def one(writer: Writer, number: tuple[TopicPartition, int]) -> None:
        partition, offset = number
        writer.int32(partition.partition).int64(offset).int32(-1).string("")

    by_topic: dict[str, list[tuple[TopicPartition, int]]] = {}
    for partition, offset in offsets.items():
        by_topic.setdefault(partition.topic, []).append((partition, offset))
    writer = Writer().string(group).int32(generation_id).string(member_id).string(None)
    return writer.array(by_topic.items(), lambda w, item: w.string(item[0]).array(item[1], one))


def offset_commit_response(reader: Reader) -> dict[TopicPartition, int]:
    """By partition: the error."""
    reader.int32()
    answered = reader.array(
        lambda r: (r.string() or "", r.array(lambda one: (one.int32(), one.int16())))
    )
    return {
        TopicPartition(topic, number): error for topic, found in answered for number, error in found
    }


def offset_fetch_request(group: str, partitions: Iterable[TopicPartition]) -> Writer:
    return Writer().string(group).array(by_topic(partitions).items(), _topic_of_numbers)


def offset_fetch_response(reader: Reader) -> tuple[int, dict[TopicPartition, int]]:
    """(the first error, the committed offset of each partition; -1 for none)."""
    reader.int32()
    errors: list[int] = []

    def partition(reader: Reader) -> tuple[int, int]:
        number, offset = reader.int32(), reader.int64()
        reader.int32()  # Leader epoch.
        reader.string()
        errors.append(reader.int16())
        return number, offset

    answered = reader.array(lambda r: (r.string() or "", r.array(partition)))
    errors.append(reader.int16())
    offsets = {
        TopicPartition(topic, number): offset
        for topic, found in answered
        for number, offset in found
    }
    return next((error for error in errors if error), 0), offsets


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    by_topic: dict[str, list[int]] = {}
    for partition in partitions:
        by_topic.setdefault(partition.topic, []).append(partition.partition)
    return by_topic


def _topic_of_numbers(writer: Writer, item: tuple[str, list[int]]) -> None:
    writer.string(item[0]).array(item[1], Writer.int32)
