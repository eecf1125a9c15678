"""What happens before a client's batch is appended, and in which order.

Most batches are appended in the turn of the loop in which they came. Two kinds are not:

* one into which the topic wants to look, or which it wants compressed anew, when that would hold
  the loop (RULES F1): it is checked beside the loop first;
* a transactional one (KIP-890): the coordinator of transactions must agree first. It is asked
  whether the producer's transaction holds this partition, or told to add it.

A producer sends up to five batches at once. So batches of one producer to one partition, and those
of all without a producer id, stand in a row: none is appended before those that came earlier were
appended or refused. Everybody else passes by.

Nobody asks a coordinator yet, since transactions are not built: there is no `BeforeAppend`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ..seam import Buffer
from ..wire import ApiKey, ErrorCode
from ..wire.records import BatchHeader, RecordsError, parse_header
from .partition import Partition
from .refused_batches import RefusedBatches
from .roles import Refused
from .storage import NOT_ASKED, LeaderBatch, RecordsRejected, VerificationGuard
from .transaction_errors import bumps_epochs, error_of_coordinator

BeforeAppend = Callable[[Partition, BatchHeader, int], "asyncio.Future[ErrorCode] | None"]
"""(partition, the batch's header, version of the Produce request) -> None: append at once; else
NONE once it may be appended, or what the coordinator answered instead; `transaction_errors` decides
what of it the producer is told. Called in the turn in which the request came."""

Row = tuple[Partition, int]
"""Partition and producer id, -1 for all that have none."""

CHECKS_AT_ONCE = 4
"""Batches checked beside the loop: each may hold unpacked what its client compressed."""


class Turn:
    """A batch's place in its row. `leave` must be called, whatever becomes of the batch."""

    def __init__(self, order: AppendOrder, row: Row, version: int) -> None:
        loop = asyncio.get_running_loop()
        self._order = order
        self._row = row
        self._version = version
        self._error = ErrorCode.NONE
        self._ahead: Turn | None = None
        self._awaited = 0
        self.guard: VerificationGuard | None = None
        """To append it with; None: nobody asks about transactions, or it is of none."""
        self.ready: asyncio.Future[ErrorCode] = loop.create_future()
        """It is first in its row, and allowed: append now. Or refused, with the reason."""
        self.over: asyncio.Future[None] = loop.create_future()

    def stand_behind(self, ahead: Turn) -> None:
        self._ahead = ahead
        self.wait_for(ahead.over)

    def wait_for(self, awaited: asyncio.Future[ErrorCode] | asyncio.Future[None]) -> None:
        self._awaited += 1
        awaited.add_done_callback(self._on_done)

    def _on_done(self, done: asyncio.Future[ErrorCode] | asyncio.Future[None]) -> None:
        if done.cancelled():
            self._error = ErrorCode.REQUEST_TIMED_OUT
        elif error := done.result():
            self._error = error_of_coordinator(ApiKey.PRODUCE, self._version, error)
        self._awaited -= 1
        self.maybe_ready()

    def maybe_ready(self) -> None:
        if not self._awaited and not self.ready.done():
            self.ready.set_result(self._error)

    def leave(self) -> None:
        """Appended, refused or given up. Who stands behind it then waits for those ahead of it."""
        if self._ahead is not None and not self._ahead.over.done():
            self._ahead.over.add_done_callback(self._end)
        else:
            self._end()

    def _end(self, _: asyncio.Future[None] | None = None) -> None:
        self._ahead = None
        self._order.on_left(self._row, self)
        if not self.over.done():
            self.over.set_result(None)


class AppendOrder:
    """The rows of one node. Bounded by the produce requests in flight."""

    def __init__(self) -> None:
        self.before_append: BeforeAppend | None = None
        self.refused = RefusedBatches()
        self._last: dict[Row, Turn] = {}
        self._checks = asyncio.Semaphore(CHECKS_AT_ONCE)

    def enter(self, partition: Partition, records: Buffer, version: int) -> Turn | None:
        """None: append at once, in this turn of the loop. Else `check`, and wait for the turn.

        Raises Refused."""
        takes_long = partition.log.takes_long_to_check(records)
        if not takes_long and not self._last and self.before_append is None:
            return None
        try:
            header = parse_header(records)
        except RecordsError:
            return None  # Refused by the append itself.
        row = partition, header.producer_id
        guard, leave = self._ask(partition, header, version)
        ahead = self._last.get(row)
        if guard is None and ahead is None and not takes_long:
            return None
        turn = self._last[row] = Turn(self, row, version)
        turn.guard = guard
        if ahead is not None:
            turn.stand_behind(ahead)
        if leave is not None:
            turn.wait_for(leave)
        turn.maybe_ready()
        return turn

    def _ask(
        self, partition: Partition, header: BatchHeader, version: int
    ) -> tuple[VerificationGuard | None, asyncio.Future[ErrorCode] | None]:
        """What to append a transactional batch with, and what must be awaited before. Raises
        Refused."""
        if self.before_append is None or not (header.is_transactional and header.has_producer_id):
            return None, None
        try:
            guard = partition.log.begin_verification(
                header, supports_epoch_bump=bumps_epochs(ApiKey.PRODUCE, version)
            )
        except RecordsRejected as rejected:
            raise Refused(rejected.error) from None
        if guard is NOT_ASKED:
            return guard, None
        return guard, self.before_append(partition, header, version)

    async def check(self, partition: Partition, records: Buffer) -> LeaderBatch:
        """Raises RecordsRejected. The loop is not held."""
        async with self._checks:
            return await partition.log.check(records)

    def on_left(self, row: Row, turn: Turn) -> None:
        if self._last.get(row) is turn:
            del self._last[row]
