"""API key 8: OffsetCommit."""

from __future__ import annotations

from uuid import UUID

from ..schema import Message, Struct, array, int16, int32, int64, string, uuid


class OffsetCommitRequest(Message, versions="2-10", flexible="8+"):
    """Store the offsets that a group has consumed to.

    v7 adds static members, v10 names topics by id.
    """

    group_id: str = string()
    generation_id_or_member_epoch: int = int32(default=-1, ignorable=True)
    member_id: str = string(ignorable=True)
    group_instance_id: str | None = string(default=None, versions="7+", nullable="7+")
    retention_time_ms: int = int64(default=-1, versions="2-4", ignorable=True)

    class OffsetCommitRequestTopic(Struct):
        name: str = string(versions="2-9", ignorable=True)
        topic_id: UUID = uuid(versions="10+", ignorable=True)

        class OffsetCommitRequestPartition(Struct):
            partition_index: int = int32()
            committed_offset: int = int64()
            committed_leader_epoch: int = int32(default=-1, versions="6+", ignorable=True)
            committed_metadata: str | None = string(nullable="0+")

        partitions: list[OffsetCommitRequestPartition] = array(OffsetCommitRequestPartition)

    topics: list[OffsetCommitRequestTopic] = array(OffsetCommitRequestTopic)

    OffsetCommitRequestPartition = OffsetCommitRequestTopic.OffsetCommitRequestPartition


class OffsetCommitResponse(Message, versions="2-10", flexible="8+"):
    """An error code for each offset that was to be stored."""

    throttle_time_ms: int = int32(versions="3+", ignorable=True)

    class OffsetCommitResponseTopic(Struct):
        name: str = string(versions="2-9", ignorable=True)
        topic_id: UUID = uuid(versions="10+", ignorable=True)

        class OffsetCommitResponsePartition(Struct):
            partition_index: int = int32()
            error_code: int = int16()

        partitions: list[OffsetCommitResponsePartition] = array(OffsetCommitResponsePartition)

    topics: list[OffsetCommitResponseTopic] = array(OffsetCommitResponseTopic)

    OffsetCommitResponsePartition = OffsetCommitResponseTopic.OffsetCommitResponsePartition
