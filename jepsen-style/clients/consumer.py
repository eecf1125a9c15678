"""A consumer that reads its partitions from their beginning on and never skips."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from . import requests
from .batches import values_of
from .cluster import RETRY_S, ClusterClient, NoAnswer, NotAsked
from .journal import Journal
from .primitives import Malformed
from .producer import name_of
from .requests import Api, Fetched, FetchPosition, TopicPartition, error_name

MAX_BYTES = 1 << 20

Found = dict[TopicPartition, list[tuple[int, bytes, str]]]


class Consumer:
    def __init__(
        self,
        client: ClusterClient,
        journal: Journal,
        partitions: Sequence[TopicPartition],
        *,
        max_wait_s: float,
        pause_s: float = 0.0,
        process: int | None = None,
    ) -> None:
        """`process`: one of the journal's that this consumer goes on with; else a new one."""
        self._client = client
        self._journal = journal
        self._max_wait_ms = int(max_wait_s * 1000)
        self._pause_s = pause_s
        self._process = journal.process() if process is None else process
        self.positions = dict.fromkeys(partitions, 0)
        """Next offset of each."""
        self.high_watermarks = dict.fromkeys(partitions, -1)
        """As of the last answer."""
        self.stopping = False
        self._begins_anew: dict[TopicPartition, None] = {}
        journal.assigned(self._process, list(partitions))

    async def run(self) -> None:
        """Until `stopping` is set."""
        while not self.stopping:
            await self.poll()
            await asyncio.sleep(self._pause_s)

    async def poll(self) -> None:
        """One poll of every leader that is known, side by side."""
        self._begin_anew()
        by_leader: dict[int, dict[TopicPartition, FetchPosition]] = {}
        for partition, offset in self.positions.items():
            try:
                leader = await self._client.leader(partition)
            except NotAsked:
                await asyncio.sleep(RETRY_S)
                continue
            wanted = by_leader.setdefault(leader.leader, {})
            wanted[partition] = FetchPosition(leader.leader_epoch, offset)
        self._journal.polling(self._process)
        found: Found = {}
        fetches = [self._fetch(node, wanted, found) for node, wanted in by_leader.items()]
        await asyncio.gather(*fetches)
        self._journal.polled(self._process, found)

    def _begin_anew(self) -> None:
        """With partitions whose log ends before what was read of it; as another process, since
        positions go back."""
        if self._begins_anew:
            self.positions |= dict.fromkeys(self._begins_anew, 0)
            self._begins_anew.clear()
            self._process = self._journal.process()
            self._journal.assigned(self._process, list(self.positions))

    async def _fetch(
        self, node_id: int, wanted: dict[TopicPartition, FetchPosition], found: Found
    ) -> None:
        body = requests.fetch_request(wanted, max_wait_ms=self._max_wait_ms, max_bytes=MAX_BYTES)
        try:
            answer = await self._client.ask(node_id, Api.FETCH, body)
        except (NotAsked, NoAnswer):
            for partition in wanted:
                await self._client.look_again(partition)
            return
        for partition, fetched in requests.fetch_response(answer).items():
            if fetched.error:
                await self._take_error(partition, wanted[partition], error_name(fetched.error))
            else:
                self._take(partition, fetched, found)

    def _take(self, partition: TopicPartition, fetched: Fetched, found: Found) -> None:
        try:
            records = values_of(fetched.records)
        except Malformed as error:
            self._journal.witness.violation(f"corrupt: {partition.key} was served so: {error}")
            return
        self.high_watermarks[partition] = fetched.high_watermark
        for offset, value in records:
            # The first batch may begin before what was asked for.
            if offset >= self.positions[partition]:
                self.positions[partition] = offset + 1
                found.setdefault(partition, []).append((offset, value, name_of(value)))

    async def _take_error(
        self, partition: TopicPartition, position: FetchPosition, error: str
    ) -> None:
        start = self._journal.witness.may_begin_at(partition)
        if error == "OFFSET_OUT_OF_RANGE" and position.offset < start:
            self.positions[partition] = start
        elif error == "OFFSET_OUT_OF_RANGE" and self._journal.witness.may_end_before(partition):
            self._begins_anew[partition] = None
        elif error == "OFFSET_OUT_OF_RANGE":
            # All before the position was committed, so every leader of this epoch holds it (D4).
            self._journal.witness.violation(
                f"range: {partition.key} at {position.offset} is refused as out of range"
            )
        await self._client.look_again(partition)
