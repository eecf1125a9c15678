"""API key 8: OffsetCommit, versions 2-10, answered by the coordinator in `groups`.

v2 retention, v6 leader epochs, v7 static members, v8 flexible, v9 the new group protocol, v10 topic
ids.
"""

from __future__ import annotations

from ...wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from ..served import Call
from ..services import Services


async def handle(
    services: Services, request: OffsetCommitRequest, call: Call
) -> OffsetCommitResponse:
    return await services.groups.offset_commit(request, call.version)
