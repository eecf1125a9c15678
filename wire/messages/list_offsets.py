"""API key 2: ListOffsets."""

from __future__ import annotations

from ..schema import Message, Struct, array, int8, int16, int32, int64, string


class ListOffsetsRequest(Message, versions="1-11", flexible="6+"):
    """Which offset stands at a timestamp, or at a special point of the log.

    Special timestamps: -1 latest, -2 earliest, -3 largest timestamp (v7), -4 earliest local (v8),
    -5 latest tiered (v9). v4 adds leader epochs, v10 a timeout.
    """

    replica_id: int = int32()
    isolation_level: int = int8(versions="2+")

    class ListOffsetsTopic(Struct):
        name: str = string()

        class ListOffsetsPartition(Struct):
            partition_index: int = int32()
            current_leader_epoch: int = int32(default=-1, versions="4+", ignorable=True)
            timestamp: int = int64()

        partitions: list[ListOffsetsPartition] = array(ListOffsetsPartition)

    topics: list[ListOffsetsTopic] = array(ListOffsetsTopic)
    timeout_ms: int = int32(versions="10+", ignorable=True)

    ListOffsetsPartition = ListOffsetsTopic.ListOffsetsPartition


class ListOffsetsResponse(Message, versions="1-11", flexible="6+"):
    """The offset found in each partition; -1 where there is none."""

    throttle_time_ms: int = int32(versions="2+", ignorable=True)

    class ListOffsetsTopicResponse(Struct):
        name: str = string()

        class ListOffsetsPartitionResponse(Struct):
            partition_index: int = int32()
            error_code: int = int16()
            timestamp: int = int64(default=-1)
            offset: int = int64(default=-1)
            leader_epoch: int = int32(default=-1, versions="4+")

        partitions: list[ListOffsetsPartitionResponse] = array(ListOffsetsPartitionResponse)

    topics: list[ListOffsetsTopicResponse] = array(ListOffsetsTopicResponse)

    ListOffsetsPartitionResponse = ListOffsetsTopicResponse.ListOffsetsPartitionResponse
