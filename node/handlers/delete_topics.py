"""API key 20: DeleteTopics, versions 1-6, decided by the active controller.

v4 is flexible, v5 answers sentences, v6 names topics by id too (KIP-516).
"""

from __future__ import annotations

from ...wire import ApiKey, ErrorCode, Message
from ...wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from ..forwarding import forward
from ..served import Call
from ..services import Services

Result = DeleteTopicsResponse.DeletableTopicResult
State = DeleteTopicsRequest.DeleteTopicState


async def handle(services: Services, request: DeleteTopicsRequest, call: Call) -> Message:
    topics = request.topics or [State(name=name) for name in request.topic_names]

    def failed(error: ErrorCode, message: str) -> DeleteTopicsResponse:
        return DeleteTopicsResponse(
            responses=[
                Result(
                    name=topic.name,
                    topic_id=topic.topic_id,
                    error_code=error,
                    error_message=message,
                )
                for topic in topics
            ]
        )

    if not services.config.flag("delete.topic.enable"):
        error = (
            ErrorCode.TOPIC_DELETION_DISABLED if call.version >= 3 else ErrorCode.INVALID_REQUEST
        )
        return failed(error, "Topic deletion is disabled.")
    forwarded = DeleteTopicsRequest(topics=topics, timeout_ms=request.timeout_ms)
    return await forward(
        services,
        ApiKey.DELETE_TOPICS,
        forwarded,
        timeout_ms=request.timeout_ms,
        failed=failed,
    )
