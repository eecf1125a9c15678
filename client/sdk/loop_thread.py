"""A private event loop in a thread, for programs that have none."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Coroutine, Iterator
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from typing import Any, Generic, TypeVar

from .errors import Closed

T = TypeVar("T")

STOP_SECONDS = 5.0


class LoopThread:
    """Between `start` and `stop`. Who waits here hears Ctrl-C: what it waited for is cancelled."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._stopped: asyncio.Event | None = None

    def start(self) -> None:
        started = threading.Event()

        def run() -> None:
            with asyncio.Runner() as runner:
                self._loop = runner.get_loop()
                self._loop.call_soon(started.set)
                with suppress(asyncio.CancelledError):
                    runner.run(self._until_stopped())

        self._thread = threading.Thread(target=run, name="logboat client", daemon=True)
        self._thread.start()
        started.wait()

    async def _until_stopped(self) -> None:
        self._stopped = asyncio.Event()
        await self._stopped.wait()

    def stop(self) -> None:
        loop, self._loop = self._loop, None
        if loop is not None and self._thread is not None:
            loop.call_soon_threadsafe(self._set_stopped)
            self._thread.join(STOP_SECONDS)

    def _set_stopped(self) -> None:
        if self._stopped is not None:
            self._stopped.set()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """What `work` returns or raises. Raises Closed."""
        if self._loop is None:
            work.close()
            raise Closed("the client is not open", hint="use it inside `with SyncClient(...)`")
        call = _Call(work, self._loop)
        try:
            call.begin()
            return call.result.result()
        except BaseException:
            call.cancel()
            raise

    def iterate(self, found: AsyncIterator[T]) -> Iterator[T]:
        """Its items, one by one; leaving the loop early ends it, too."""

        free = asyncio.Lock()
        """Whoever was interrupted in a step ends it before the iterator is closed."""

        async def step() -> T:
            async with free:
                return await anext(found)

        async def end() -> None:
            close = getattr(found, "aclose", None)
            if close is not None:
                async with free:
                    await close()

        try:
            while True:
                try:
                    item = self.run(step())
                except StopAsyncIteration:
                    return
                yield item
        finally:
            if self._loop is not None:
                self.run(end())


class _Call(Generic[T]):
    """Some work of the loop's, asked for by another thread. Unlike that of
    asyncio.run_coroutine_threadsafe it can be cancelled from before it begins: Ctrl-C is heard at
    any moment of the asker, also when the loop has the work and the asker does not know it yet."""

    def __init__(self, work: Coroutine[Any, Any, T], loop: asyncio.AbstractEventLoop) -> None:
        self._work = work
        self._loop = loop
        self._task: asyncio.Task[T] | None = None
        self._cancelled = False
        self.result: Future[T] = Future()

    def begin(self) -> None:
        self._loop.call_soon_threadsafe(self._begin)

    def cancel(self) -> None:
        """Nothing happens to what is done."""
        self._cancelled = True
        try:
            self._loop.call_soon_threadsafe(self._cancel)
        except RuntimeError:
            self._work.close()  # The loop has ended.

    # On the loop.

    def _begin(self) -> None:
        if not self._cancelled:
            self._task = self._loop.create_task(self._work)
            self._task.add_done_callback(self._on_done)

    def _cancel(self) -> None:
        if self._task is None:
            self._work.close()
        else:
            self._task.cancel()

    def _on_done(self, task: asyncio.Task[T]) -> None:
        if task.cancelled():
            self.result.set_exception(CancelledError())
        elif (error := task.exception()) is not None:
            self.result.set_exception(error)
        else:
            self.result.set_result(task.result())
