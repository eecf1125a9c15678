"""One partition, read from a position: records, or why the position is void.

A reader is never silently moved. What lies between its position and where it can go on is named by
a `Reset`: the head of the log was deleted, the log was cut and written anew, or it is the log of
another topic.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from ...seam import frozen
from ...wire import ErrorCode
from ...wire.messages.fetch import FetchRequest
from .batches import RecordOut, size_of
from .consume import decoded
from .errors import ApiError, from_kafka, no_topic
from .leaders import Leaders
from .partition_ends import EARLIEST, LATEST, offset_at
from .ports import HttpNode
from .tail_position import NO_EPOCH, Position

READ_BYTES = 256 << 10
CHUNK_RECORDS = 200
CHUNK_BYTES = 64 << 10
"""Rendered in one turn of the loop (RULES F1). A chunk of one record may be larger."""

GRACE_S = 5.0
"""Beyond the wait that a node was asked for; then its answer is lost."""


class Chunk(NamedTuple):
    """Records that follow each other, and what has been read with them."""

    begin: Position
    end: Position
    records: Sequence[RecordOut]
    """May be empty: control batches, or what compaction has removed."""


@frozen
class Reset:
    """The position is void; reading goes on elsewhere."""

    reason: str
    """retention, truncated, recreated or deleted."""
    partition: int
    before: Position
    after: Position


class PartitionReader:
    """Of one topic, by its id."""

    def __init__(
        self, node: HttpNode, leaders: Leaders, topic: str, topic_id: UUID, partition: int
    ) -> None:
        self._node = node
        self._leaders = leaders
        self._topic = topic
        self.topic_id = topic_id
        self.partition = partition

    async def end(self) -> Position:
        """Where the next record will stand. Raises ApiError."""
        return Position(await self._offset(LATEST))

    async def earliest(self) -> Position:
        return Position(await self._offset(EARLIEST))

    async def at_time(self, timestamp_ms: int) -> Position:
        """The first record at or after that time; the end when nothing is that young."""
        found = await self._offset(timestamp_ms)
        return Position(found) if found >= 0 else await self.end()

    async def read(self, position: Position) -> list[Chunk] | Reset:
        """What is there now, as the leader says, who is asked once; empty at the end.

        Raises ApiError.
        """
        now = asyncio.get_running_loop().time()

        async def ask(leader: int) -> list[Chunk] | Reset:
            return await self.read_from(leader, position, wait_ms=0)

        try:
            return await self._leaders.reading(self._topic, self.partition, ask, now)
        except ApiError as error:
            if error.kafka_error is ErrorCode.OFFSET_OUT_OF_RANGE:
                return await self._out_of_range(position)
            raise

    async def read_from(
        self, node_id: int, position: Position, *, wait_ms: int
    ) -> list[Chunk] | Reset:
        """From any replica; a follower that lags may answer OFFSET_OUT_OF_RANGE.

        Raises ApiError, Unreachable or AnswerLost.
        """
        where = FetchRequest.FetchPartition(
            partition=self.partition,
            fetch_offset=position.next_offset,
            last_fetched_epoch=position.last_epoch,
            partition_max_bytes=READ_BYTES,
        )
        topic = FetchRequest.FetchTopic(
            topic=self._topic, topic_id=self.topic_id, partitions=[where]
        )
        request = FetchRequest(
            max_wait_ms=wait_ms, min_bytes=1, max_bytes=READ_BYTES, topics=[topic]
        )
        deadline = asyncio.get_running_loop().time() + wait_ms / 1000 + GRACE_S
        response = await self._node.fetch(node_id, request, deadline)
        answer = response.responses[0].partitions[0]
        if error := response.error_code or answer.error_code:
            raise from_kafka(error)
        if (diverging := answer.diverging_epoch) is not None and diverging.end_offset >= 0:
            # The log was cut there and goes on with other records.
            after = Position(min(diverging.end_offset, position.next_offset))
            return Reset("truncated", self.partition, position, after)
        fetched = await decoded(answer.records, position.next_offset)
        end = Position(
            fetched.next_offset,
            position.last_epoch if fetched.last_epoch is None else fetched.last_epoch,
        )
        return list(_cut(position, end, fetched.records))

    async def _out_of_range(self, position: Position) -> list[Chunk] | Reset:
        earliest, latest = await self._offset(EARLIEST), await self._offset(LATEST)
        if position.next_offset < earliest:
            return Reset("retention", self.partition, position, Position(earliest))
        if position.next_offset > latest:
            return Reset("truncated", self.partition, position, Position(latest))
        # The lineage cannot tell, since all of that epoch is deleted: the offset decides.
        return [Chunk(position, Position(position.next_offset, NO_EPOCH), ())]

    async def _offset(self, timestamp: int) -> int:
        found = self._node.image().topics.get(self._topic)
        if found is None or found.topic_id != self.topic_id:
            raise no_topic(self._topic)
        place = (self._topic, self.partition)
        return await offset_at(self._node, self._leaders, place, timestamp)


def _cut(begin: Position, end: Position, records: Sequence[RecordOut]) -> list[Chunk]:
    """Chunks of bounded size; whatever holds no records belongs to the last."""
    chunks: list[Chunk] = []
    part: list[RecordOut] = []
    size = 0
    for stored in records:
        part.append(stored)
        size += size_of(stored)
        if len(part) == CHUNK_RECORDS or size >= CHUNK_BYTES:
            behind = Position(stored.record.offset + 1, stored.leader_epoch)
            chunks.append(Chunk(begin, behind, part))
            begin, part, size = behind, [], 0
    if begin.next_offset < end.next_offset:
        chunks.append(Chunk(begin, end, part))
    return chunks
