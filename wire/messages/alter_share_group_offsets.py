"""API key 91: AlterShareGroupOffsets."""

from __future__ import annotations

from uuid import UUID

from ..schema import Message, Struct, array, int16, int32, int64, string, uuid


class AlterShareGroupOffsetsRequest(Message, versions="0", flexible="0+"):
    """Set where a share group starts."""

    group_id: str = string()

    class AlterShareGroupOffsetsRequestTopic(Struct):
        topic_name: str = string()

        class AlterShareGroupOffsetsRequestPartition(Struct):
            partition_index: int = int32()
            start_offset: int = int64()

        partitions: list[AlterShareGroupOffsetsRequestPartition] = array(
            AlterShareGroupOffsetsRequestPartition
        )

    topics: list[AlterShareGroupOffsetsRequestTopic] = array(AlterShareGroupOffsetsRequestTopic)

    AlterShareGroupOffsetsRequestPartition = (
        AlterShareGroupOffsetsRequestTopic.AlterShareGroupOffsetsRequestPartition
    )


class AlterShareGroupOffsetsResponse(Message, versions="0", flexible="0+"):
    """An error code for each partition."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(default=None, nullable="0+")

    class AlterShareGroupOffsetsResponseTopic(Struct):
        topic_name: str = string()
        topic_id: UUID = uuid()

        class AlterShareGroupOffsetsResponsePartition(Struct):
            partition_index: int = int32()
            error_code: int = int16()
            error_message: str | None = string(default=None, nullable="0+")

        partitions: list[AlterShareGroupOffsetsResponsePartition] = array(
            AlterShareGroupOffsetsResponsePartition
        )

    responses: list[AlterShareGroupOffsetsResponseTopic] = array(
        AlterShareGroupOffsetsResponseTopic
    )

    AlterShareGroupOffsetsResponsePartition = (
        AlterShareGroupOffsetsResponseTopic.AlterShareGroupOffsetsResponsePartition
    )
