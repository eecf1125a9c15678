"""API key 69: ConsumerGroupDescribe, versions 0-1, answered by the coordinator in `groups`.

v1 says which protocol a member speaks (KIP-1099).
"""

from __future__ import annotations

from ...wire.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from ..served import Call
from ..services import Services


async def handle(
    services: Services, request: ConsumerGroupDescribeRequest, call: Call
) -> ConsumerGroupDescribeResponse:
    return await services.groups.consumer_group_describe(request, call.version)
