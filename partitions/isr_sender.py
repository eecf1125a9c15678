"""Sends the leaders' ISR proposals to the controller: one request at a time, many proposals in it.

Not all of them, though: where a broker comes back, thousands of partitions have something to say,
and a request becomes one command of the quorum, of bounded size, and an answer as long (RULES F1).

A proposal is sent again, word for word, until its answer decides it (RULES D2). Its partition
withdraws it by ending the leader epoch: the answer then reaches nobody.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from random import Random
from uuid import UUID

from ..wire import ErrorCode
from ..wire.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from .isr_proposal import IsrProposal, ProposalVerdict, verdict_on
from .peer import ControllerLink

logger = logging.getLogger(__name__)

MAX_PROPOSALS = 250
"""In one request."""

RETRY_SECONDS = 0.05
MAX_RETRY_SECONDS = 1.0

PartitionId = tuple[UUID, int]
OnDecided = Callable[[IsrProposal, ProposalVerdict, bool], None]
"""(proposal, AWAIT_IMAGE or REVERT, was an earlier copy's fate unknown?)"""


@dataclass(slots=True)
class _Pending:
    proposal: IsrProposal
    on_decided: OnDecided
    still_wanted: Callable[[], bool]
    uncertain: bool = False


class IsrSender:
    def __init__(
        self,
        node_id: int,
        sender: ControllerLink,
        *,
        broker_epoch: Callable[[], int],
        timeout_ms: int,
        rng: Random,
    ) -> None:
        self._node_id = node_id
        self._sender = sender
        self._broker_epoch = broker_epoch
        self._timeout_ms = timeout_ms
        self._rng = rng
        self._pending: dict[PartitionId, _Pending] = {}
        """One per partition: a leader keeps one change in flight."""
        self._arrived: asyncio.Future[None] | None = None

    def submit(
        self,
        topic_id: UUID,
        partition: int,
        proposal: IsrProposal,
        *,
        on_decided: OnDecided,
        still_wanted: Callable[[], bool],
    ) -> None:
        self._pending[topic_id, partition] = _Pending(proposal, on_decided, still_wanted)
        if self._arrived is not None and not self._arrived.done():
            self._arrived.set_result(None)

    async def run(self) -> None:
        """Until cancelled."""
        pause = RETRY_SECONDS
        while True:
            await self._something_pending()
            if await self._send_some():
                pause = RETRY_SECONDS
            else:
                await asyncio.sleep(pause * (0.5 + self._rng.random()))
                pause = min(pause * 2, MAX_RETRY_SECONDS)

    async def _something_pending(self) -> None:
        while not self._pending:
            self._arrived = asyncio.get_running_loop().create_future()
            try:
                await self._arrived
            finally:
                self._arrived = None

    async def _send_some(self) -> bool:
        """One request, oldest first; False when something of it must be sent again."""
        for key, pending in list(self._pending.items()):
            if not pending.still_wanted():
                del self._pending[key]
        batch = dict(islice(self._pending.items(), MAX_PROPOSALS))
        if not batch:
            return True
        deadline = asyncio.get_running_loop().time() + self._timeout_ms / 1000
        response = await self._sender.alter_partition(self._request(batch), deadline)
        errors = _errors(response)
        for key, pending in batch.items():
            self._take(key, pending, errors.get(key, ErrorCode.UNKNOWN_SERVER_ERROR))
        return not any(self._pending.get(key) is pending for key, pending in batch.items())

    def _take(self, key: PartitionId, pending: _Pending, error: ErrorCode) -> None:
        verdict = verdict_on(error)
        if verdict is ProposalVerdict.RETRY:
            logger.info("ISR change of %s-%d is sent again: %s", *key, error.name)
            pending.uncertain = True
            if self._pending.get(key) is pending:
                # Behind the others: they have not been asked about yet.
                self._pending[key] = self._pending.pop(key)
            return
        if self._pending.get(key) is pending:
            del self._pending[key]
        pending.on_decided(pending.proposal, verdict, pending.uncertain)

    def _request(self, batch: dict[PartitionId, _Pending]) -> AlterPartitionRequest:
        topics: dict[UUID, AlterPartitionRequest.TopicData] = {}
        for (topic_id, partition), pending in batch.items():
            topic = topics.setdefault(topic_id, AlterPartitionRequest.TopicData(topic_id=topic_id))
            proposal = pending.proposal
            topic.partitions.append(
                AlterPartitionRequest.PartitionData(
                    partition_index=partition,
                    leader_epoch=proposal.leader_epoch,
                    partition_epoch=proposal.partition_epoch,
                    new_isr_with_epochs=[
                        AlterPartitionRequest.BrokerState(broker_id=node_id, broker_epoch=epoch)
                        for node_id, epoch in proposal.isr
                    ],
                )
            )
        return AlterPartitionRequest(
            broker_id=self._node_id,
            broker_epoch=self._broker_epoch(),
            topics=list(topics.values()),
        )


def _errors(response: AlterPartitionResponse | None) -> dict[PartitionId, ErrorCode]:
    """What is not in there is unknown."""
    if response is None or response.error_code != ErrorCode.NONE:
        return {}
    return {
        (topic.topic_id, partition.partition_index): ErrorCode(partition.error_code)
        for topic in response.topics
        for partition in topic.partitions
    }
