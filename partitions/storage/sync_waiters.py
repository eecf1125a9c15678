"""Who waits until a log is synced as far as an offset."""

from __future__ import annotations

import asyncio


class SyncWaiters:
    """Few at a time: the follower that is about to ask on, a test."""

    def __init__(self) -> None:
        self._waiting: dict[asyncio.Future[None], int] = {}

    async def wait(self, offset: int) -> None:
        """Until `reached(offset)`; raises what `fail` is given."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[waiter] = offset
        try:
            await waiter
        finally:
            del self._waiting[waiter]

    def reached(self, synced_offset: int) -> None:
        for waiter, offset in self._waiting.items():
            if offset <= synced_offset and not waiter.done():
                waiter.set_result(None)

    def fail(self, error: Exception, *, above: int) -> None:
        """What lies above that offset will not be synced."""
        for waiter, offset in self._waiting.items():
            if offset > above and not waiter.done():
                waiter.set_exception(error)
