"""API key 75: DescribeTopicPartitions."""

from __future__ import annotations

from uuid import UUID

from ..schema import Message, Struct, array, boolean, int16, int32, nested, string, uuid


class DescribeTopicPartitionsRequest(Message, versions="0", flexible="0+"):
    """Topics and partitions page by page."""

    class TopicRequest(Struct):
        name: str = string()

    topics: list[TopicRequest] = array(TopicRequest)
    response_partition_limit: int = int32(default=2000)

    class Cursor(Struct):
        topic_name: str = string()
        partition_index: int = int32()

    cursor: Cursor | None = nested(Cursor, nullable="0+")


class DescribeTopicPartitionsResponse(Message, versions="0", flexible="0+"):
    """A page, and where the next one begins."""

    throttle_time_ms: int = int32(ignorable=True)

    class DescribeTopicPartitionsResponseTopic(Struct):
        error_code: int = int16()
        name: str | None = string(nullable="0+")
        topic_id: UUID = uuid(ignorable=True)
        is_internal: bool = boolean(ignorable=True)

        class DescribeTopicPartitionsResponsePartition(Struct):
            error_code: int = int16()
            partition_index: int = int32()
            leader_id: int = int32()
            leader_epoch: int = int32(default=-1, ignorable=True)
            replica_nodes: list[int] = array(int32)
            isr_nodes: list[int] = array(int32)
            eligible_leader_replicas: list[int] | None = array(int32, default=None, nullable="0+")
            last_known_elr: list[int] | None = array(int32, default=None, nullable="0+")
            offline_replicas: list[int] = array(int32, ignorable=True)

        partitions: list[DescribeTopicPartitionsResponsePartition] = array(
            DescribeTopicPartitionsResponsePartition
        )
        topic_authorized_operations: int = int32(default=-(2**31))

    topics: list[DescribeTopicPartitionsResponseTopic] = array(DescribeTopicPartitionsResponseTopic)

    class Cursor(Struct):
        topic_name: str = string()
        partition_index: int = int32()

    next_cursor: Cursor | None = nested(Cursor, nullable="0+")

    DescribeTopicPartitionsResponsePartition = (
        DescribeTopicPartitionsResponseTopic.DescribeTopicPartitionsResponsePartition
    )
