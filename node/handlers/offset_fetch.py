"""API key 9: OffsetFetch, versions 1-10, answered by the coordinator in `groups`.

v2 all topics, v6 flexible, v7 stable offsets only, v8 many groups, v9 the new group protocol, v10
topic ids.
"""

from __future__ import annotations

from ...wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from ..served import Call
from ..services import Services


async def handle(
    services: Services, request: OffsetFetchRequest, call: Call
) -> OffsetFetchResponse:
    return await services.groups.offset_fetch(request, call.version)
