"""API key 42: DeleteGroups, versions 0-3, answered by the coordinator in `groups`.

v2 flexible, v3 sentences beside the errors.
"""

from __future__ import annotations

from ...wire.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from ..served import Call
from ..services import Services


async def handle(
    services: Services, request: DeleteGroupsRequest, call: Call
) -> DeleteGroupsResponse:
    return await services.groups.delete_groups(request, call.version)
