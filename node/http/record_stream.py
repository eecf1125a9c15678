"""Records of one open request on their way: taken in chunks, written in batches, answered in order.

A chunk is what was read from the request together. Its records are parted by partition, and each
partition has a *lane* with at most one batch under way: what arrives meanwhile forms the next one.
So batches grow exactly as large as the cluster is slow, records of one partition stand in its log
in the order in which they came, and nothing overtakes a batch that is sent again.

What is in flight is bounded twice: each stream by `STREAM_BYTES`, all of them together by a `Room`.
A chunk leaves the stream when its answers have been taken, so that a client which does not read
them is not read from either.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Generic, TypeVar

from ...seam import offload
from .admission import Room
from .batches import encode
from .errors import ApiError, to_keep
from .records_in import Producer, RecordIn
from .writing import Batch, Outcome

STREAM_BYTES = 2 << 20
"""Of one stream: read from its request and not answered yet. One chunk may be larger."""

GATHERING_TURNS = 3
"""Of the loop, that an idle lane waits for what has been read already but not parsed: microseconds
for a lone record, and batches three times as large where the log answers at once."""

BATCH_RECORDS = 1_000
BATCH_BYTES = 256 << 10
"""What a lane puts into one batch: encoding more takes too long for one turn of the loop (F1)."""


class Part:
    """Consecutive records of a chunk's partition; they stand in one batch, side by side."""

    __slots__ = ("chunk", "first", "outcome", "partition", "positions", "producer", "records")

    def __init__(self, chunk: Chunk, partition: int, producer: Producer | None = None) -> None:
        self.chunk = chunk
        self.partition = partition
        self.producer = producer
        """Its records are a batch of their own then."""
        self.records: list[RecordIn] = []
        self.positions: list[int] | range = []
        """Of the records in the chunk."""
        self.outcome: Outcome | None = None
        self.first = 0
        """Place of its first record in the batch."""


class Chunk:
    """Records that were read together. Decided when every part has its outcome."""

    __slots__ = ("alone", "count", "parts", "refused", "size", "undecided")

    def __init__(self, size: int, *, alone: bool = False) -> None:
        self.size = size
        """Bytes of the request."""
        self.alone = alone
        """It is one batch, formed by its sender and answered as one."""
        self.count = 0
        """Records and refusals, in the order of the request."""
        self.parts: dict[int, Part] = {}
        self.refused: list[tuple[int, ApiError]] = []
        """(position, why): what never became a record."""
        self.undecided = 0

    def add(self, record: RecordIn, partition: int) -> None:
        part = self.parts.get(partition)
        if part is None:
            part = self.parts[partition] = Part(self, partition)
        part.records.append(record)
        assert isinstance(part.positions, list)
        part.positions.append(self.count)
        self.count += 1

    def add_all(self, records: list[RecordIn], partition: int) -> None:
        """Into an empty chunk."""
        part = self.parts[partition] = Part(self, partition)
        part.records = records
        part.positions = range(len(records))
        self.count = len(records)

    def add_batch(self, records: list[RecordIn], partition: int, producer: Producer | None) -> None:
        part = self.parts[partition] = Part(self, partition, producer)
        part.records = records
        self.count = 1

    def refuse(self, error: ApiError) -> None:
        self.refused.append((self.count, to_keep(error)))
        self.count += 1


SomeChunk = TypeVar("SomeChunk", bound=Chunk)

Write = Callable[[Batch], Awaitable[Outcome]]
"""Brings one batch to its leader; answers in bounded time."""


class RecordStream(Generic[SomeChunk]):
    """One open request. Only for use within the task group that it is given."""

    def __init__(
        self, write: Write, room: Room, tasks: asyncio.TaskGroup, *, max_batch_bytes: int
    ) -> None:
        self._write = write
        self._room = room
        self._tasks = tasks
        self._batch_bytes = min(BATCH_BYTES, max_batch_bytes // 2)
        self._lanes: dict[int, deque[Part]] = {}
        """Partition -> what waits behind the batch under way; only of lanes with one."""
        self._chunks: deque[SomeChunk] = deque()
        """Not yet answered, in order."""
        self._in_flight = 0
        self._ended = False
        self._changed: asyncio.Future[None] | None = None
        self._has_room: asyncio.Future[None] | None = None

    async def add(self, chunk: SomeChunk) -> None:
        """Returns when the next chunk may come."""
        await self._room.take(chunk.size)
        self._in_flight += chunk.size
        self._chunks.append(chunk)
        chunk.undecided = len(chunk.parts)
        for part in chunk.parts.values():
            self._enter_lane(part)
        if not chunk.undecided:
            self._wake()
        while self._in_flight >= STREAM_BYTES:
            self._has_room = asyncio.get_running_loop().create_future()
            await self._has_room

    def end(self) -> None:
        """No chunk comes any more."""
        self._ended = True
        self._wake()

    def close(self) -> None:
        """Give back what is held; the stream is not used any more."""
        self._room.give_back(self._in_flight)
        self._in_flight = 0

    async def decided(self) -> AsyncIterator[SomeChunk]:
        """The chunks in order, each as soon as it and all before it are decided. One is in flight
        until the next is asked for."""
        while True:
            while not self._chunks or self._chunks[0].undecided:
                if self._ended and not self._chunks:
                    return
                self._changed = asyncio.get_running_loop().create_future()
                await self._changed
            chunk = self._chunks.popleft()
            yield chunk
            self._leave(chunk)

    def _leave(self, chunk: SomeChunk) -> None:
        self._in_flight -= chunk.size
        self._room.give_back(chunk.size)
        if self._has_room is not None and not self._has_room.done():
            self._has_room.set_result(None)

    def _wake(self) -> None:
        if self._changed is not None and not self._changed.done():
            self._changed.set_result(None)

    # Lanes.

    def _enter_lane(self, part: Part) -> None:
        lane = self._lanes.get(part.partition)
        if lane is None:
            self._lanes[part.partition] = deque((part,))
            self._tasks.create_task(self._drive(part.partition))
        else:
            lane.append(part)

    async def _drive(self, partition: int) -> None:
        lane = self._lanes[partition]
        for _ in range(GATHERING_TURNS):
            await asyncio.sleep(0)
        while lane:
            parts = self._next_batch(lane)
            records = parts[0].records
            if len(parts) > 1:
                records = [record for part in parts for record in part.records]
            outcome = await self._send(partition, records, parts[0].producer)
            for part in parts:
                part.outcome = outcome
                part.chunk.undecided -= 1
            self._wake()
        del self._lanes[partition]

    def _next_batch(self, lane: deque[Part]) -> list[Part]:
        first = lane.popleft()
        parts, count, size = [first], len(first.records), first.chunk.size
        if first.chunk.alone:
            return parts
        while lane and not lane[0].chunk.alone:
            following = lane[0]
            if (
                count + len(following.records) > BATCH_RECORDS
                or size + following.chunk.size > self._batch_bytes
            ):
                break
            following.first = count
            count += len(following.records)
            size += following.chunk.size
            parts.append(lane.popleft())
        return parts

    async def _send(
        self, partition: int, records: Sequence[RecordIn], producer: Producer | None
    ) -> Outcome:
        # A microsecond or two for each record, however large.
        if len(records) <= BATCH_RECORDS:
            encoded = encode(records, producer)
        else:
            encoded = await offload(lambda: encode(records, producer))
        return await self._write(Batch(partition, (), encoded, repeatable=producer is not None))
