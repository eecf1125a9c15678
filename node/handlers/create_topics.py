"""API key 19: CreateTopics, versions 2-7, decided by the active controller.

v4 takes -1 for the cluster's defaults, v5 is flexible and answers the settings, v7 the topic id.
The client is answered when this node's own image has the topics (RULES A6).
"""

from __future__ import annotations

from ...wire import ApiKey, ErrorCode, Message
from ...wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from ..forwarding import forward
from ..served import Call
from ..services import Services


async def handle(services: Services, request: CreateTopicsRequest, call: Call) -> Message:
    def failed(error: ErrorCode, message: str) -> CreateTopicsResponse:
        return CreateTopicsResponse(
            topics=[
                CreateTopicsResponse.CreatableTopicResult(
                    name=topic.name, error_code=error, error_message=message, configs=None
                )
                for topic in request.topics
            ]
        )

    response = await forward(
        services,
        ApiKey.CREATE_TOPICS,
        request,
        timeout_ms=request.timeout_ms,
        failed=failed,
    )
    await services.new_logs_open(float("inf"))
    return response
