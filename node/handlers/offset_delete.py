"""API key 47: OffsetDelete, versions 0-0, answered by the coordinator in `groups`."""

from __future__ import annotations

from ...wire.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from ..served import Call
from ..services import Services


async def handle(
    services: Services, request: OffsetDeleteRequest, call: Call
) -> OffsetDeleteResponse:
    return await services.groups.offset_delete(request, call.version)
