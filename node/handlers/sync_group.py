"""API key 14: SyncGroup, versions 0-5, answered by the coordinator in `groups`.

v3 static members, v4 flexible, v5 protocol type and name.
"""

from __future__ import annotations

from ...wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from ..served import Call
from ..services import Services


async def handle(services: Services, request: SyncGroupRequest, call: Call) -> SyncGroupResponse:
    return await services.groups.sync_group(request, call.version)
