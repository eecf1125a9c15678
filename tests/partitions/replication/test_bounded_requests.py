"""What thousands of partitions have to tell the controller goes in many requests (RULES F1)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random
from typing import Any
from uuid import UUID

import pytest

from logboat.partitions import isr_sender, loss_reports
from logboat.partitions.isr_proposal import IsrProposal, ProposalVerdict
from logboat.partitions.isr_sender import IsrSender
from logboat.partitions.loss_reports import LossReports
from logboat.wire import ErrorCode
from logboat.wire.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from logboat.wire.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
)
from tests.waiting import until

TOPIC = UUID(int=5)


class Controller:
    """Takes down everything, but `stubborn` partitions only when they are asked about again."""

    def __init__(self, stubborn: int = 0) -> None:
        self.asked: list[list[int]] = []
        self.refusals = dict.fromkeys(range(stubborn), 1)

    def _verdicts(self, numbers: list[int]) -> list[tuple[int, ErrorCode]]:
        self.asked.append(numbers)
        verdicts = []
        for number in numbers:
            refused = self.refusals.pop(number, 0)
            verdicts.append((number, ErrorCode.NOT_CONTROLLER if refused else ErrorCode.NONE))
        return verdicts

    async def alter_partition(
        self, request: AlterPartitionRequest, deadline: float
    ) -> AlterPartitionResponse:
        (topic,) = request.topics
        data = AlterPartitionResponse.PartitionData
        verdicts = self._verdicts([partition.partition_index for partition in topic.partitions])
        return AlterPartitionResponse(
            topics=[
                AlterPartitionResponse.TopicData(
                    topic_id=topic.topic_id,
                    partitions=[
                        data(partition_index=number, error_code=error) for number, error in verdicts
                    ],
                )
            ]
        )

    async def assign_replicas_to_dirs(
        self, request: AssignReplicasToDirsRequest, deadline: float
    ) -> AssignReplicasToDirsResponse:
        (directory,) = request.directories
        (topic,) = directory.topics
        data = AssignReplicasToDirsResponse.DirectoryData
        verdicts = self._verdicts([partition.partition_index for partition in topic.partitions])
        return AssignReplicasToDirsResponse(
            directories=[
                data(
                    id=directory.id,
                    topics=[
                        data.TopicData(
                            topic_id=topic.topic_id,
                            partitions=[
                                data.TopicData.PartitionData(
                                    partition_index=number, error_code=error
                                )
                                for number, error in verdicts
                            ],
                        )
                    ],
                )
            ]
        )


async def carried_out(run: Callable[[], Any], done: Callable[[], bool]) -> None:
    task = asyncio.create_task(run())
    try:
        await until(done)
    finally:
        task.cancel()
        await asyncio.wait([task])


async def test_f1_isr_proposals_of_a_whole_broker_go_in_many_requests(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(isr_sender, "MAX_PROPOSALS", 10)
    controller, decided = Controller(stubborn=4), dict[int, bool]()
    sender = IsrSender(1, controller, broker_epoch=lambda: 7, timeout_ms=9_000, rng=Random(1))
    for number in range(35):

        def on_decided(
            proposal: IsrProposal, verdict: ProposalVerdict, uncertain: bool, number: int = number
        ) -> None:
            assert verdict is ProposalVerdict.AWAIT_IMAGE
            decided[number] = uncertain

        proposal = IsrProposal(isr=((1, 7),), leader_epoch=1, partition_epoch=1)
        sender.submit(TOPIC, number, proposal, on_decided=on_decided, still_wanted=lambda: True)
    await carried_out(sender.run, lambda: len(decided) == 35)
    assert [len(numbers) for numbers in controller.asked] == [10, 10, 10, 9]
    # Who must be asked about again keeps nobody else waiting.
    assert controller.asked[3] == [30, 31, 32, 33, 34, 0, 1, 2, 3]
    assert [number for number, uncertain in decided.items() if uncertain] == [0, 1, 2, 3]


async def test_f1_losses_of_a_whole_disk_go_in_many_requests(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(loss_reports, "MAX_REPORTS", 10)
    controller = Controller(stubborn=2)
    reports = LossReports(1, controller, broker_epoch=lambda: 7, timeout_ms=9_000, rng=Random(1))
    for number in range(25):
        reports.submit(TOPIC, number)
    settled = asyncio.create_task(reports.wait_settled())
    await carried_out(reports.run, settled.done)
    assert [len(numbers) for numbers in controller.asked] == [10, 10, 7]
    assert controller.asked[2] == [20, 21, 22, 23, 24, 0, 1]
