"""Group commit for one offsets partition: what is asked in one loop turn shares a batch."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from ..seam import Clock, TaskScope, frozen
from ..wire import ErrorCode
from .log_records import LogRecord, encode
from .store import OffsetStore

MAX_WAITING_RECORDS = 20_000
"""Beyond this a commit is refused at once; clients back off and retry."""

MAX_BATCH_RECORDS = 1_000
"""Keeps a batch well below `max.message.bytes` with Kafka's default metadata limit."""

OUTCOME_UNKNOWN = (
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
)
"""The record may be in the log although the append was not confirmed (RULES D5)."""


@frozen
class _Waiting:
    records: Sequence[LogRecord]
    on_done: Callable[[ErrorCode], None]


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

    def write(self, records: Sequence[LogRecord], on_done: Callable[[ErrorCode], None]) -> None:
        """Queue `records`, which stay together in one batch; none at all: "when those before are
        through"."""
        if self._closed:
            on_done(ErrorCode.NOT_COORDINATOR)
        elif self._waiting_records + len(records) > MAX_WAITING_RECORDS:
            on_done(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        else:
            self._waiting.append(_Waiting(records, on_done))
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
                error = await self._append(records, deadline)
            except asyncio.CancelledError:
                # Leadership ended with the batch on its way: nobody may be left waiting.
                _answer_all(batch, ErrorCode.NOT_COORDINATOR)
                raise
            if error in OUTCOME_UNKNOWN:
                self.close()
            _answer_all(batch, error)
            if error in OUTCOME_UNKNOWN:
                self._on_unknown()
        self._task = None

    async def _append(self, records: Sequence[LogRecord], deadline: float) -> ErrorCode:
        if not records:
            return ErrorCode.NONE
        encoded = encode(records, timestamp_ms=self._clock.now_ms())
        return await self._store.append(self._partition, encoded, deadline)

    def _take_batch(self) -> list[_Waiting]:
        taken: list[_Waiting] = []
        count = 0
        for waiting in self._waiting:
            if taken and count + len(waiting.records) > MAX_BATCH_RECORDS:
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
        _answer_all(waiting, ErrorCode.NOT_COORDINATOR)


def _answer_all(batch: list[_Waiting], error: ErrorCode) -> None:
    for waiting in batch:
        waiting.on_done(error)
