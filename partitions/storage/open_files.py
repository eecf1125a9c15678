"""A bounded set of open files: more partitions than descriptors (cases O05)."""

from __future__ import annotations

import asyncio
from collections import OrderedDict

from ...seam import Disk, File

ROUNDS_AT_ONCE = 32
"""Logs synced side by side (RULES C5). Each holds a descriptor or two; the disk works on fewer."""


MOST_OPEN_FILES = 512
"""Of logs; the rest of the usual 1,024 descriptors is left to connections."""


def open_files_within(descriptors: int) -> int:
    """How many files the logs keep open in a process that may have `descriptors`: half, so
    that connections, the quorum's journal and files opened in passing find room."""
    return max(1, min(MOST_OPEN_FILES, descriptors // 2))


def connections_within(descriptors: int) -> int:
    """How many clients may be connected to such a process: with more, they would take from the
    logs the descriptors without which no segment can be begun (case O05)."""
    kept_free = min(MOST_KEPT_FREE, descriptors // 4)
    return max(1, descriptors - open_files_within(descriptors) - kept_free)


MOST_KEPT_FREE = 64
"""For channels between nodes, HTTP, the quorum's journal, and files opened in passing."""


class OpenFiles:
    """Opens files when first used and closes the least recently used above `capacity`.

    Shared by the logs of one data directory. A file that is being synced stays open.
    """

    def __init__(self, disk: Disk, capacity: int = MOST_OPEN_FILES) -> None:
        self._disk = disk
        self._capacity = capacity
        self._files: OrderedDict[str, File] = OrderedDict()
        self._syncs_running: dict[str, int] = {}
        self.sync_turns = asyncio.Semaphore(ROUNDS_AT_ONCE)
        """To be held while a log syncs: what is being synced stays open, and a thousand dirty logs
        at once would need a thousand descriptors."""

    def get(self, path: str) -> File:
        """The open file at `path`, to be used before the next call of this object."""
        file = self._files.get(path)
        if file is not None:
            self._files.move_to_end(path)
            return file
        return self._keep(path, self._disk.open(path))

    def create(self, path: str) -> File:
        """The file at `path`, made or emptied."""
        self.forget(path)
        file = self._disk.open(path, create=True)
        if file.size() > 0:
            file.truncate(0)
        return self._keep(path, file)

    def _keep(self, path: str, file: File) -> File:
        self._files[path] = file
        if len(self._files) > self._capacity:
            self._close_oldest(but=path)
        return file

    def _close_oldest(self, *, but: str) -> None:
        for path in self._files:
            if path != but and path not in self._syncs_running:
                self._files.pop(path).close()
                return

    async def sync(self, path: str) -> None:
        """Everything written to `path` before this call is on the device when it returns."""
        file = self.get(path)
        self._syncs_running[path] = self._syncs_running.get(path, 0) + 1
        try:
            await file.sync()
        finally:
            left = self._syncs_running[path] - 1
            if left:
                self._syncs_running[path] = left
            else:
                del self._syncs_running[path]

    def forget(self, path: str) -> None:
        """Close `path` if it is open: before it is renamed or removed."""
        file = self._files.pop(path, None)
        if file is not None:
            file.close()

    def close(self) -> None:
        for file in self._files.values():
            file.close()
        self._files.clear()
