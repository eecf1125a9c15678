"""API key 79: ShareAcknowledge."""

from __future__ import annotations

from uuid import UUID

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
    string,
    uuid,
)


class ShareAcknowledgeRequest(Message, versions="1-2", flexible="0+"):
    """Acknowledge acquired records."""

    group_id: str | None = string(default=None, nullable="0+")
    member_id: str | None = string(nullable="0+")
    share_session_epoch: int = int32()
    is_renew_ack: bool = boolean(versions="2+")

    class AcknowledgeTopic(Struct):
        topic_id: UUID = uuid()

        class AcknowledgePartition(Struct):
            partition_index: int = int32()

            class AcknowledgementBatch(Struct):
                first_offset: int = int64()
                last_offset: int = int64()
                acknowledge_types: list[int] = array(int8)

            acknowledgement_batches: list[AcknowledgementBatch] = array(AcknowledgementBatch)

        partitions: list[AcknowledgePartition] = array(AcknowledgePartition)

    topics: list[AcknowledgeTopic] = array(AcknowledgeTopic)

    AcknowledgePartition = AcknowledgeTopic.AcknowledgePartition
    AcknowledgementBatch = AcknowledgePartition.AcknowledgementBatch


class ShareAcknowledgeResponse(Message, versions="1-2", flexible="0+"):
    """An error code for each partition."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(default=None, nullable="0+")
    acquisition_lock_timeout_ms: int = int32(versions="2+", ignorable=True)

    class ShareAcknowledgeTopicResponse(Struct):
        topic_id: UUID = uuid()

        class PartitionData(Struct):
            partition_index: int = int32()
            error_code: int = int16()
            error_message: str | None = string(default=None, nullable="0+")

            class LeaderIdAndEpoch(Struct):
                leader_id: int = int32()
                leader_epoch: int = int32()

            current_leader: LeaderIdAndEpoch = nested(LeaderIdAndEpoch)

        partitions: list[PartitionData] = array(PartitionData)

    responses: list[ShareAcknowledgeTopicResponse] = array(ShareAcknowledgeTopicResponse)

    class NodeEndpoint(Struct):
        node_id: int = int32()
        host: str = string()
        port: int = int32()
        rack: str | None = string(default=None, nullable="0+")

    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint)

    PartitionData = ShareAcknowledgeTopicResponse.PartitionData
    LeaderIdAndEpoch = PartitionData.LeaderIdAndEpoch
