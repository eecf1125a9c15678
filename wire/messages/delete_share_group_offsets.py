"""API key 92: DeleteShareGroupOffsets."""

from __future__ import annotations

from uuid import UUID

from ..schema import Message, Struct, array, int16, int32, string, uuid


class DeleteShareGroupOffsetsRequest(Message, versions="0", flexible="0+"):
    """Delete a share group's offsets of topics."""

    group_id: str = string()

    class DeleteShareGroupOffsetsRequestTopic(Struct):
        topic_name: str = string()

    topics: list[DeleteShareGroupOffsetsRequestTopic] = array(DeleteShareGroupOffsetsRequestTopic)


class DeleteShareGroupOffsetsResponse(Message, versions="0", flexible="0+"):
    """An error code for each topic."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(default=None, nullable="0+")

    class DeleteShareGroupOffsetsResponseTopic(Struct):
        topic_name: str = string()
        topic_id: UUID = uuid()
        error_code: int = int16()
        error_message: str | None = string(default=None, nullable="0+")

    responses: list[DeleteShareGroupOffsetsResponseTopic] = array(
        DeleteShareGroupOffsetsResponseTopic
    )
