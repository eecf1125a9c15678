"""Deletes the heads of partitions while others append to them and read them (KIP-107).

A record's promise ends when its deletion is asked for, whatever becomes of the request. What is not
below the offset that was asked for must stay: nobody deletes on his own account here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from random import Random

from . import requests
from .cluster import ASK_S, ClusterClient, NoAnswer, NotAsked
from .journal import Journal
from .requests import Api, TopicPartition

LATEST = -1


class Trimmer:
    def __init__(
        self,
        client: ClusterClient,
        journal: Journal,
        partitions: Sequence[TopicPartition],
        *,
        keep_records: int,
        interval_s: float,
        dice: Random,
    ) -> None:
        """`keep_records`: so many at the end of a partition are never deleted."""
        self._client = client
        self._journal = journal
        self._partitions = list(partitions)
        self._keep_records = keep_records
        self._interval_s = interval_s
        self._dice = dice
        self._asked = dict.fromkeys(partitions, 0)
        self.trims = 0
        """That were answered: all living replicas have deleted so much."""
        self.stopping = False

    async def run(self) -> None:
        """Until `stopping` is set."""
        while not self.stopping:
            await asyncio.sleep(self._interval_s * (0.5 + self._dice.random()))
            partition = self._dice.choice(self._partitions)
            try:
                await self._trim(partition)
            except (NotAsked, NoAnswer):
                await self._client.look_again(partition)

    async def _trim(self, partition: TopicPartition) -> None:
        """Raises NotAsked or NoAnswer."""
        leader = (await self._client.leader(partition)).leader
        question = requests.list_offsets_request(partition, LATEST)
        answer = await self._client.ask(leader, Api.LIST_OFFSETS, question)
        error, end = requests.list_offsets_response(answer)
        if error:
            raise NoAnswer(requests.error_name(error))
        # Some of it, so that deletions fall into segments as well as between them.
        asked = self._asked[partition]
        before = asked + int((end - self._keep_records - asked) * self._dice.random())
        if before <= asked:
            return
        self._asked[partition] = before
        self._journal.deleting(partition, before)
        order = requests.delete_records_request(partition, before, timeout_ms=int(ASK_S * 750))
        answer = await self._client.ask(leader, Api.DELETE_RECORDS, order)
        error, low_watermark = requests.delete_records_response(answer)
        if error:
            raise NoAnswer(requests.error_name(error))
        self.trims += 1
        if low_watermark < before:
            self._journal.witness.violation(
                f"deletion: {partition.key} is said to begin at {low_watermark} everywhere, not "
                f"at {before}, which was asked for and granted"
            )
