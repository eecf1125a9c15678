"""API key 90: DescribeShareGroupOffsets."""

from __future__ import annotations

from uuid import UUID

from ..schema import Message, Struct, array, int16, int32, int64, string, uuid


class DescribeShareGroupOffsetsRequest(Message, versions="0-1", flexible="0+"):
    """Where share groups start in their partitions."""

    class DescribeShareGroupOffsetsRequestGroup(Struct):
        group_id: str = string()

        class DescribeShareGroupOffsetsRequestTopic(Struct):
            topic_name: str = string()
            partitions: list[int] = array(int32)

        topics: list[DescribeShareGroupOffsetsRequestTopic] | None = array(
            DescribeShareGroupOffsetsRequestTopic, nullable="0+"
        )

    groups: list[DescribeShareGroupOffsetsRequestGroup] = array(
        DescribeShareGroupOffsetsRequestGroup
    )

    DescribeShareGroupOffsetsRequestTopic = (
        DescribeShareGroupOffsetsRequestGroup.DescribeShareGroupOffsetsRequestTopic
    )


class DescribeShareGroupOffsetsResponse(Message, versions="0-1", flexible="0+"):
    """Start offset of each partition."""

    throttle_time_ms: int = int32()

    class DescribeShareGroupOffsetsResponseGroup(Struct):
        group_id: str = string()

        class DescribeShareGroupOffsetsResponseTopic(Struct):
            topic_name: str = string()
            topic_id: UUID = uuid()

            class DescribeShareGroupOffsetsResponsePartition(Struct):
                partition_index: int = int32()
                start_offset: int = int64()
                leader_epoch: int = int32()
                lag: int = int64(default=-1, versions="1+", ignorable=True)
                error_code: int = int16()
                error_message: str | None = string(default=None, nullable="0+")

            partitions: list[DescribeShareGroupOffsetsResponsePartition] = array(
                DescribeShareGroupOffsetsResponsePartition
            )

        topics: list[DescribeShareGroupOffsetsResponseTopic] = array(
            DescribeShareGroupOffsetsResponseTopic
        )
        error_code: int = int16()
        error_message: str | None = string(default=None, nullable="0+")

    groups: list[DescribeShareGroupOffsetsResponseGroup] = array(
        DescribeShareGroupOffsetsResponseGroup
    )

    DescribeShareGroupOffsetsResponseTopic = (
        DescribeShareGroupOffsetsResponseGroup.DescribeShareGroupOffsetsResponseTopic
    )
    DescribeShareGroupOffsetsResponsePartition = (
        DescribeShareGroupOffsetsResponseTopic.DescribeShareGroupOffsetsResponsePartition
    )
