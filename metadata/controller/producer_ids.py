"""AllocateProducerIds (67): blocks of producer ids for brokers (KIP-730)."""

from __future__ import annotations

from ...wire.messages.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)
from ..commands import AllocateProducerIds
from .answer import ControllerAnswer
from .office import Office

PRODUCER_IDS_PER_BLOCK = 1_000


async def allocate(
    office: Office, request: AllocateProducerIdsRequest, version: int, deadline: float
) -> ControllerAnswer[AllocateProducerIdsResponse]:
    """Version 0. Asking again after an unknown outcome is safe: it wastes at most a block."""
    decided = await office.propose(
        lambda epoch: AllocateProducerIds(
            epoch, request.broker_id, request.broker_epoch, PRODUCER_IDS_PER_BLOCK
        ),
        deadline,
    )
    if decided.result.refused:
        response = AllocateProducerIdsResponse(error_code=decided.result.error)
    else:
        response = AllocateProducerIdsResponse(
            producer_id_start=decided.result.value, producer_id_len=PRODUCER_IDS_PER_BLOCK
        )
    return ControllerAnswer(response, decided.index)
