"""API key 78: ShareFetch."""

from __future__ import annotations

from uuid import UUID

from ..buffers import Records
from ..schema import (
    Message,
    Struct,
    array,
    boolean,
    int8,
    int16,
    int32,
    int64,
    nested,
    record_set,
    string,
    uuid,
)


class ShareFetchRequest(Message, versions="1-2", flexible="0+"):
    """Acquire records of a share group; may acknowledge earlier ones."""

    group_id: str | None = string(default=None, nullable="0+")
    member_id: str | None = string(nullable="0+")
    share_session_epoch: int = int32()
    max_wait_ms: int = int32()
    min_bytes: int = int32()
    max_bytes: int = int32(default=2**31 - 1)
    max_records: int = int32()
    batch_size: int = int32()
    share_acquire_mode: int = int8(versions="2+", ignorable=True)
    is_renew_ack: bool = boolean(versions="2+")

    class FetchTopic(Struct):
        topic_id: UUID = uuid()

        class FetchPartition(Struct):
            partition_index: int = int32()

            class AcknowledgementBatch(Struct):
                first_offset: int = int64()
                last_offset: int = int64()
                acknowledge_types: list[int] = array(int8)

            acknowledgement_batches: list[AcknowledgementBatch] = array(AcknowledgementBatch)

        partitions: list[FetchPartition] = array(FetchPartition)

    topics: list[FetchTopic] = array(FetchTopic)

    class ForgottenTopic(Struct):
        topic_id: UUID = uuid()
        partitions: list[int] = array(int32)

    forgotten_topics_data: list[ForgottenTopic] = array(ForgottenTopic)

    FetchPartition = FetchTopic.FetchPartition
    AcknowledgementBatch = FetchPartition.AcknowledgementBatch


class ShareFetchResponse(Message, versions="1-2", flexible="0+"):
    """Records, and which of them were acquired."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(default=None, nullable="0+")
    acquisition_lock_timeout_ms: int = int32()

    class ShareFetchableTopicResponse(Struct):
        topic_id: UUID = uuid()

        class PartitionData(Struct):
            partition_index: int = int32()
            error_code: int = int16()
            error_message: str | None = string(default=None, nullable="0+")
            acknowledge_error_code: int = int16()
            acknowledge_error_message: str | None = string(default=None, nullable="0+")

            class LeaderIdAndEpoch(Struct):
                leader_id: int = int32()
                leader_epoch: int = int32()

            current_leader: LeaderIdAndEpoch = nested(LeaderIdAndEpoch)
            records: Records = record_set()

            class AcquiredRecords(Struct):
                first_offset: int = int64()
                last_offset: int = int64()
                delivery_count: int = int16()

            acquired_records: list[AcquiredRecords] = array(AcquiredRecords)

        partitions: list[PartitionData] = array(PartitionData)

    responses: list[ShareFetchableTopicResponse] = array(ShareFetchableTopicResponse)

    class NodeEndpoint(Struct):
        node_id: int = int32()
        host: str = string()
        port: int = int32()
        rack: str | None = string(default=None, nullable="0+")

    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint)

    PartitionData = ShareFetchableTopicResponse.PartitionData
    LeaderIdAndEpoch = PartitionData.LeaderIdAndEpoch
    AcquiredRecords = PartitionData.AcquiredRecords
