"""API key 46: ListPartitionReassignments."""

from __future__ import annotations

from ..schema import Message, Struct, array, int16, int32, string


class ListPartitionReassignmentsRequest(Message, versions="0", flexible="0+"):
    """The moves that are under way."""

    timeout_ms: int = int32(default=60000)

    class ListPartitionReassignmentsTopics(Struct):
        name: str = string()
        partition_indexes: list[int] = array(int32)

    topics: list[ListPartitionReassignmentsTopics] | None = array(
        ListPartitionReassignmentsTopics, default=None, nullable="0+"
    )


class ListPartitionReassignmentsResponse(Message, versions="0", flexible="0+"):
    """Replicas, and which of them come and go."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")

    class OngoingTopicReassignment(Struct):
        name: str = string()

        class OngoingPartitionReassignment(Struct):
            partition_index: int = int32()
            replicas: list[int] = array(int32)
            adding_replicas: list[int] = array(int32)
            removing_replicas: list[int] = array(int32)

        partitions: list[OngoingPartitionReassignment] = array(OngoingPartitionReassignment)

    topics: list[OngoingTopicReassignment] = array(OngoingTopicReassignment)

    OngoingPartitionReassignment = OngoingTopicReassignment.OngoingPartitionReassignment
