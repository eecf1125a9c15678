"""API key 21: DeleteRecords."""

from __future__ import annotations

from ..schema import Message, Struct, array, int16, int32, int64, string


class DeleteRecordsRequest(Message, versions="0-2", flexible="2+"):
    """Move the log start of partitions forward."""

    class DeleteRecordsTopic(Struct):
        name: str = string()

        class DeleteRecordsPartition(Struct):
            partition_index: int = int32()
            offset: int = int64()

        partitions: list[DeleteRecordsPartition] = array(DeleteRecordsPartition)

    topics: list[DeleteRecordsTopic] = array(DeleteRecordsTopic)
    timeout_ms: int = int32()

    DeleteRecordsPartition = DeleteRecordsTopic.DeleteRecordsPartition


class DeleteRecordsResponse(Message, versions="0-2", flexible="2+"):
    """The new low watermark of each partition."""

    throttle_time_ms: int = int32()

    class DeleteRecordsTopicResult(Struct):
        name: str = string()

        class DeleteRecordsPartitionResult(Struct):
            partition_index: int = int32()
            low_watermark: int = int64()
            error_code: int = int16()

        partitions: list[DeleteRecordsPartitionResult] = array(DeleteRecordsPartitionResult)

    topics: list[DeleteRecordsTopicResult] = array(DeleteRecordsTopicResult)

    DeleteRecordsPartitionResult = DeleteRecordsTopicResult.DeleteRecordsPartitionResult
