"""API key 13: LeaveGroup, versions 0-5, answered by the coordinator in `groups`.

v3 many members at once, v4 flexible, v5 reason.
"""

from __future__ import annotations

from ...wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from ..served import Call
from ..services import Services


async def handle(services: Services, request: LeaveGroupRequest, call: Call) -> LeaveGroupResponse:
    return await services.groups.leave_group(request, call.version)
