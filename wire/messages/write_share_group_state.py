"""API key 85: WriteShareGroupState."""

from __future__ import annotations

from uuid import UUID

from ..schema import Message, Struct, array, int8, int16, int32, int64, string, uuid


class WriteShareGroupStateRequest(Message, versions="0-1", flexible="0+"):
    """Store the state of share partitions."""

    group_id: str = string()

    class WriteStateData(Struct):
        topic_id: UUID = uuid()

        class PartitionData(Struct):
            partition: int = int32()
            state_epoch: int = int32()
            leader_epoch: int = int32()
            start_offset: int = int64()
            delivery_complete_count: int = int32(default=-1, versions="1+", ignorable=True)

            class StateBatch(Struct):
                first_offset: int = int64()
                last_offset: int = int64()
                delivery_state: int = int8()
                delivery_count: int = int16()

            state_batches: list[StateBatch] = array(StateBatch)

        partitions: list[PartitionData] = array(PartitionData)

    topics: list[WriteStateData] = array(WriteStateData)

    PartitionData = WriteStateData.PartitionData
    StateBatch = PartitionData.StateBatch


class WriteShareGroupStateResponse(Message, versions="0-1", flexible="0+"):
    """An error code for each partition."""

    class WriteStateResult(Struct):
        topic_id: UUID = uuid()

        class PartitionResult(Struct):
            partition: int = int32()
            error_code: int = int16()
            error_message: str | None = string(default=None, nullable="0+")

        partitions: list[PartitionResult] = array(PartitionResult)

    results: list[WriteStateResult] = array(WriteStateResult)

    PartitionResult = WriteStateResult.PartitionResult
