"""API key 68: ConsumerGroupHeartbeat, versions 0-1, answered by the coordinator in `groups`.

v1 topic patterns; members make their own ids (KIP-1082).
"""

from __future__ import annotations

from ...groups import ClientContext
from ...wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from ..served import Call
from ..services import Services


async def handle(
    services: Services, request: ConsumerGroupHeartbeatRequest, call: Call
) -> ConsumerGroupHeartbeatResponse:
    client = ClientContext(client_id=call.client_id, host=f"/{call.caller.host}")
    return await services.groups.consumer_group_heartbeat(request, call.version, client)
