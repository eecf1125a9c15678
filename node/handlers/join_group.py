"""API key 11: JoinGroup, versions 0-9, answered by the coordinator in `groups`.

v1 rebalance timeout, v4 two steps for a member without id (KIP-394), v5 static members (KIP-345),
v6 flexible, v7 protocol type, v8 reason, v9 skips the leader's assignment (KIP-814). A member that
waits keeps its place when its connection ends, until its session does, unless it is new.
"""

from __future__ import annotations

from ...groups import ClientContext
from ...wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from ..served import Call
from ..services import Services


async def handle(services: Services, request: JoinGroupRequest, call: Call) -> JoinGroupResponse:
    client = ClientContext(
        client_id=call.client_id, host=f"/{call.caller.host}", when_gone=call.when_gone
    )
    return await services.groups.join_group(request, call.version, client)
