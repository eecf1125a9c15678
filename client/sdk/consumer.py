"""`async with client.consumer(topics, group=...) as k`: the group's share of the records."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import TracebackType
from typing import Any, Generic, Literal, Self, TypeVar

from .codecs import Codec, Coded
from .deadline import Deadline
from .errors import ClientError, Closed, DecodeFailed, GroupLost, PartitionRevoked
from .group_instance import GroupInstance
from .records import Record, TopicPartition
from .tail import record_of
from .transport import Transport

K = TypeVar("K")
V = TypeVar("V")

logger = logging.getLogger(__name__)

WAIT_MS = 2_000
MAX_BYTES = 1 << 20
LOOK_SECONDS = 1.0
"""How old the known assignment may be when a poll ends."""
EVENTS_KEPT = 1_000


class ConsumerState(StrEnum):
    JOINING = "joining"
    """No partition yet: the group is being balanced, or has more members than partitions."""
    STABLE = "stable"
    UNREACHABLE = "unreachable"
    """No node answers just now; what was tried last is in `health().last_error`."""
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class Assigned:
    partitions: frozenset[TopicPartition]


@dataclass(frozen=True, slots=True)
class Revoked:
    """Given to another member; what was not committed, it reads again."""

    partitions: frozenset[TopicPartition]


@dataclass(frozen=True, slots=True)
class Lost:
    """The group went on without this consumer, which has joined again: what was not committed is
    read again, by whoever has the partition now."""

    partitions: frozenset[TopicPartition]


Event = Assigned | Revoked | Lost


@dataclass(frozen=True, slots=True)
class Health:
    state: ConsumerState
    seconds_since_answer: float
    """Since a node last answered a poll; long ones wait two seconds for records."""
    assignment: frozenset[TopicPartition]
    last_error: ClientError | None
    """Of the newest failure, also when it is over."""


@dataclass(slots=True)
class ConsumerStats:
    """Of what was handed out since the consumer was made; `bytes` of keys and values."""

    records: int = 0
    bytes: int = 0


class Consumer(Generic[K, V]):
    """Reads at least once: `commit` says how far it has come; after a crash, or when a partition
    moves, everything behind the last commit is read again."""

    def __init__(
        self,
        transport: Transport,
        topics: Sequence[str],
        group: str,
        *,
        key: Codec[K],
        value: Codec[V],
        start: Literal["earliest", "latest"] = "earliest",
        read_committed: bool = False,
        request_timeout: float = 30.0,
    ) -> None:
        self.stats = ConsumerStats()
        self._transport = transport
        self._topics = tuple(topics)
        self._group = group
        self._key = Coded(key)
        self._value = Coded(value)
        self._start = start
        self._read_committed = read_committed
        self._request_timeout = request_timeout
        self._instance: GroupInstance | None = None
        self._assignment: frozenset[TopicPartition] = frozenset()
        self._looked_at = float("-inf")
        self._answered_at = 0.0
        self._ready: deque[tuple[TopicPartition, Mapping[str, Any]]] = deque()
        """As they came: one that cannot be decoded takes no other with it."""
        self._handed_out: dict[TopicPartition, int] = {}
        self._events: asyncio.Queue[Event] = asyncio.Queue(EVENTS_KEPT)
        self._last_error: ClientError | None = None
        self._failing = False
        self._closed = False

    async def __aenter__(self) -> Self:
        self._answered_at = asyncio.get_running_loop().time()
        await self._join()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self, within: float = 5.0) -> None:
        """Leave the group; always returns. Nothing is committed that was not asked for."""
        self._closed = True
        instance, self._instance = self._instance, None
        if instance is not None:
            try:
                await instance.leave(Deadline.after(within))
            except ClientError as error:
                logger.warning("the group %s hears of it later: %s", self._group, error)

    # Reading.

    async def __aiter__(self) -> AsyncIterator[Record[K, V]]:
        """For ever. Raises DecodeFailed, and Unreachable once nobody could be reached for
        `request_timeout` seconds; iterating again goes on behind either."""
        while True:
            await self._fill(WAIT_MS)
            while self._ready:
                yield self._next()

    async def batches(
        self, *, max_records: int = 500, max_wait: float = 0.5
    ) -> AsyncIterator[list[Record[K, V]]]:
        """What there is, as soon as there is enough or something was there for `max_wait`."""
        while True:
            await self._fill(WAIT_MS)
            if not self._ready:
                continue
            until = Deadline.after(max_wait)
            while len(self._ready) < max_records and not until.passed:
                await self._fill(int(until.left * 1000), only_when_empty=False)
            batch: list[Record[K, V]] = []
            try:
                while self._ready and len(batch) < max_records:
                    batch.append(self._next())
            except DecodeFailed:
                if batch:
                    yield batch  # What came before it goes first.
                raise
            if batch:
                yield batch

    def _next(self) -> Record[K, V]:
        """Raises DecodeFailed; the one behind it is next then."""
        place, document = self._ready.popleft()
        record = record_of(document, place, self._key, self._value)
        self._handed_out[place] = record.offset + 1
        self.stats.records += 1
        self.stats.bytes += _size(document["key"]) + _size(document["value"])
        return record

    async def _fill(self, wait_ms: int, *, only_when_empty: bool = True) -> None:
        """One poll, unless something is there already."""
        if only_when_empty and self._ready:
            return
        loop = asyncio.get_running_loop()
        deadline = Deadline.after(wait_ms / 1000 + self._request_timeout)
        try:
            if self._instance is None:
                await self._join()
            instance = self._instance
            if instance is None:
                raise Closed("this consumer is closed")
            documents = await instance.poll(wait_ms, MAX_BYTES, deadline)
            if documents or loop.time() - self._looked_at > LOOK_SECONDS:
                await self._look_at_assignment(instance, deadline)
        except GroupLost as error:
            self._lose(error)
            return
        except ClientError as error:
            self._failing, self._last_error = True, error
            raise
        self._failing = False
        self._answered_at = loop.time()
        for document in documents:
            place = TopicPartition(document["topic"], document["partition"])
            self._ready.append((place, document))

    async def _join(self) -> None:
        if self._closed:
            raise Closed("this consumer is closed")
        self._instance = await GroupInstance.join(
            self._transport,
            self._group,
            self._topics,
            start=self._start,
            read_committed=self._read_committed,
            deadline=Deadline.after(self._request_timeout),
        )

    def _lose(self, error: GroupLost) -> None:
        logger.warning("the group %s is joined again: %s", self._group, error)
        self._last_error = error
        self._instance = None
        self._ready.clear()
        self._handed_out.clear()
        self._tell(Lost(self._assignment))
        self._assignment = frozenset()

    async def _look_at_assignment(self, instance: GroupInstance, deadline: Deadline) -> None:
        now = await instance.assignment(deadline)
        self._looked_at = asyncio.get_running_loop().time()
        gone, new = self._assignment - now, now - self._assignment
        self._assignment = now
        if gone:
            self._ready = deque(ready for ready in self._ready if ready[0] not in gone)
            for place in gone:
                self._handed_out.pop(place, None)
            self._tell(Revoked(gone))
        if new:
            self._tell(Assigned(new))

    def _tell(self, event: Event) -> None:
        if self._events.full():
            self._events.get_nowait()
        self._events.put_nowait(event)

    # Committing.

    async def commit(self, *records: Record[K, V]) -> None:
        """These records, and all before them in their partitions, are done; without any, all that
        were handed out.

        Raises PartitionRevoked where a record's partition is another member's now: nothing is
        committed, and that member reads the record again. GroupLost likewise.
        """
        offsets = dict(self._handed_out)
        if records:
            offsets = {}
            for record in records:
                offsets[record.place] = max(offsets.get(record.place, 0), record.offset + 1)
        instance = self._instance
        if instance is None:
            raise GroupLost("the consumer is not of its group just now")
        deadline = Deadline.after(self._request_timeout)
        await self._look_at_assignment(instance, deadline)
        foreign = sorted(offsets.keys() - self._assignment)
        if foreign and records:
            named = ", ".join(f"{topic}-{partition}" for topic, partition in foreign)
            raise PartitionRevoked(f"{named} belongs to another member of {self._group}")
        offsets = {place: at for place, at in offsets.items() if place in self._assignment}
        if offsets:
            await instance.commit(offsets, deadline)

    # Looking.

    @property
    def state(self) -> ConsumerState:
        if self._closed:
            return ConsumerState.CLOSED
        if self._failing:
            return ConsumerState.UNREACHABLE
        return ConsumerState.STABLE if self._assignment else ConsumerState.JOINING

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        """As of the last poll."""
        return self._assignment

    def health(self) -> Health:
        since = asyncio.get_running_loop().time() - self._answered_at
        return Health(self.state, since, self._assignment, self._last_error)

    async def events(self) -> AsyncIterator[Event]:
        """Assigned, revoked, lost, in order; the oldest are dropped when nobody takes them."""
        while True:
            yield await self._events.get()


def _size(base64: str | None) -> int:
    """Bytes that it stands for."""
    return 0 if not base64 else len(base64) * 3 // 4 - base64[-2:].count("=")
