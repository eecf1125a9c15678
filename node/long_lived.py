"""What lives long is left out of garbage collections (RULES F1).

A full collection looks at every object that may be part of a cycle, some seventy for each log: with
10,000 of them that was a turn of the loop of 100 ms and more, again and again while a node opens
its logs or makes new ones. So whenever so many more than ever are open, what lives then is left
out.

The price: an open log is such a cycle, so one that was left out and is deleted takes its 8 kB to
the end of the process. That is paid once for the most logs that were ever open, and not again by
topics that come and go; to look at everything again would take half a second.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

LOOK_S = 0.1
LOGS_AT_ONCE = 250
"""Whose objects a full collection looks through in some three milliseconds."""

Settle = Callable[[], None]
"""Has full collections leave out what lives now. A simulation has many nodes in one process, and no
such thing."""


class Settling:
    """When that is to be done; told how many logs are open."""

    def __init__(self, settle: Settle) -> None:
        self._settle = settle
        self._settled_at = 0

    def on_logs(self, count: int) -> None:
        if count >= self._settled_at + LOGS_AT_ONCE:
            self._settle()
            self._settled_at = count


async def settle_logs(settle: Settle, count: Callable[[], int]) -> None:
    """Until cancelled."""
    settling = Settling(settle)
    while True:
        await asyncio.sleep(LOOK_S)
        settling.on_logs(count())
