"""API key 45: AlterPartitionReassignments."""

from __future__ import annotations

from ..schema import Message, Struct, array, boolean, int16, int32, string


class AlterPartitionReassignmentsRequest(Message, versions="0-1", flexible="0+"):
    """Move partitions to other brokers, or cancel that."""

    timeout_ms: int = int32(default=60000)
    allow_replication_factor_change: bool = boolean(default=True, versions="1+")

    class ReassignableTopic(Struct):
        name: str = string()

        class ReassignablePartition(Struct):
            partition_index: int = int32()
            replicas: list[int] | None = array(int32, default=None, nullable="0+")

        partitions: list[ReassignablePartition] = array(ReassignablePartition)

    topics: list[ReassignableTopic] = array(ReassignableTopic)

    ReassignablePartition = ReassignableTopic.ReassignablePartition


class AlterPartitionReassignmentsResponse(Message, versions="0-1", flexible="0+"):
    """An error code for each partition."""

    throttle_time_ms: int = int32()
    allow_replication_factor_change: bool = boolean(default=True, versions="1+", ignorable=True)
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")

    class ReassignableTopicResponse(Struct):
        name: str = string()

        class ReassignablePartitionResponse(Struct):
            partition_index: int = int32()
            error_code: int = int16()
            error_message: str | None = string(nullable="0+")

        partitions: list[ReassignablePartitionResponse] = array(ReassignablePartitionResponse)

    responses: list[ReassignableTopicResponse] = array(ReassignableTopicResponse)

    ReassignablePartitionResponse = ReassignableTopicResponse.ReassignablePartitionResponse
