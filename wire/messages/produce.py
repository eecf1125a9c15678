"""API key 0: Produce."""

from __future__ import annotations

from uuid import UUID

from ..buffers import Records
from ..schema import Message, Struct, array, int16, int32, int64, nested, record_set, string, uuid


class ProduceRequest(Message, versions="3-13", flexible="9+"):
    """Append record batches to partitions.

    v9 is flexible; v10 tells the new leader in the response; v13 names topics by id. Versions 0-2
    carried message formats that no longer exist; they are advertised for the sake of old clients,
    but refused.
    """

    transactional_id: str | None = string(default=None, nullable="0+")
    acks: int = int16()
    timeout_ms: int = int32()

    class TopicProduceData(Struct):
        name: str = string(versions="3-12", ignorable=True)
        topic_id: UUID = uuid(versions="13+", ignorable=True)

        class PartitionProduceData(Struct):
            index: int = int32()
            records: Records = record_set(nullable="0+")

        partition_data: list[PartitionProduceData] = array(PartitionProduceData)

    topic_data: list[TopicProduceData] = array(TopicProduceData)

    PartitionProduceData = TopicProduceData.PartitionProduceData


class ProduceResponse(Message, versions="3-13", flexible="9+"):
    """Where each batch went, or why it did not.

    v5 adds the log start offset, v8 an error per record, v10 the current leader and its address.
    """

    class TopicProduceResponse(Struct):
        name: str = string(versions="3-12", ignorable=True)
        topic_id: UUID = uuid(versions="13+", ignorable=True)

        class PartitionProduceResponse(Struct):
            index: int = int32()
            error_code: int = int16()
            base_offset: int = int64()
            log_append_time_ms: int = int64(default=-1, ignorable=True)
            log_start_offset: int = int64(default=-1, versions="5+", ignorable=True)

            class BatchIndexAndErrorMessage(Struct):
                batch_index: int = int32()
                batch_index_error_message: str | None = string(default=None, nullable="0+")

            record_errors: list[BatchIndexAndErrorMessage] = array(
                BatchIndexAndErrorMessage, versions="8+", ignorable=True
            )
            error_message: str | None = string(
                default=None, versions="8+", nullable="8+", ignorable=True
            )

            class LeaderIdAndEpoch(Struct):
                leader_id: int = int32(default=-1)
                leader_epoch: int = int32(default=-1)

            current_leader: LeaderIdAndEpoch | None = nested(LeaderIdAndEpoch, tag=0, tagged="10+")

        partition_responses: list[PartitionProduceResponse] = array(PartitionProduceResponse)

    responses: list[TopicProduceResponse] = array(TopicProduceResponse)
    throttle_time_ms: int = int32(ignorable=True)

    class NodeEndpoint(Struct):
        node_id: int = int32()
        host: str = string()
        port: int = int32()
        rack: str | None = string(default=None, nullable="0+")

    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, tag=0, tagged="10+")

    PartitionProduceResponse = TopicProduceResponse.PartitionProduceResponse
    BatchIndexAndErrorMessage = PartitionProduceResponse.BatchIndexAndErrorMessage
    LeaderIdAndEpoch = PartitionProduceResponse.LeaderIdAndEpoch
