"""API key 76: ShareGroupHeartbeat."""

from __future__ import annotations

from uuid import UUID

from ..schema import Message, Struct, array, int16, int32, nested, string, uuid


class ShareGroupHeartbeatRequest(Message, versions="1", flexible="0+"):
    """A share group member joins, reports or leaves."""

    group_id: str = string()
    member_id: str = string()
    member_epoch: int = int32()
    rack_id: str | None = string(default=None, nullable="0+")
    subscribed_topic_names: list[str] | None = array(string, default=None, nullable="0+")


class _TopicPartitions(Struct):
    topic_id: UUID = uuid()
    partitions: list[int] = array(int32)


class ShareGroupHeartbeatResponse(Message, versions="1", flexible="0+"):
    """The member's epoch and assignment."""

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
