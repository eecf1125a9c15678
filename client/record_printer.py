"""Records to standard output."""

from __future__ import annotations

import asyncio
import select
import sys

from .failure import Failure
from .record_format import RawRecord, RecordFormat

LOOK_SECONDS = 0.5
"""Between looks whether somebody still reads."""


class RecordPrinter:
    """Whoever knows that nothing follows at once calls `flush`."""

    def __init__(self, shape: RecordFormat, *, count: int | None) -> None:
        """`count`: records after which it is full; None: never."""
        if sys.stdout is None:
            raise Failure("standard output is closed")
        self._shape = shape
        self._out = sys.stdout.buffer
        self.left = count

    @property
    def full(self) -> bool:
        return self.left == 0

    def print(self, record: RawRecord) -> None:
        self._out.write(self._shape.line(record))
        if self.left is not None:
            self.left -= 1

    def flush(self) -> None:
        self._out.flush()


async def until_nobody_reads() -> None:
    """Return when standard output is a pipe whose reader has gone, which a process otherwise learns
    by writing to it: `consume | head -1` would wait for a record that nobody wants."""
    try:
        poll = select.poll()
        poll.register(sys.stdout.fileno(), 0)
    except (AttributeError, OSError, ValueError):
        await asyncio.Event().wait()  # No file of ours, or of a machine without poll.
    while not any(events & (select.POLLERR | select.POLLNVAL) for _, events in poll.poll(0)):  # noqa: ASYNC110
        await asyncio.sleep(LOOK_SECONDS)
