"""Producer ids for idempotent producers, from blocks that the controller hands out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ..wire import ApiKey, ErrorCode
from ..wire.messages.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)
from .controller_client import ControllerClient, ControllerUnavailable

LARGEST_ID = 2**63 - 1


class NoProducerId(Exception):
    """None could be had in time; the client tries again (COORDINATOR_LOAD_IN_PROGRESS)."""


class ProducerIds:
    """Ids are unique for ever: a block belongs to one incarnation and what it leaves is lost."""

    def __init__(
        self, *, node_id: int, controller: ControllerClient, broker_epoch: Callable[[], int]
    ) -> None:
        self._node_id = node_id
        self._controller = controller
        self._broker_epoch = broker_epoch
        self._next = 0
        self._end = 0
        self._asking = asyncio.Lock()

    async def next_id(self, deadline: float) -> int:
        """Raises NoProducerId at `deadline` (loop time)."""
        while self._next == self._end:
            async with self._asking:
                if self._next == self._end:
                    await self._take_block(deadline)
        producer_id = self._next
        self._next += 1
        return producer_id

    async def _take_block(self, deadline: float) -> None:
        request = AllocateProducerIdsRequest(
            broker_id=self._node_id, broker_epoch=self._broker_epoch()
        )
        try:
            answer = await self._controller.ask(ApiKey.ALLOCATE_PRODUCER_IDS, request, deadline)
        except ControllerUnavailable as error:
            raise NoProducerId(str(error)) from error
        assert isinstance(answer, AllocateProducerIdsResponse)
        if answer.error_code != ErrorCode.NONE:
            raise NoProducerId(ErrorCode(answer.error_code).name)
        first, count = answer.producer_id_start, answer.producer_id_len
        if first < self._end or count <= 0 or first + count > LARGEST_ID:
            # One id handed out twice would make one producer's batches another's repeats.
            raise NoProducerId(f"block {first} + {count} behind {self._end} (KAFKA-20031)")
        self._next, self._end = first, first + count
