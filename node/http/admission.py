"""How much work the HTTP API takes on at once: what does not fit is refused, never queued."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager

from .errors import ApiError

MAX_REQUESTS = 256
"""Requests in work, except health checks and those that stay open."""

MAX_BYTES = 64 << 20
"""Request bodies being read and record batches being answered, together."""


MAX_STREAMS = 256
"""Requests that stay open to write records."""

MAX_STREAM_BYTES = 64 << 20
"""Read from all of them together and not answered yet; further reading waits."""

MAX_TAILS = 1_000
"""Requests that stay open to be told of new records."""


class Room:
    """Bytes that many share and wait for, first come first served. Whoever holds some gives them
    back in bounded time, whatever others do."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._used = 0
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    @property
    def used(self) -> int:
        return self._used

    @asynccontextmanager
    async def taken(self, size: int) -> AsyncIterator[None]:
        await self.take(size)
        try:
            yield
        finally:
            self.give_back(size)

    async def take(self, size: int) -> None:
        """More than everything is let in alone: it could never be had otherwise."""
        if not self._waiting and self._fits(size):
            self._used += size
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        entry = (size, turn)
        self._waiting.append(entry)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.give_back(size)
            else:
                self._waiting.remove(entry)
                self._admit()
            raise

    def give_back(self, size: int) -> None:
        self._used -= size
        self._admit()

    def _fits(self, size: int) -> bool:
        return not self._used or self._used + size <= self._limit

    def _admit(self) -> None:
        while self._waiting and self._fits(self._waiting[0][0]):
            size, turn = self._waiting.popleft()
            self._used += size
            turn.set_result(None)


class Lease:
    """A request's place among those in work."""

    def __init__(self, give_back: Callable[[], None]) -> None:
        self._give_back: Callable[[], None] | None = give_back

    def release(self) -> None:
        """The request stays open and is counted elsewhere from now on. May be called twice."""
        give_back, self._give_back = self._give_back, None
        if give_back is not None:
            give_back()


class Admission:
    """Counts requests and bytes in work."""

    def __init__(self, max_requests: int = MAX_REQUESTS, max_bytes: int = MAX_BYTES) -> None:
        self._max_requests = max_requests
        self._max_bytes = max_bytes
        self._requests = 0
        self._bytes = 0
        self.streams = 0
        self.tails = 0
        self.stream_bytes = Room(MAX_STREAM_BYTES)

    @contextmanager
    def stream(self, lease: Lease) -> Iterator[None]:
        """Raises ApiError 503 when as many as allowed write. `lease` is given back."""
        if self.streams >= MAX_STREAMS:
            raise _busy(f"{self.streams} requests write")
        self.streams += 1
        lease.release()
        try:
            yield
        finally:
            self.streams -= 1

    @contextmanager
    def tail(self, lease: Lease) -> Iterator[None]:
        """Raises ApiError 503 when as many as allowed follow topics. `lease` is given back."""
        if self.tails >= MAX_TAILS:
            raise _busy(f"{self.tails} readers follow topics")
        self.tails += 1
        lease.release()
        try:
            yield
        finally:
            self.tails -= 1

    @contextmanager
    def request(self) -> Iterator[Lease]:
        """Raises ApiError 503 when as many requests as allowed are in work."""
        if self._requests >= self._max_requests:
            raise _busy(f"{self._requests} requests are in work")
        self._requests += 1
        lease = Lease(self._on_done)
        try:
            yield lease
        finally:
            lease.release()

    def _on_done(self) -> None:
        self._requests -= 1

    @contextmanager
    def memory(self, size_bytes: int) -> Iterator[None]:
        """Raises ApiError 503 when that much memory is not to be had now. A single request larger
        than everything is let in alone: refusing it for ever would be no answer."""
        if self._bytes and self._bytes + size_bytes > self._max_bytes:
            raise _busy(f"{self._bytes} bytes are in work")
        self._bytes += size_bytes
        try:
            yield
        finally:
            self._bytes -= size_bytes


def _busy(what: str) -> ApiError:
    return ApiError(503, f"the node is busy: {what}", retriable=True, hint="try again in a second")
