"""Producer ids from the controller's blocks: unique, whatever the controller answers."""

from __future__ import annotations

from typing import Any, cast

import pytest

from logboat.node.controller_client import ControllerClient
from logboat.node.producer_ids import NoProducerId, ProducerIds
from logboat.wire import ApiKey, ErrorCode
from logboat.wire.messages.allocate_producer_ids import AllocateProducerIdsResponse


class Controller:
    """Answers with the given blocks, one after the other."""

    def __init__(self, *blocks: tuple[int, int]) -> None:
        self._blocks = list(blocks)

    async def ask(self, key: ApiKey, request: Any, deadline: float) -> AllocateProducerIdsResponse:
        first, count = self._blocks.pop(0)
        return AllocateProducerIdsResponse(
            error_code=ErrorCode.NONE, producer_id_start=first, producer_id_len=count
        )


def producer_ids(*blocks: tuple[int, int]) -> ProducerIds:
    return ProducerIds(
        node_id=1,
        controller=cast(ControllerClient, Controller(*blocks)),
        broker_epoch=lambda: 7,
    )


async def test_ids_come_from_one_block_after_the_other() -> None:
    ids = producer_ids((0, 3), (1000, 2))
    assert [await ids.next_id(0) for _ in range(5)] == [0, 1, 2, 1000, 1001]


@pytest.mark.parametrize("block", [(0, 3), (2, 3), (-5, 3), (10, 0), (2**63 - 2, 5)])
async def test_s15_a_block_that_was_had_or_cannot_be_is_refused(block: tuple[int, int]) -> None:
    """KAFKA-20031: a controller repeats a block."""
    ids = producer_ids((0, 3), block, (100, 1))
    for expected in range(3):
        assert await ids.next_id(0) == expected
    with pytest.raises(NoProducerId):
        await ids.next_id(0)
    assert await ids.next_id(0) == 100
