"""API key 37: CreatePartitions."""

from __future__ import annotations

from ..schema import Message, Struct, array, boolean, int16, int32, string


class CreatePartitionsRequest(Message, versions="0-3", flexible="2+"):
    """Add partitions to topics."""

    class CreatePartitionsTopic(Struct):
        name: str = string()
        count: int = int32()

        class CreatePartitionsAssignment(Struct):
            broker_ids: list[int] = array(int32)

        assignments: list[CreatePartitionsAssignment] | None = array(
            CreatePartitionsAssignment, nullable="0+"
        )

    topics: list[CreatePartitionsTopic] = array(CreatePartitionsTopic)
    timeout_ms: int = int32()
    validate_only: bool = boolean()

    CreatePartitionsAssignment = CreatePartitionsTopic.CreatePartitionsAssignment


class CreatePartitionsResponse(Message, versions="0-3", flexible="2+"):
    """An error code for each topic."""

    throttle_time_ms: int = int32()

    class CreatePartitionsTopicResult(Struct):
        name: str = string()
        error_code: int = int16()
        error_message: str | None = string(default=None, nullable="0+")

    results: list[CreatePartitionsTopicResult] = array(CreatePartitionsTopicResult)
