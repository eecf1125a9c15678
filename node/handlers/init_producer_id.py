"""API key 22: InitProducerId, versions 0-5 (6 belongs to two-phase commit and is unstable).

v2 is flexible, v3 lets a producer raise its own epoch (KIP-360), v4 answers PRODUCER_FENCED, v5 is
for transactions (KIP-890). Transactions are not built: a transactional id is refused.
"""

from __future__ import annotations

import asyncio

from ...wire import ErrorCode
from ...wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ..producer_ids import NoProducerId
from ..served import Call
from ..services import Services


async def handle(
    services: Services, request: InitProducerIdRequest, call: Call
) -> InitProducerIdResponse:
    if request.transactional_id is not None:
        # An empty one is a mistake in every version.
        named = request.transactional_id != ""
        return _failed(ErrorCode.UNSUPPORTED_VERSION if named else ErrorCode.INVALID_REQUEST)
    # An idempotent producer that names its old id gets a new one, as in Kafka.
    deadline = asyncio.get_running_loop().time() + services.config.seconds("request.timeout.ms")
    try:
        producer_id = await services.producer_ids.next_id(deadline)
    except NoProducerId:
        return _failed(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)


def _failed(error: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=error, producer_id=-1, producer_epoch=-1)
