"""Threads of a host: work that goes on beside its loop, on virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from .errors import SimKilled

if TYPE_CHECKING:
    from random import Random

    from .loop import HostLoop

T = TypeVar("T")

HANDOVER_S = 10e-6
"""Longest time between the end of the work and the loop hearing of it."""


class VirtualThreads:
    """A pool of `count` threads; each job waits, has its effect at one instant, then reports.

    A crash can thus fall before the effect, or between the effect and the moment the loop hears
    of it. The function itself is atomic, which holds only for jobs as `offload` asks for them: at
    most one disk action and no state shared with the loop.
    """

    def __init__(self, loop: HostLoop, count: int, rng: Random) -> None:
        self._loop = loop
        self._rng = rng
        self._free_at = [0.0] * count

    def submit(self, function: Callable[[], T], *, delay: float) -> asyncio.Future[T]:
        """Run `function` after `delay` seconds on the next free thread."""
        loop = self._loop
        world = loop.world
        future: asyncio.Future[T] = loop.create_future()
        thread = min(range(len(self._free_at)), key=self._free_at.__getitem__)
        begin = max(world.now + loop.spent, self._free_at[thread])
        self._free_at[thread] = begin + delay
        world.at_time(begin + delay, self._run, thread, function, future)
        return future

    def _run(self, thread: int, function: Callable[[], T], future: asyncio.Future[T]) -> None:
        loop = self._loop
        if loop.dead:
            return
        if loop.host.paused:
            # SIGSTOP stops every thread of the process.
            loop.host.when_resumed(lambda: self._run(thread, function, future))
            return
        host = loop.host
        host.thread_spent = 0.0
        result: T | None = None
        error: BaseException | None = None
        try:
            result = function()
        except SimKilled:
            return
        except BaseException as raised:
            error = raised
        ended = loop.world.now + host.thread_spent
        self._free_at[thread] = max(self._free_at[thread], ended)
        reported = ended + self._rng.random() * HANDOVER_S
        loop.world.at_time(reported, loop.post, _deliver, future, result, error)


def _deliver(
    future: asyncio.Future[T | None], result: T | None, error: BaseException | None
) -> None:
    if future.done():
        return
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(result)
