"""API key 61: DescribeProducers."""

from __future__ import annotations

from ..schema import Message, Struct, array, int16, int32, int64, string


class DescribeProducersRequest(Message, versions="0", flexible="0+"):
    """Which producers write to a partition."""

    class TopicRequest(Struct):
        name: str = string()
        partition_indexes: list[int] = array(int32)

    topics: list[TopicRequest] = array(TopicRequest)


class DescribeProducersResponse(Message, versions="0", flexible="0+"):
    """Their ids, epochs, sequences and open transactions."""

    throttle_time_ms: int = int32()

    class TopicResponse(Struct):
        name: str = string()

        class PartitionResponse(Struct):
            partition_index: int = int32()
            error_code: int = int16()
            error_message: str | None = string(default=None, nullable="0+")

            class ProducerState(Struct):
                producer_id: int = int64()
                producer_epoch: int = int32()
                last_sequence: int = int32(default=-1)
                last_timestamp: int = int64(default=-1)
                coordinator_epoch: int = int32()
                current_txn_start_offset: int = int64(default=-1)

            active_producers: list[ProducerState] = array(ProducerState)

        partitions: list[PartitionResponse] = array(PartitionResponse)

    topics: list[TopicResponse] = array(TopicResponse)

    PartitionResponse = TopicResponse.PartitionResponse
    ProducerState = PartitionResponse.ProducerState
