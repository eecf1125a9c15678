"""`async with client.producer() as p`: records in, places out."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Iterable
from dataclasses import dataclass
from types import TracebackType
from typing import Generic, Literal, Self, TypeVar

from ...seam.murmur2 import partition_of_key
from .batches import Pending, size_of
from .codecs import Codec
from .deadline import Deadline
from .errors import Closed, NotDelivered
from .identities import Identities
from .lane import Lane
from .records import Headers, RecordMetadata, TopicPartition
from .room import Room
from .topics import Topics
from .transport import Transport

K = TypeVar("K")
V = TypeVar("V")

Acks = Literal["all", "1"]

FAILURES_KEPT = 1_000
MOST_AHEAD = 10_000
"""Records of `send_all` that are taken before the first of them is decided."""
TURN_RECORDS = 250
"""Taken in a row before the loop has its turn: batches leave while others form, and the program's
other tasks do not starve."""


_new_pending = tuple.__new__
"""Without going through the named tuple's own function, which costs as much as the tuple."""


@dataclass(slots=True)
class ProducerStats:
    """Since the producer was made."""

    delivered: int = 0
    delivered_bytes: int = 0
    failed: int = 0
    """Refused, or not known to be written; each was told to whoever waits for it."""
    waiting: int = 0
    """Taken and not decided yet."""


@dataclass(slots=True)
class _Sticky:
    """Where a topic's records without a key go now, and how many bytes still will."""

    partition: int
    bytes_left: int


@dataclass(frozen=True, slots=True)
class CloseReport:
    """What `close` has to say."""

    delivered: int
    undelivered: int
    """Given up when its time was over."""
    unseen: tuple[BaseException, ...] = ()
    """Failures before that which nobody has looked at; the newest, if there are very many."""


