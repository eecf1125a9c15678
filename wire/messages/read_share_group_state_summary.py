"""API key 87: ReadShareGroupStateSummary."""

from __future__ import annotations

from uuid import UUID

from ..schema import Message, Struct, array, int16, int32, int64, string, uuid


class ReadShareGroupStateSummaryRequest(Message, versions="0-1", flexible="0+"):
    """Read where share partitions start, without their batches."""

    group_id: str = string()

    class ReadStateSummaryData(Struct):
        topic_id: UUID = uuid()

        class PartitionData(Struct):
            partition: int = int32()
            leader_epoch: int = int32()

        partitions: list[PartitionData] = array(PartitionData)

    topics: list[ReadStateSummaryData] = array(ReadStateSummaryData)

    PartitionData = ReadStateSummaryData.PartitionData


class ReadShareGroupStateSummaryResponse(Message, versions="0-1", flexible="0+"):
    """Start offset and epochs of each partition."""

    class ReadStateSummaryResult(Struct):
        topic_id: UUID = uuid()

        class PartitionResult(Struct):
            partition: int = int32()
            error_code: int = int16()
            error_message: str | None = string(default=None, nullable="0+")
            state_epoch: int = int32()
            leader_epoch: int = int32()
            start_offset: int = int64()
            delivery_complete_count: int = int32(default=-1, versions="1+", ignorable=True)

        partitions: list[PartitionResult] = array(PartitionResult)

    results: list[ReadStateSummaryResult] = array(ReadStateSummaryResult)

    PartitionResult = ReadStateSummaryResult.PartitionResult
