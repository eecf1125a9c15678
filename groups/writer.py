"""Group commit for one offsets partition: what is asked in one loop turn shares a batch."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from ..seam import Clock, TaskScope, frozen
from ..wire import ErrorCode
from ..wire.records import Record
from .log_records import LogRecord, Producer, batch_of, encode
from .store import Appended, OffsetStore

MAX_WAITING_RECORDS = 20_000
"""Beyond this a commit is refused at once; clients back off and retry."""

MAX_BATCH_RECORDS = 1_000
"""Keeps a batch well below `max.message.bytes` with Kafka's default metadata limit."""

ENCODED_PER_TURN = 200
"""A record takes some ten microseconds, and a large group's assignment has hundreds (RULES F1)."""

OUTCOME_UNKNOWN = (
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
)
"""The record may be in the log although the append was not confirmed (RULES D5)."""


OnDone = Callable[[Appended], None]


@frozen
class _Waiting:
    records: Sequence[LogRecord]
    on_done: OnDone
    producer: Producer | None


class PartitionWriter:
    """Appends in order, one batch in flight; `on_done` is called in the order of the calls.

    A batch whose outcome is unknown ends the writer: everything behind it is answered
    NOT_COORDINATOR (it did not happen) and the owner reads the partition again from its log.
    """

    def __init__(
        self,
        partition: int,
        *,
        store: OffsetStore,
        clock: Clock,
        timeout_ms: int,
        tasks: TaskScope,
        on_unknown: Callable[[], None],
    ) -> None:
        self._partition = partition
        self._store = store
        self._clock = clock
        self._timeout_ms = timeout_ms
        self._tasks = tasks
        self._on_unknown = on_unknown
        self._waiting: list[_Waiting] = []
        self._waiting_records = 0
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    def has_room(self, records: int) -> bool:
        """Would so many more be taken now?"""
        return not self._closed and self._waiting_records + records <= MAX_WAITING_RECORDS

    def write(
        self,
        records: Sequence[LogRecord],
        on_done: OnDone,
        *,
        producer: Producer | None = None,
    ) -> None:
        """Queue `records`, which stay together in one batch; none at all: "when those before are
        through". Those of a producer's transaction are a batch by themselves: its header says
        whose they are."""
        if self._closed:
            on_done(Appended(ErrorCode.NOT_COORDINATOR))
        elif self._waiting_records + len(records) > MAX_WAITING_RECORDS:
            on_done(Appended(ErrorCode.COORDINATOR_NOT_AVAILABLE))
        else:
            self._waiting.append(_Waiting(records, on_done, producer))
            self._waiting_records += len(records)
            if self._task is None:
                name = f"offsets-writer-{self._partition}"
                self._task = self._tasks.spawn(self._run(), name=name)

    async def _run(self) -> None:
        while self._waiting and not self._closed:
            batch = self._take_batch()
            records = [record for waiting in batch for record in waiting.records]
            deadline = asyncio.get_running_loop().time() + self._timeout_ms / 1000
            try:
                appended = await self._append(records, batch[0].producer, deadline)
            except asyncio.CancelledError:
                # Leadership ended with the batch on its way: nobody may be left waiting.
                _answer_all(batch, Appended(ErrorCode.NOT_COORDINATOR))
                raise
            unknown = appended.error in OUTCOME_UNKNOWN
            if unknown:
                self.close()
            _answer_all(batch, appended)
            if unknown:
                self._on_unknown()
        self._task = None

    async def _append(
        self, records: Sequence[LogRecord], producer: Producer | None, deadline: float
    ) -> Appended:
        if not records:
            return Appended(ErrorCode.NONE)
        timestamp_ms = self._clock.now_ms()
        encoded: list[Record] = []
        for record in records:
            encoded.append(encode(record, timestamp_ms))
            if len(encoded) % ENCODED_PER_TURN == 0:
                await asyncio.sleep(0)
        return await self._store.append(self._partition, batch_of(encoded, producer), deadline)

    def _take_batch(self) -> list[_Waiting]:
        taken: list[_Waiting] = []
        count = 0
        for waiting in self._waiting:
            too_many = count + len(waiting.records) > MAX_BATCH_RECORDS
            if taken and (too_many or waiting.producer or taken[0].producer):
                break
            taken.append(waiting)
            count += len(waiting.records)
        del self._waiting[: len(taken)]
        self._waiting_records -= count
        return taken

    def close(self) -> None:
        """Refuse what is queued and all that comes; a batch in flight still gets its answer."""
        self._closed = True
        waiting, self._waiting = self._waiting, []
        self._waiting_records = 0
        _answer_all(waiting, Appended(ErrorCode.NOT_COORDINATOR))


def _answer_all(batch: list[_Waiting], appended: Appended) -> None:
    """Each is told where its own first record stands."""
    offset = appended.base_offset
    for waiting in batch:
        waiting.on_done(Appended(appended.error, offset))
        if appended.error is ErrorCode.NONE:
            offset += len(waiting.records)
