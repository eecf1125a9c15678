"""API key 12: Heartbeat, versions 0-4, answered by the coordinator in `groups`.

v3 static members, v4 flexible.
"""

from __future__ import annotations

from ...wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from ..served import Call
from ..services import Services


async def handle(services: Services, request: HeartbeatRequest, call: Call) -> HeartbeatResponse:
    return await services.groups.heartbeat(request, call.version)