class Producer(Generic[K, V]):
    """Batches by partition; bounded by bytes; ordered within a partition.

    * `send` waits for the place of a record; `enqueue` only for room in the buffer, and gives a
      future; `send_all` takes any number with bounded memory.
    * Every record is decided within `delivery_timeout` seconds.
    * With `idempotent` a record whose answer was lost is sent again and stands in the log once.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        key: Codec[K],
        value: Codec[V],
        acks: Acks = "all",
        idempotent: bool = True,
        linger: float = 0.005,
        delivery_timeout: float = 30.0,
        max_batch_bytes: int = 256 << 10,
        buffer_bytes: int = 32 << 20,
    ) -> None:
        self.stats = ProducerStats()
        self._transport = transport
        self._topics = Topics(transport)
        self._key = key
        self._value = value
        self._acks = acks
        self._identities = Identities(transport) if idempotent else None
        self._linger = linger
        self._delivery_timeout = delivery_timeout
        self._max_batch_bytes = max_batch_bytes
        self._room = Room(buffer_bytes)
        self._lanes: dict[tuple[str, int], Lane] = {}
        self._running: dict[TopicPartition, asyncio.Task[None]] = {}
        self._sticky: dict[str, _Sticky] = {}
        self._in_a_row = 0
        self._failed: deque[asyncio.Future[RecordMetadata]] = deque(maxlen=FAILURES_KEPT)
        self._closed = False
        self._gives_up = False
        """What ends from now on is counted in the report of `close`."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        """Leaving in good order waits for all records, and raises NotDelivered for those that were
        not written where nobody has looked at the future. Leaving by an exception does not wait."""
        report = await self.close(self._delivery_timeout if kind is None else 0.0)
        if kind is None and (report.undelivered or report.unseen):
            count = report.undelivered + len(report.unseen)
            raise NotDelivered(count, report.unseen)

    # Sending.

    async def send(
        self,
        topic: str,
        value: V | None,
        *,
        key: K | None = None,
        partition: int | None = None,
        headers: Headers = (),
        timestamp: int | None = None,
    ) -> RecordMetadata:
        """The record's place, once as many replicas have it as `acks` asks for.

        Raises TypeError or ValueError for what the codec cannot say, TopicNotFound,
        NotEnoughReplicas, RecordTooLarge and other Refused (not written), DeadlineExceeded (not
        written), OutcomeUnknown (perhaps written), Closed.
        """
        record = self._record(value, key, headers, timestamp)
        lane = self._entered(topic, partition, record)
        if lane is None:
            lane = await self._entered_later(topic, partition, record)
        lane.hurry()
        return await record.placed

    async def enqueue(
        self,
        topic: str,
        value: V | None,
        *,
        key: K | None = None,
        partition: int | None = None,
        headers: Headers = (),
        timestamp: int | None = None,
    ) -> asyncio.Future[RecordMetadata]:
        """Waits for room in the buffer only; the future ends as `send` would."""
        self._in_a_row += 1
        if self._in_a_row >= TURN_RECORDS:
            self._in_a_row = 0
            await asyncio.sleep(0)
        record = self._record(value, key, headers, timestamp)
        if self._entered(topic, partition, record) is None:
            await self._entered_later(topic, partition, record)
        return record.placed

    async def send_all(
        self, topic: str, values: Iterable[V | None] | AsyncIterable[V | None]
    ) -> AsyncIterator[RecordMetadata]:
        """The places of all these values, in their order. No more are taken than the buffer holds.

        Raises as `send`; what was taken before goes on.
        """
        waiting: deque[asyncio.Future[RecordMetadata]] = deque()
        async for value in _each(values):
            waiting.append(await self.enqueue(topic, value))
            while waiting and (waiting[0].done() or len(waiting) > MOST_AHEAD):
                yield await waiting.popleft()
        self._hurry()
        while waiting:
            yield await waiting.popleft()

    async def flush(self) -> None:
        """Return when everything that was taken so far is decided."""
        self._hurry()
        waiting = [task for task in self._running.values() if not task.done()]
        if waiting:
            await asyncio.wait(waiting)

    async def close(self, within: float = 30.0) -> CloseReport:
        """Takes no more, waits `within` seconds at most, gives up what is left, and returns.

        What is given up may have been written, if it was on its way: its future says which.
        """
        self._closed = True
        self._hurry()
        running = [task for task in self._running.values() if not task.done()]
        if running and within > 0:
            await asyncio.wait(running, timeout=within)
        undelivered = self.stats.waiting
        self._gives_up = True
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        for lane in self._lanes.values():
            lane.give_up()
        return CloseReport(self.stats.delivered, undelivered, tuple(self._unseen()))

    # Within.

    def _record(
        self, value: V | None, key: K | None, headers: Headers, timestamp: int | None
    ) -> Pending:
        """Raises Closed, or what the codecs raise."""
        if self._closed:
            raise Closed("this producer is closed")
        key_bytes = None if key is None else self._key.encode(key)
        value_bytes = None if value is None else self._value.encode(value)
        loop = asyncio.get_running_loop()
        return _new_pending(
            Pending,
            (
                key_bytes,
                value_bytes,
                headers,
                int(time.time() * 1000) if timestamp is None else timestamp,
                size_of(key_bytes, value_bytes, headers),
                loop.time() + self._delivery_timeout,
                loop.create_future(),
            ),
        )

    def _entered(self, topic: str, partition: int | None, record: Pending) -> Lane | None:
        """The lane that has it now; None where it must wait first, as few do."""
        if partition is not None:
            has_room = self._room.try_take(record.size)
            return self._enter(topic, partition, record) if has_room else None
        count = self._topics.known(topic, record.expires_at - self._delivery_timeout)
        if count is None or not self._room.try_take(record.size):
            return None
        return self._enter(topic, self._partition_for(topic, record, count), record)

    async def _entered_later(self, topic: str, partition: int | None, record: Pending) -> Lane:
        deadline = Deadline(record.expires_at)
        if partition is None:
            count = await self._topics.partitions(topic, deadline)
            partition = self._partition_for(topic, record, count)
        self._hurry()
        await self._room.take(record.size, deadline)
        if self._closed:
            self._room.give_back(record.size)
            raise Closed("this producer was closed meanwhile")
        return self._enter(topic, partition, record)

    def _enter(self, topic: str, partition: int, record: Pending) -> Lane:
        self.stats.waiting += 1
        lane = self._lanes.get((topic, partition)) or self._new_lane(topic, partition)
        lane.add(record)
        if lane.idle:
            lane.idle = False
            running = asyncio.create_task(lane.run(), name=f"write to {lane.place}")
            self._running[lane.place] = running
        return lane

    def _partition_for(self, topic: str, record: Pending, count: int) -> int:
        """Keys by hash, as Java's clients do. Records without a key stay together until they are a
        batch, and then go elsewhere (KIP-480, KIP-794)."""
        if record.key is not None:
            return partition_of_key(record.key, count)
        sticky = self._sticky.get(topic)
        if sticky is None or sticky.bytes_left <= 0 or sticky.partition >= count:
            partition = self._transport.rng.randrange(count)
            sticky = self._sticky[topic] = _Sticky(partition, self._max_batch_bytes)
        sticky.bytes_left -= record.size
        return sticky.partition

    def _new_lane(self, topic: str, partition: int) -> Lane:
        lane = self._lanes[topic, partition] = Lane(
            TopicPartition(topic, partition),
            self._transport,
            self._topics,
            self._identities,
            acks=self._acks,
            linger=self._linger,
            max_batch_bytes=self._max_batch_bytes,
            settled=self._on_settled,
        )
        return lane

    def _hurry(self) -> None:
        for lane in self._lanes.values():
            if lane.queue:
                lane.hurry()

    def _on_settled(self, batch: list[Pending], error: BaseException | None) -> None:
        size = sum(record.size for record in batch)
        self._room.give_back(size)
        self.stats.waiting -= len(batch)
        if error is None:
            self.stats.delivered += len(batch)
            self.stats.delivered_bytes += size
            return
        self.stats.failed += len(batch)
        for record in batch:
            if not record.placed.done():
                record.placed.set_exception(error)
                if self._gives_up:
                    record.placed.exception()  # Looked at: asyncio need not log each of them.
                else:
                    self._failed.append(record.placed)

    def _unseen(self) -> list[BaseException]:
        """Failures that nobody has asked their future for: what asyncio itself would log."""
        unseen = []
        for placed in self._failed:
            if getattr(placed, "_log_traceback", False):
                error = placed.exception()
                if error is not None:
                    unseen.append(error)
        return unseen


async def _each(values: Iterable[V] | AsyncIterable[V]) -> AsyncIterator[V]:
    if isinstance(values, AsyncIterable):
        async for value in values:
            yield value
    else:
        for value in values:
            yield value
