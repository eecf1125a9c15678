"""API key 47: OffsetDelete."""

from __future__ import annotations

from ..schema import Message, Struct, array, int16, int32, string


class OffsetDeleteRequest(Message, versions="0"):
    """Delete stored offsets of a group."""

    group_id: str = string()

    class OffsetDeleteRequestTopic(Struct):
        name: str = string()

        class OffsetDeleteRequestPartition(Struct):
            partition_index: int = int32()

        partitions: list[OffsetDeleteRequestPartition] = array(OffsetDeleteRequestPartition)

    topics: list[OffsetDeleteRequestTopic] = array(OffsetDeleteRequestTopic)

    OffsetDeleteRequestPartition = OffsetDeleteRequestTopic.OffsetDeleteRequestPartition


class OffsetDeleteResponse(Message, versions="0"):
    """An error code for each partition."""

    error_code: int = int16()
    throttle_time_ms: int = int32(ignorable=True)

    class OffsetDeleteResponseTopic(Struct):
        name: str = string()

        class OffsetDeleteResponsePartition(Struct):
            partition_index: int = int32()
            error_code: int = int16()

        partitions: list[OffsetDeleteResponsePartition] = array(OffsetDeleteResponsePartition)

    topics: list[OffsetDeleteResponseTopic] = array(OffsetDeleteResponseTopic)

    OffsetDeleteResponsePartition = OffsetDeleteResponseTopic.OffsetDeleteResponsePartition
