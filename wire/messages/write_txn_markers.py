"""API key 27: WriteTxnMarkers."""

from __future__ import annotations

from ..schema import Message, Struct, array, boolean, int8, int16, int32, int64, string


class WriteTxnMarkersRequest(Message, versions="1-2", flexible="1+"):
    """Write commit or abort markers into partitions; from the transaction coordinator."""

    class WritableTxnMarker(Struct):
        producer_id: int = int64()
        producer_epoch: int = int16()
        transaction_result: bool = boolean()

        class WritableTxnMarkerTopic(Struct):
            name: str = string()
            partition_indexes: list[int] = array(int32)

        topics: list[WritableTxnMarkerTopic] = array(WritableTxnMarkerTopic)
        coordinator_epoch: int = int32()
        transaction_version: int = int8(versions="2+", ignorable=True)

    markers: list[WritableTxnMarker] = array(WritableTxnMarker)

    WritableTxnMarkerTopic = WritableTxnMarker.WritableTxnMarkerTopic


class WriteTxnMarkersResponse(Message, versions="1-2", flexible="1+"):
    """An error code for each partition."""

    class WritableTxnMarkerResult(Struct):
        producer_id: int = int64()

        class WritableTxnMarkerTopicResult(Struct):
            name: str = string()

            class WritableTxnMarkerPartitionResult(Struct):
                partition_index: int = int32()
                error_code: int = int16()

            partitions: list[WritableTxnMarkerPartitionResult] = array(
                WritableTxnMarkerPartitionResult
            )

        topics: list[WritableTxnMarkerTopicResult] = array(WritableTxnMarkerTopicResult)

    markers: list[WritableTxnMarkerResult] = array(WritableTxnMarkerResult)

    WritableTxnMarkerTopicResult = WritableTxnMarkerResult.WritableTxnMarkerTopicResult
    WritableTxnMarkerPartitionResult = WritableTxnMarkerTopicResult.WritableTxnMarkerPartitionResult
