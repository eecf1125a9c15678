"""API key 37: CreatePartitions, versions 0-3, decided by the active controller.

v2 is flexible, v3 may answer THROTTLING_QUOTA_EXCEEDED (there are no quotas here).
"""

from __future__ import annotations

from ...wire import ApiKey, ErrorCode, Message
from ...wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse
from ..forwarding import forward
from ..served import Call
from ..services import Services


async def handle(services: Services, request: CreatePartitionsRequest, call: Call) -> Message:
    def failed(error: ErrorCode, message: str) -> CreatePartitionsResponse:
        return CreatePartitionsResponse(
            results=[
                CreatePartitionsResponse.CreatePartitionsTopicResult(
                    name=topic.name, error_code=error, error_message=message
                )
                for topic in request.topics
            ]
        )

    response = await forward(
        services,
        ApiKey.CREATE_PARTITIONS,
        request,
        timeout_ms=request.timeout_ms,
        failed=failed,
    )
    await services.new_logs_open(float("inf"))
    return response
