"""Every task has an owner that awaits it."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from .fatal import OnFatal


class TaskScope:
    """Owns background tasks: an unexpected exception is fatal, `close` cancels and awaits them all.

    Unlike `asyncio.TaskGroup` it lives as long as the object that owns it, not as long as a block.
    """

    def __init__(self, on_fatal: OnFatal) -> None:
        self._on_fatal = on_fatal
        # A dict, not a set: cancellation order must not depend on addresses.
        self._tasks: dict[asyncio.Task[Any], None] = {}
        self._closed = False

    def spawn(self, work: Coroutine[Any, Any, Any], *, name: str) -> asyncio.Task[Any]:
        """Start `work`; after `close` it is refused with RuntimeError."""
        if self._closed:
            work.close()
            raise RuntimeError(f"task {name!r} started after its owner closed")
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks[task] = None
        task.add_done_callback(self._on_done)
        return task

    def _on_done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.pop(task, None)
        if task.cancelled():
            return
        error = task.exception()
        if error is not None:
            self._on_fatal(error)

    async def close(self) -> None:
        """Cancel all tasks and wait until each has ended. May be called twice."""
        self._closed = True
        current = asyncio.current_task()
        tasks = [task for task in self._tasks if task is not current]
        for task in tasks:
            task.cancel()
        for task in tasks:
            await asyncio.wait([task])
