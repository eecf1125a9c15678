"""API key 15: DescribeGroups, versions 0-6, answered by the coordinator in `groups`.

v3 authorized operations, v4 static members, v5 flexible, v6 an error for a group that does not
exist.
"""

from __future__ import annotations

from ...wire.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from ..served import Call
from ..services import Services


async def handle(
    services: Services, request: DescribeGroupsRequest, call: Call
) -> DescribeGroupsResponse:
    return await services.groups.describe_groups(request, call.version)
