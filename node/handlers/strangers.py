"""API keys 56 AlterPartition, 62 BrokerRegistration, 63 BrokerHeartbeat, 67 AllocateProducerIds, 73
AssignReplicasToDirs on the client listener, where nobody is a node of the cluster (RULES B5).

They are not advertised there. Whoever asks all the same is told why it gets nothing.
"""

from __future__ import annotations

from ...wire import ErrorCode, Message, api
from ..served import Call
from ..services import Services


def handle(services: Services, request: Message, call: Call) -> Message:
    response = api(call.header.api_key).response()
    response.error_code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED  # type: ignore[attr-defined]
    return response
