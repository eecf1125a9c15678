"""Tells the controller which logs here lack what they once held (RULES C1).

A log that is damaged below what was synced, or whose folder is gone, has lost records that others
may count on: after a restart the replica stands in the ELR, and in the ISR if nobody fenced it yet.
So the loss is reported before this node asks to be unfenced, and until the controller has taken it
down nobody is elected here by mistake: a fenced broker leads nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from itertools import islice
from random import Random
from uuid import UUID

from ..metadata.image import LOST_DIRECTORY
from ..wire import ErrorCode
from ..wire.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
)
from .peer import ControllerLink

logger = logging.getLogger(__name__)

MAX_REPORTS = 250
"""In one request, which becomes one command of the quorum (RULES F1)."""

RETRY_SECONDS = 0.1

PartitionId = tuple[UUID, int]

DirectoryData = AssignReplicasToDirsRequest.DirectoryData

_SETTLED = frozenset(
    {
        ErrorCode.NONE,
        # Deleted or moved elsewhere meanwhile: nobody counts on it.
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
    }
)


class LossReports:
    """At most one report per partition of this node waits; many go in one request."""

    def __init__(
        self,
        node_id: int,
        controller: ControllerLink,
        *,
        broker_epoch: Callable[[], int],
        timeout_ms: int,
        rng: Random,
    ) -> None:
        self._node_id = node_id
        self._controller = controller
        self._broker_epoch = broker_epoch
        self._timeout_ms = timeout_ms
        self._rng = rng
        self._waiting: dict[PartitionId, None] = {}
        self._arrived = asyncio.Event()
        self._settled = asyncio.Event()
        self._settled.set()

    def submit(self, topic_id: UUID, partition: int) -> None:
        self._waiting[topic_id, partition] = None
        self._settled.clear()
        self._arrived.set()

    async def wait_settled(self) -> None:
        """Return when the controller has taken down all that was submitted."""
        await self._settled.wait()

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await self._arrived.wait()
            if not await self._send_some():
                await asyncio.sleep(RETRY_SECONDS * (0.5 + self._rng.random()))
            elif not self._waiting:
                self._arrived.clear()
                self._settled.set()

    async def _send_some(self) -> bool:
        """False when some of it must be sent again."""
        batch = list(islice(self._waiting, MAX_REPORTS))
        epoch = self._broker_epoch()
        if epoch < 0:
            return False  # Not registered yet.
        deadline = asyncio.get_running_loop().time() + self._timeout_ms / 1000
        response = await self._controller.assign_replicas_to_dirs(
            self._request(batch, epoch), deadline
        )
        errors = _errors(response)
        for key in batch:
            error = errors.get(key, ErrorCode.UNKNOWN_SERVER_ERROR)
            if error in _SETTLED:
                del self._waiting[key]
                logger.warning("the controller knows that %s-%d has lost data here", *key)
            else:
                self._waiting[key] = self._waiting.pop(key)  # Behind the others.
                logger.info("the loss of %s-%d is reported again: %s", *key, error.name)
        return not any(key in self._waiting for key in batch)

    def _request(self, batch: list[PartitionId], epoch: int) -> AssignReplicasToDirsRequest:
        topics: dict[UUID, DirectoryData.TopicData] = {}
        for topic_id, partition in batch:
            topic = topics.setdefault(topic_id, DirectoryData.TopicData(topic_id=topic_id))
            topic.partitions.append(
                DirectoryData.TopicData.PartitionData(partition_index=partition)
            )
        lost = DirectoryData(id=LOST_DIRECTORY, topics=list(topics.values()))
        return AssignReplicasToDirsRequest(
            broker_id=self._node_id, broker_epoch=epoch, directories=[lost]
        )


def _errors(response: AssignReplicasToDirsResponse | None) -> dict[PartitionId, ErrorCode]:
    """What is not in there is unknown."""
    if response is None or response.error_code != ErrorCode.NONE:
        return {}
    return {
        (topic.topic_id, partition.partition_index): ErrorCode(partition.error_code)
        for directory in response.directories
        for topic in directory.topics
        for partition in topic.partitions
    }
