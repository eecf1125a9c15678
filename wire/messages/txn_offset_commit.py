"""API key 28: TxnOffsetCommit."""

from __future__ import annotations

from uuid import UUID

from ..schema import Message, Struct, array, int16, int32, int64, string, uuid


class TxnOffsetCommitRequest(Message, versions="0-6", flexible="3+"):
    """Store a group's offsets as part of a transaction."""

    transactional_id: str = string()
    group_id: str = string()
    producer_id: int = int64()
    producer_epoch: int = int16()
    generation_id_or_member_epoch: int = int32(default=-1, versions="3+")
    member_id: str = string(versions="3+")
    group_instance_id: str | None = string(default=None, versions="3+", nullable="3+")

    class TxnOffsetCommitRequestTopic(Struct):
        name: str = string(versions="0-5", ignorable=True)
        topic_id: UUID = uuid(versions="6+", ignorable=True)

        class TxnOffsetCommitRequestPartition(Struct):
            partition_index: int = int32()
            committed_offset: int = int64()
            committed_leader_epoch: int = int32(default=-1, versions="2+", ignorable=True)
            committed_metadata: str | None = string(nullable="0+")

        partitions: list[TxnOffsetCommitRequestPartition] = array(TxnOffsetCommitRequestPartition)

    topics: list[TxnOffsetCommitRequestTopic] = array(TxnOffsetCommitRequestTopic)

    TxnOffsetCommitRequestPartition = TxnOffsetCommitRequestTopic.TxnOffsetCommitRequestPartition


class TxnOffsetCommitResponse(Message, versions="0-6", flexible="3+"):
    """An error code for each partition."""

    throttle_time_ms: int = int32()

    class TxnOffsetCommitResponseTopic(Struct):
        name: str = string(versions="0-5", ignorable=True)
        topic_id: UUID = uuid(versions="6+", ignorable=True)

        class TxnOffsetCommitResponsePartition(Struct):
            partition_index: int = int32()
            error_code: int = int16()

        partitions: list[TxnOffsetCommitResponsePartition] = array(TxnOffsetCommitResponsePartition)

    topics: list[TxnOffsetCommitResponseTopic] = array(TxnOffsetCommitResponseTopic)

    TxnOffsetCommitResponsePartition = TxnOffsetCommitResponseTopic.TxnOffsetCommitResponsePartition
