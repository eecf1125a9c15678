"""API key 16: ListGroups, versions 0-5, answered by the coordinator in `groups`.

v3 flexible, v4 states, v5 types.
"""

from __future__ import annotations

from ...wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from ..served import Call
from ..services import Services


async def handle(services: Services, request: ListGroupsRequest, call: Call) -> ListGroupsResponse:
    return await services.groups.list_groups(request, call.version)
