"""Jobs that must not overtake each other, per key; different keys run side by side."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Hashable
from typing import Any

from ..seam import TaskScope

Job = Callable[[], Coroutine[Any, Any, None]]

STARTED_AT_ONCE = 10
"""Keys whose first job begins in one turn of the loop (RULES F1)."""


class OrderedWork:
    """A queue per key, worked off by one task per key. A job's exception is fatal."""

    def __init__(self, scope: TaskScope) -> None:
        self._scope = scope
        self._queues: dict[Hashable, deque[Job]] = {}
        self._unstarted: deque[Hashable] = deque()
        """Of these keys, those whose task is still to come."""
        self._idle: list[asyncio.Future[None]] = []

    @property
    def under_way(self) -> int:
        """Keys that have their task."""
        return len(self._queues) - len(self._unstarted)

    def enqueue(self, key: Hashable, job: Job) -> None:
        queue = self._queues.get(key)
        if queue is None:
            self._queues[key] = deque([job])
            if not self._unstarted:
                self._scope.spawn(self._start(), name="start work")
            self._unstarted.append(key)
        else:
            queue.append(job)

    async def _start(self) -> None:
        while self._unstarted:
            for _ in range(min(STARTED_AT_ONCE, len(self._unstarted))):
                key = self._unstarted.popleft()
                self._scope.spawn(self._work_off(key), name=f"work on {key}")
            await asyncio.sleep(0)

    async def _work_off(self, key: Hashable) -> None:
        queue = self._queues[key]
        try:
            while queue:
                await queue.popleft()()
        finally:
            del self._queues[key]
            if not self._queues:
                idle, self._idle = self._idle, []
                for future in idle:
                    if not future.done():
                        future.set_result(None)

    async def wait_idle(self) -> None:
        """Return when no job is queued or running."""
        while self._queues:
            future = asyncio.get_running_loop().create_future()
            self._idle.append(future)
            await future
