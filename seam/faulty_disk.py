"""A disk that is full on purpose, while the switches say so.

As a real one does, it refuses what needs a block that is not there yet: files that grow beyond the
last block they have, preallocation, new directories. What was allocated before can be written anew,
names can change, files can be removed, and a sync promises what it always did.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence

from .disk import Buffer, Disk, DiskLock, File
from .fault_switches import FaultSwitches

BLOCK_BYTES = 4096


class FaultyFile:
    def __init__(self, file: File, switches: FaultSwitches) -> None:
        self._file = file
        self._switches = switches

    @property
    def path(self) -> str:
        return self._file.path

    def append(self, parts: Sequence[Buffer]) -> int:
        start = self._file.size()
        room = self._room(start, sum(len(part) for part in parts))
        if room is None:
            return self._file.append(parts)
        self._file.append([b"".join(parts)[:room]])
        raise no_space(self.path)

    def write_at(self, position: int, data: Buffer) -> None:
        room = self._room(position, len(data))
        if room is None:
            self._file.write_at(position, data)
            return
        self._file.write_at(position, memoryview(data)[:room])
        raise no_space(self.path)

    def _room(self, position: int, length: int) -> int | None:
        """How many of these bytes can be written; None when all can."""
        if not self._switches.disk_is_full:
            return None
        allocated = -(-self._file.size() // BLOCK_BYTES) * BLOCK_BYTES
        room = max(0, allocated - position)
        return None if length <= room else room

    def read_at(self, position: int, length: int) -> bytes:
        return self._file.read_at(position, length)

    def size(self) -> int:
        return self._file.size()

    def modified_ms(self) -> int:
        return self._file.modified_ms()

    def truncate(self, size: int) -> None:
        self._file.truncate(size)

    def preallocate(self, size: int) -> None:
        if self._room(0, size) is not None:
            raise no_space(self.path)
        self._file.preallocate(size)

    def map(self, length: int) -> memoryview:
        return self._file.map(length)

    async def sync(self) -> None:
        await self._file.sync()

    def close(self) -> None:
        self._file.close()


class FaultyDisk:
    """`disk`, of which nothing is left while it is full."""

    def __init__(self, disk: Disk, switches: FaultSwitches) -> None:
        self._disk = disk
        self._switches = switches

    def open(self, path: str, *, create: bool = False) -> File:
        return FaultyFile(self._disk.open(path, create=create), self._switches)

    def lock(self, path: str) -> DiskLock:
        return self._disk.lock(path)

    def exists(self, path: str) -> bool:
        return self._disk.exists(path)

    def is_dir(self, path: str) -> bool:
        return self._disk.is_dir(path)

    def list(self, path: str) -> list[str]:
        return self._disk.list(path)

    def make_dirs(self, path: str) -> None:
        if self._switches.disk_is_full and not self._disk.is_dir(path):
            raise no_space(path)
        self._disk.make_dirs(path)

    def rename(self, source: str, target: str) -> None:
        self._disk.rename(source, target)

    def remove(self, path: str) -> None:
        self._disk.remove(path)

    def remove_tree(self, path: str) -> None:
        self._disk.remove_tree(path)

    async def sync_dir(self, path: str) -> None:
        await self._disk.sync_dir(path)

    def free_bytes(self, path: str) -> int:
        return 0 if self._switches.disk_is_full else self._disk.free_bytes(path)


def no_space(path: str) -> OSError:
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
