"""API key 84: ReadShareGroupState."""

from __future__ import annotations

from uuid import UUID

from ..schema import Message, Struct, array, int8, int16, int32, int64, string, uuid


class ReadShareGroupStateRequest(Message, versions="0", flexible="0+"):
    """Read the stored state of share partitions."""

    group_id: str = string()

    class ReadStateData(Struct):
        topic_id: UUID = uuid()

        class PartitionData(Struct):
            partition: int = int32()
            leader_epoch: int = int32()

        partitions: list[PartitionData] = array(PartitionData)

    topics: list[ReadStateData] = array(ReadStateData)

    PartitionData = ReadStateData.PartitionData


class ReadShareGroupStateResponse(Message, versions="0", flexible="0+"):
    """State batches of each partition."""

    class ReadStateResult(Struct):
        topic_id: UUID = uuid()

        class PartitionResult(Struct):
            partition: int = int32()
            error_code: int = int16()
            error_message: str | None = string(default=None, nullable="0+")
            state_epoch: int = int32()
            start_offset: int = int64()

            class StateBatch(Struct):
                first_offset: int = int64()
                last_offset: int = int64()
                delivery_state: int = int8()
                delivery_count: int = int16()

            state_batches: list[StateBatch] = array(StateBatch)

        partitions: list[PartitionResult] = array(PartitionResult)

    results: list[ReadStateResult] = array(ReadStateResult)

    PartitionResult = ReadStateResult.PartitionResult
    StateBatch = PartitionResult.StateBatch
