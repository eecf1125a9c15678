"""API key 86: DeleteShareGroupState."""

from __future__ import annotations

from uuid import UUID

from ..schema import Message, Struct, array, int16, int32, string, uuid


class DeleteShareGroupStateRequest(Message, versions="0", flexible="0+"):
    """Delete the stored state of share partitions."""

    group_id: str = string()

    class DeleteStateData(Struct):
        topic_id: UUID = uuid()

        class PartitionData(Struct):
            partition: int = int32()

        partitions: list[PartitionData] = array(PartitionData)

    topics: list[DeleteStateData] = array(DeleteStateData)

    PartitionData = DeleteStateData.PartitionData


class DeleteShareGroupStateResponse(Message, versions="0", flexible="0+"):
    """An error code for each partition."""

    class DeleteStateResult(Struct):
        topic_id: UUID = uuid()

        class PartitionResult(Struct):
            partition: int = int32()
            error_code: int = int16()
            error_message: str | None = string(default=None, nullable="0+")

        partitions: list[PartitionResult] = array(PartitionResult)

    results: list[DeleteStateResult] = array(DeleteStateResult)

    PartitionResult = DeleteStateResult.PartitionResult
