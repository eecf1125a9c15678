"""What members of a consumer group say to its coordinator by the consumer protocol (KIP-848), in
the first versions that have it; all of them are flexible.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from .group_requests import by_topic
from .primitives import Reader, Writer
from .requests import TopicPartition

COMMIT_VERSION = 9
FETCH_VERSION = 9

JOINING_EPOCH = 0
LEAVING_EPOCH = -1
AS_BEFORE = -1

TOPIC_ID_BYTES = 16
TopicId = bytes
NO_TOPIC_ID: TopicId = bytes(TOPIC_ID_BYTES)


class Owned(NamedTuple):
    """Partitions of one topic."""

    topic_id: TopicId
    partitions: tuple[int, ...]


class Beat(NamedTuple):
    error: int
    member_epoch: int
    interval_ms: int
    """Until the next heartbeat."""
    assignment: tuple[Owned, ...] | None
    """None: as before."""


def heartbeat_request(
    group: str,
    member_id: str,
    member_epoch: int,
    *,
    topics: Sequence[str] | None = None,
    rebalance_timeout_ms: int = AS_BEFORE,
    owned: Sequence[Owned] | None = None,
) -> Writer:
    """None: as before."""
    writer = Writer().compact_string(group).compact_string(member_id).int32(member_epoch)
    writer.compact_string(None).compact_string(None)  # Neither instance nor rack.
    writer.int32(rebalance_timeout_ms).compact_array(topics, Writer.compact_string)
    writer.compact_string(None).compact_string(None)  # Neither pattern nor assignor.
    return writer.compact_array(owned, _owned).no_tags()


def _owned(writer: Writer, owned: Owned) -> None:
    writer.data += owned.topic_id
    writer.compact_array(owned.partitions, Writer.int32).no_tags()


def heartbeat_response(reader: Reader) -> Beat:
    reader.int32()  # Throttle time.
    error = reader.int16()
    reader.compact_string()
    reader.compact_string()
    epoch, interval_ms = reader.int32(), reader.int32()
    # A structure that may be null is led by a byte.
    if reader.int8() < 0:
        return Beat(error, epoch, interval_ms, None)
    return Beat(error, epoch, interval_ms, tuple(reader.compact_array(_assigned)))


def _assigned(reader: Reader) -> Owned:
    owned = Owned(reader.raw(TOPIC_ID_BYTES), tuple(reader.compact_array(Reader.int32)))
    reader.tags()
    return owned


def offset_commit_request(
    group: str, member_epoch: int, member_id: str, offsets: Mapping[TopicPartition, int]
) -> Writer:
    def one(writer: Writer, item: tuple[int, int]) -> None:
        number, offset = item
        writer.int32(number).int64(offset).int32(-1).compact_string("").no_tags()

    def topic(writer: Writer, item: tuple[str, list[int]]) -> None:
        name, numbers = item
        told = [(number, offsets[TopicPartition(name, number)]) for number in numbers]
        writer.compact_string(name).compact_array(told, one).no_tags()

    writer = Writer().compact_string(group).int32(member_epoch).compact_string(member_id)
    return writer.compact_string(None).compact_array(by_topic(offsets).items(), topic).no_tags()


def offset_commit_response(reader: Reader) -> dict[TopicPartition, int]:
    """By partition: the error."""

    def one(reader: Reader) -> tuple[int, int]:
        number, error = reader.int32(), reader.int16()
        reader.tags()
        return number, error

    def topic(reader: Reader) -> tuple[str, list[tuple[int, int]]]:
        name, found = reader.compact_string() or "", reader.compact_array(one)
        reader.tags()
        return name, found

    reader.int32()
    return {
        TopicPartition(name, number): error
        for name, found in reader.compact_array(topic)
        for number, error in found
    }


def offset_fetch_request(
    group: str, member_epoch: int, member_id: str, partitions: Iterable[TopicPartition]
) -> Writer:
    def topic(writer: Writer, item: tuple[str, list[int]]) -> None:
        writer.compact_string(item[0]).compact_array(item[1], Writer.int32).no_tags()

    def of_group(writer: Writer, _: None) -> None:
        writer.compact_string(group).compact_string(member_id).int32(member_epoch)
        writer.compact_array(by_topic(partitions).items(), topic).no_tags()

    return Writer().compact_array([None], of_group).int8(0).no_tags()


def offset_fetch_response(reader: Reader) -> tuple[int, dict[TopicPartition, int]]:
    """(the first error, the committed offset of each partition; -1 for none)."""
    errors: list[int] = []
    offsets: dict[TopicPartition, int] = {}

    def one(reader: Reader) -> tuple[int, int]:
        number, offset = reader.int32(), reader.int64()
        reader.int32()  # Leader epoch.
        reader.compact_string()
        errors.append(reader.int16())
        reader.tags()
        return number, offset

    def topic(reader: Reader) -> None:
        name = reader.compact_string() or ""
        for number, offset in reader.compact_array(one):
            offsets[TopicPartition(name, number)] = offset
        reader.tags()

    def of_group(reader: Reader) -> None:
        reader.compact_string()
        reader.compact_array(topic)
        errors.append(reader.int16())
        reader.tags()

    reader.int32()
    reader.compact_array(of_group)
    return next((error for error in errors if error), 0), offsets
