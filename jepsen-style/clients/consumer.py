"""A consumer that reads its partitions from their beginning on and never skips; each new leader is
asked whether its log is still the one that was read (KIP-320)."""

from __future__ import annotations

import asyncio
from collections.abc import Container, Sequence

from . import requests
from .batches import VALUE_ENDS, Shown, end_of, keyed_of, shown, values_of
from .cluster import RETRY_S, ClusterClient, NoAnswer, NotAsked
from .journal import Journal
from .primitives import Malformed
from .requests import (
    Api,
    Fetched,
    FetchPosition,
    PartitionMetadata,
    TopicPartition,
    error_name,
)

MAX_BYTES = 1 << 20

Found = dict[TopicPartition, list[tuple[int, bytes, Shown]]]


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
        keyed: Container[str] = (),
    ) -> None:
        """`keyed`: topics whose records have keys. `process`: one of the journal's that this
        consumer goes on with; else a new one."""
        self._client = client
        self._journal = journal
        self._max_wait_ms = int(max_wait_s * 1000)
        self._pause_s = pause_s
        self._keyed = keyed
        self._process = journal.process() if process is None else process
        self.positions = dict.fromkeys(partitions, 0)
        """Next offset of each."""
        self._read_in: dict[TopicPartition, int] = {}
        """In which leader epoch the last batch before that offset was written."""
        self._validated: dict[TopicPartition, int] = {}
        """By partition: the leader epoch in which the position was last held against the lineage of
        the leader."""
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
            if not await self._is_valid(partition, leader):
                continue
            wanted = by_leader.setdefault(leader.leader, {})
            wanted[partition] = FetchPosition(leader.leader_epoch, offset)
        self._journal.polling(self._process)
        found: Found = {}
        fetches = [self._fetch(node, wanted, found) for node, wanted in by_leader.items()]
        await asyncio.gather(*fetches)
        self._journal.polled(self._process, found)

    async def _is_valid(self, partition: TopicPartition, leader: PartitionMetadata) -> bool:
        """Whether the log of a new leader still is the one that was read (KIP-320). All that was
        read is committed, so it must be, unless the loss is outside the guarantee."""
        epoch = leader.leader_epoch
        read_in = self._read_in.get(partition)
        if read_in is None or self._validated.get(partition) == epoch:
            return True
        body = requests.epoch_end_request(
            partition, current_leader_epoch=epoch, leader_epoch=read_in
        )
        try:
            answer = await self._client.ask(leader.leader, Api.OFFSET_FOR_LEADER_EPOCH, body)
        except (NotAsked, NoAnswer):
            await self._client.look_again(partition)
            return False
        end = requests.epoch_end_response(answer)
        if end.error:
            await self._client.look_again(partition)
            return False
        self._validated[partition] = epoch
        position = self.positions[partition]
        # Of a whole epoch compaction may have left nothing to whoever copied the log.
        is_known = end.leader_epoch == read_in or partition.topic in self._keyed
        if is_known and end.end_offset >= position:
            return True
        if end.leader_epoch < 0 and self._journal.witness.may_begin_at(partition) >= position:
            return True
        if self._journal.witness.may_end_before(partition):
            self._begins_anew[partition] = None
        else:
            self._journal.witness.violation(
                f"lineage: {partition.key} was read to {position} in epoch {read_in}; node "
                f"{leader.leader}, its leader in epoch {epoch}, says that epoch "
                f"{end.leader_epoch} ends at {end.end_offset}"
            )
        return False

    def _begin_anew(self) -> None:
        """With partitions whose log ends before what was read of it; as another process, since
        positions go back."""
        if self._begins_anew:
            self.positions |= dict.fromkeys(self._begins_anew, 0)
            for partition in self._begins_anew:
                self._read_in.pop(partition, None)
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
            records = self._records(partition, fetched.records)
        except Malformed as error:
            self._journal.witness.violation(f"corrupt: {partition.key} was served so: {error}")
            return
        self.high_watermarks[partition] = fetched.high_watermark
        position = self.positions[partition]
        # The first batch may begin before what was asked for.
        if new := [record for record in records if record[0] >= position]:
            found.setdefault(partition, []).extend(new)
        end = end_of(fetched.records)
        if end is not None and end.offset > position:
            self.positions[partition], self._read_in[partition] = end

    def _records(self, partition: TopicPartition, data: bytes) -> list[tuple[int, bytes, Shown]]:
        """(offset, whole value, what the history shows of it). Raises Malformed."""
        if partition.topic not in self._keyed:
            return [(offset, value, shown(value)) for offset, value in values_of(data)]
        return [
            (offset, record.value or record.name.encode() + VALUE_ENDS, shown(record))
            for offset, record in keyed_of(data)
        ]

    async def _take_error(
        self, partition: TopicPartition, position: FetchPosition, error: str
    ) -> None:
        start = self._journal.witness.may_begin_at(partition)
        if error == "OFFSET_OUT_OF_RANGE" and position.offset < start:
            self.positions[partition] = start
            self._read_in.pop(partition, None)
        elif error == "OFFSET_OUT_OF_RANGE" and self._journal.witness.may_end_before(partition):
            self._begins_anew[partition] = None
        elif error == "OFFSET_OUT_OF_RANGE":
            # All before the position was committed, so every leader of this epoch holds it (D4).
            self._journal.witness.violation(
                f"range: {partition.key} at {position.offset} is refused as out of range"
            )
        await self._client.look_again(partition)
