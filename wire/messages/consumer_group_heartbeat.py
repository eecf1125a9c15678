"""API key 68: ConsumerGroupHeartbeat."""

from __future__ import annotations

from uuid import UUID

from ..schema import Message, Struct, array, int16, int32, nested, string, uuid


class ConsumerGroupHeartbeatRequest(Message, versions="0-1", flexible="0+"):
    """The one request of a KIP-848 group member: joins, reports, leaves.

    v1 adds subscription by regular expression.
    """

    group_id: str = string()
    member_id: str = string()
    member_epoch: int = int32()
    instance_id: str | None = string(default=None, nullable="0+")
    rack_id: str | None = string(default=None, nullable="0+")
    rebalance_timeout_ms: int = int32(default=-1)
    subscribed_topic_names: list[str] | None = array(string, default=None, nullable="0+")
    subscribed_topic_regex: str | None = string(default=None, versions="1+", nullable="1+")
    server_assignor: str | None = string(default=None, nullable="0+")

    class TopicPartitions(Struct):
        topic_id: UUID = uuid()
        partitions: list[int] = array(int32)

    topic_partitions: list[TopicPartitions] | None = array(
        TopicPartitions, default=None, nullable="0+"
    )


class _TopicPartitions(Struct):
    topic_id: UUID = uuid()
    partitions: list[int] = array(int32)


class ConsumerGroupHeartbeatResponse(Message, versions="0-1", flexible="0+"):
    """The member's epoch and its assignment where that has changed."""

    TopicPartitions = _TopicPartitions

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(default=None, nullable="0+")
    member_id: str | None = string(default=None, nullable="0+")
    member_epoch: int = int32()
    heartbeat_interval_ms: int = int32()

    class Assignment(Struct):
        topic_partitions: list[_TopicPartitions] = array(_TopicPartitions)

    assignment: Assignment | None = nested(Assignment, nullable="0+")
