"""API key 23: OffsetForLeaderEpoch."""

from __future__ import annotations

from ..schema import Message, Struct, array, int16, int32, int64, string


class OffsetForLeaderEpochRequest(Message, versions="2-4", flexible="4+"):
    """Where a leader epoch ends in the leader's log; how truncation points are found."""

    replica_id: int = int32(default=-2, versions="3+", ignorable=True)

    class OffsetForLeaderTopic(Struct):
        topic: str = string()

        class OffsetForLeaderPartition(Struct):
            partition: int = int32()
            current_leader_epoch: int = int32(default=-1, ignorable=True)
            leader_epoch: int = int32()

        partitions: list[OffsetForLeaderPartition] = array(OffsetForLeaderPartition)

    topics: list[OffsetForLeaderTopic] = array(OffsetForLeaderTopic)

    OffsetForLeaderPartition = OffsetForLeaderTopic.OffsetForLeaderPartition


class OffsetForLeaderEpochResponse(Message, versions="2-4", flexible="4+"):
    """The end offset of the largest epoch not above the one asked for."""

    throttle_time_ms: int = int32(ignorable=True)

    class OffsetForLeaderTopicResult(Struct):
        topic: str = string()

        class EpochEndOffset(Struct):
            error_code: int = int16()
            partition: int = int32()
            leader_epoch: int = int32(default=-1, ignorable=True)
            end_offset: int = int64(default=-1)

        partitions: list[EpochEndOffset] = array(EpochEndOffset)

    topics: list[OffsetForLeaderTopicResult] = array(OffsetForLeaderTopicResult)

    EpochEndOffset = OffsetForLeaderTopicResult.EpochEndOffset
