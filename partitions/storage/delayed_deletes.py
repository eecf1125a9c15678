"""Segments that are no longer of the log: renamed at once, freed after file.delete.delay.ms.

The rename decides: from then on the segment is gone, also for a start after a crash, which removes
all that is still called `.deleted`. Freeing a large file takes long, so it is done beside the loop
(RULES F1), one file at a time.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable

from ...seam import Disk, TaskScope, offload
from .segment import DELETED, Segment

logger = logging.getLogger(__name__)

FREE_AGAIN_SECONDS = 5.0
"""After a disk would not free a file; those that wait behind it come first."""


class DelayedDeletes:
    """Of one log. Bounded by the number of its segments; what is left at the end of `scope` is
    removed at the next start."""

    def __init__(self, disk: Disk, scope: TaskScope, delay_ms: Callable[[], int]) -> None:
        self._disk = disk
        self._scope = scope
        self._delay_ms = delay_ms
        self._condemned: deque[tuple[float, Segment]] = deque()
        """(loop time when it is freed, segment), in the order in which it is tried."""
        self._task: asyncio.Task[None] | None = None

    def condemn(self, segment: Segment) -> None:
        """The segment is no longer of the log; durable after a sync of the directory.

        Raises OSError when the disk refuses even that: then it still is, but for files that are
        gone. It may be asked again.
        """
        try:
            segment.change_state(self._disk, DELETED)
        except OSError as error:
            # On a full disk there may be no room for the longer name.
            logger.warning("%s is removed at once: %s", segment.log_path, error)
            segment.remove(self._disk)
            return
        due = asyncio.get_running_loop().time() + self._delay_ms() / 1000
        self._condemned.append((due, segment))
        if self._task is None:
            self._task = self._scope.spawn(self._free(), name=f"free {segment.directory}")

    async def _free(self) -> None:
        loop = asyncio.get_running_loop()
        while self._condemned:
            due, segment = self._condemned[0]
            if (left := due - loop.time()) > 0:
                await asyncio.sleep(left)
            segment.forget_files()
            freed = True
            for path in segment.paths():
                freed &= await self._remove(path)
            self._condemned.popleft()
            if not freed:
                self._condemned.append((loop.time() + FREE_AGAIN_SECONDS, segment))
        self._task = None

    async def _remove(self, path: str) -> bool:
        try:
            if self._disk.exists(path):
                await offload(lambda: self._disk.remove(path))
        except FileNotFoundError:
            pass  # A later segment of the same base was condemned, and freed, under this name.
        except OSError as error:
            logger.warning("%s is not freed yet: %s", path, error)
            return False
        return True
