"""What happens before a client's transactional batch is appended, and in which order (KIP-890).

The coordinator of transactions must agree first: it is asked whether the producer's transaction
holds this partition, or told to add it. That takes a round trip, while a producer sends up to five
batches at once. So batches of one producer to one partition stand in a row: none is appended before
those that came earlier were appended or refused. Everybody else passes by.

Nobody asks yet, since transactions are not built: without a `BeforeAppend` nothing here is called.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ..seam import Buffer
from ..wire import ErrorCode
from ..wire.records import BatchHeader, RecordsError, parse_header
from .partition import Partition

BeforeAppend = Callable[[Partition, BatchHeader, int], "asyncio.Future[ErrorCode] | None"]
"""(partition, the batch's header, version of the Produce request) -> None: append at once; else
NONE once it may be appended, or why it may not. Called in the turn in which the request came."""

Row = tuple[Partition, int]
"""Partition and producer id."""


class Turn:
    """A batch's place in its row. `leave` must be called, whatever becomes of the batch."""

    def __init__(self, order: AppendOrder, row: Row) -> None:
        loop = asyncio.get_running_loop()
        self._order = order
        self._row = row
        self._error = ErrorCode.NONE
        self._awaited = 0
        self.ready: asyncio.Future[ErrorCode] = loop.create_future()
        """It is first in its row, and allowed: append now. Or refused, with the reason."""
        self.over: asyncio.Future[None] = loop.create_future()

    def wait_for(self, awaited: asyncio.Future[ErrorCode] | asyncio.Future[None]) -> None:
        self._awaited += 1
        awaited.add_done_callback(self._on_done)

    def _on_done(self, done: asyncio.Future[ErrorCode] | asyncio.Future[None]) -> None:
        if done.cancelled():
            self._error = ErrorCode.REQUEST_TIMED_OUT
        elif error := done.result():
            self._error = error
        self._awaited -= 1
        if not self._awaited and not self.ready.done():
            self.ready.set_result(self._error)

    def leave(self) -> None:
        self._order.on_left(self._row, self)
        if not self.over.done():
            self.over.set_result(None)


class AppendOrder:
    """The rows of one node. Bounded by the produce requests in flight."""

    def __init__(self) -> None:
        self.before_append: BeforeAppend | None = None
        self._last: dict[Row, Turn] = {}

    def enter(self, partition: Partition, records: Buffer, version: int) -> Turn | None:
        """None: append at once, in this turn of the loop."""
        if self.before_append is None:
            return None
        try:
            header = parse_header(records)
        except RecordsError:
            return None  # Refused by the append itself.
        if not header.has_producer_id:
            return None
        row = partition, header.producer_id
        leave = self.before_append(partition, header, version) if header.is_transactional else None
        ahead = self._last.get(row)
        if leave is None and ahead is None:
            return None
        turn = self._last[row] = Turn(self, row)
        if ahead is not None:
            turn.wait_for(ahead.over)
        if leave is not None:
            turn.wait_for(leave)
        return turn

    def on_left(self, row: Row, turn: Turn) -> None:
        if self._last.get(row) is turn:
            del self._last[row]
