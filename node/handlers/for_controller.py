"""Inter-node only: requests of other nodes to the controller of this node, for all of its APIs.

Keys 19, 20, 33, 37, 43, 44, 55 (forwarded for clients), 56 AlterPartition, 62 BrokerRegistration,
63 BrokerHeartbeat, 64 UnregisterBroker, 67 AllocateProducerIds, 73 AssignReplicasToDirs,
80 AddRaftVoter. The controller answers NOT_CONTROLLER while it is not the active one, and
the asking node looks for another.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

from ...metadata.controller import ControllerAnswer
from ...wire import ApiKey, Message
from ..served import Call
from ..services import Services


def handle(
    services: Services, request: Message, call: Call
) -> Awaitable[ControllerAnswer[Message]]:
    timeout_ms = getattr(request, "timeout_ms", 0) or services.config.number(
        "controller.quorum.request.timeout.ms"
    )
    deadline = asyncio.get_running_loop().time() + timeout_ms / 1_000
    key = ApiKey(call.header.api_key)
    return services.own_controller(key, request, call.version, deadline, call.origin)
