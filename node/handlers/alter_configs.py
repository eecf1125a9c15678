"""API key 33: AlterConfigs, versions 0-2 (v2 is flexible), decided by the active controller.

It replaces all dynamic settings of a resource; clients since 2.3 use IncrementalAlterConfigs.
"""

from __future__ import annotations

from ...wire import ApiKey, ErrorCode, Message
from ...wire.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse
from ..forwarding import forward
from ..served import Call
from ..services import Services


async def handle(services: Services, request: AlterConfigsRequest, call: Call) -> Message:
    def failed(error: ErrorCode, message: str) -> AlterConfigsResponse:
        return AlterConfigsResponse(
            responses=[
                AlterConfigsResponse.AlterConfigsResourceResponse(
                    error_code=error,
                    error_message=message,
                    resource_type=resource.resource_type,
                    resource_name=resource.resource_name,
                )
                for resource in request.resources
            ]
        )

    return await forward(services, ApiKey.ALTER_CONFIGS, request, timeout_ms=None, failed=failed)
