"""API key 20: DeleteTopics."""

from __future__ import annotations

from uuid import UUID

from ..schema import Message, Struct, array, int16, int32, string, uuid


class DeleteTopicsRequest(Message, versions="1-6", flexible="4+"):
    """Delete topics.

    Up to v5 by name, from v6 by name or id.
    """

    class DeleteTopicState(Struct):
        name: str | None = string(default=None, nullable="0+")
        topic_id: UUID = uuid()

    topics: list[DeleteTopicState] = array(DeleteTopicState, versions="6+")
    topic_names: list[str] = array(string, versions="1-5", ignorable=True)
    timeout_ms: int = int32()


class DeleteTopicsResponse(Message, versions="1-6", flexible="4+"):
    """What became of each topic."""

    throttle_time_ms: int = int32(ignorable=True)

    class DeletableTopicResult(Struct):
        name: str | None = string(nullable="6+")
        topic_id: UUID = uuid(versions="6+", ignorable=True)
        error_code: int = int16()
        error_message: str | None = string(
            default=None, versions="5+", nullable="5+", ignorable=True
        )

    responses: list[DeletableTopicResult] = array(DeletableTopicResult)
