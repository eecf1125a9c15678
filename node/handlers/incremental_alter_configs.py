"""API key 44: IncrementalAlterConfigs, versions 0-1 (v1 is flexible), decided by the active
controller (KIP-339)."""

from __future__ import annotations

from ...wire import ApiKey, ErrorCode, Message
from ...wire.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from ..forwarding import forward
from ..served import Call
from ..services import Services


async def handle(
    services: Services, request: IncrementalAlterConfigsRequest, call: Call
) -> Message:
    def failed(error: ErrorCode, message: str) -> IncrementalAlterConfigsResponse:
        return IncrementalAlterConfigsResponse(
            responses=[
                IncrementalAlterConfigsResponse.AlterConfigsResourceResponse(
                    error_code=error,
                    error_message=message,
                    resource_type=resource.resource_type,
                    resource_name=resource.resource_name,
                )
                for resource in request.resources
            ]
        )

    return await forward(
        services, ApiKey.INCREMENTAL_ALTER_CONFIGS, request, timeout_ms=None, failed=failed
    )
