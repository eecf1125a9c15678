"""API key 83: InitializeShareGroupState."""

from __future__ import annotations

from uuid import UUID

from ..schema import Message, Struct, array, int16, int32, int64, string, uuid


class InitializeShareGroupStateRequest(Message, versions="0", flexible="0+"):
    """Begin the stored state of a share partition."""

    group_id: str = string()

    class InitializeStateData(Struct):
        topic_id: UUID = uuid()

        class PartitionData(Struct):
            partition: int = int32()
            state_epoch: int = int32()
            start_offset: int = int64()

        partitions: list[PartitionData] = array(PartitionData)

    topics: list[InitializeStateData] = array(InitializeStateData)

    PartitionData = InitializeStateData.PartitionData


class InitializeShareGroupStateResponse(Message, versions="0", flexible="0+"):
    """An error code for each partition."""

    class InitializeStateResult(Struct):
        topic_id: UUID = uuid()

        class PartitionResult(Struct):
            partition: int = int32()
            error_code: int = int16()
            error_message: str | None = string(default=None, nullable="0+")

        partitions: list[PartitionResult] = array(PartitionResult)

    results: list[InitializeStateResult] = array(InitializeStateResult)

    PartitionResult = InitializeStateResult.PartitionResult
