"""API key 10: FindCoordinator, versions 0-6.

v1 adds the kind of key, v3 is flexible, v4 takes many keys (KIP-699), v6 knows share groups. The
coordinator of a group is the leader of its partition of `__consumer_offsets`, which is created when
somebody first asks. Transactions and share groups are not built: their kinds are refused.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

from ...groups import OFFSETS_TOPIC, partition_for
from ...wire import ErrorCode
from ...wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from ..served import Call
from ..services import Services

Coordinator = FindCoordinatorResponse.Coordinator

GROUP = 0
TRANSACTION = 1

FIRST_VERSION_WITH_MANY_KEYS = 4

CREATION_WAIT_S = 2.0


def handle(
    services: Services, request: FindCoordinatorRequest, call: Call
) -> FindCoordinatorResponse | Awaitable[FindCoordinatorResponse]:
    if request.key_type == GROUP and OFFSETS_TOPIC not in services.image.topics:
        return _create_and_find(services, request, call.version)
    return _find(services, request, call.version)


async def _create_and_find(
    services: Services, request: FindCoordinatorRequest, version: int
) -> FindCoordinatorResponse:
    deadline = asyncio.get_running_loop().time() + CREATION_WAIT_S
    await services.topic_creation.create([OFFSETS_TOPIC], deadline)
    await services.new_logs_open(deadline)
    return _find(services, request, version)


def _find(
    services: Services, request: FindCoordinatorRequest, version: int
) -> FindCoordinatorResponse:
    if version >= FIRST_VERSION_WITH_MANY_KEYS:
        return FindCoordinatorResponse(
            coordinators=[
                _coordinator(services, request.key_type, key) for key in request.coordinator_keys
            ]
        )
    one = _coordinator(services, request.key_type, request.key)
    return FindCoordinatorResponse(
        error_code=one.error_code,
        error_message=one.error_message,
        node_id=one.node_id,
        host=one.host,
        port=one.port,
    )


def _coordinator(services: Services, key_type: int, key: str) -> Coordinator:
    if key_type == TRANSACTION:
        return _none(key, ErrorCode.UNSUPPORTED_VERSION, "Transactions are not built.")
    if key_type != GROUP:
        return _none(key, ErrorCode.INVALID_REQUEST, f"There is no kind of key {key_type} here.")
    image = services.image
    topic = image.topics.get(OFFSETS_TOPIC)
    if topic is None:
        return _none(key, ErrorCode.COORDINATOR_NOT_AVAILABLE, None)
    partition = topic.partitions[partition_for(key, len(topic.partitions))]
    broker = image.brokers.get(partition.leader)
    if broker is None or broker.fenced:
        return _none(key, ErrorCode.COORDINATOR_NOT_AVAILABLE, None)
    return Coordinator(
        key=key,
        node_id=broker.node_id,
        host=broker.kafka.host,
        port=broker.kafka.port,
        error_code=ErrorCode.NONE,
        error_message=None,
    )


def _none(key: str, error: ErrorCode, message: str | None) -> Coordinator:
    return Coordinator(
        key=key,
        node_id=-1,
        host="",
        port=-1,
        error_code=error,
        error_message=message or error.message,
    )
