"""A disk in memory that forgets what was not synced: just enough for the tests of this part."""

from __future__ import annotations

import errno
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from logboat.seam import Buffer, Disk, DiskLock, File

SECTOR = 512


class PowerLost(Exception):
    """Raised by every operation from the crash on."""


@dataclass
class Inode:
    """A file's bytes as read, as they are on the platter, and the writes in between."""

    content: bytearray = field(default_factory=bytearray)
    platter: bytearray = field(default_factory=bytearray)
    unsynced: list[tuple[int, bytes]] = field(default_factory=list)
    """(position, data); a negative position is a truncation to -1 - position."""


def _put(target: bytearray, position: int, data: bytes) -> None:
    if position < 0:
        size = -1 - position
        del target[size:]
        target.extend(bytes(size - len(target)))
        return
    target.extend(bytes(max(0, position - len(target))))
    target[position : position + len(data)] = data


class MemoryDisk:
    """Implements `seam.Disk`. `crash_at` counts every call that changes something, from 1."""

    def __init__(self) -> None:
        self.names: dict[str, Inode] = {}
        self.durable_names: dict[str, Inode] = {}
        self.name_changes: list[tuple[str, Inode | None]] = []
        self.operations = 0
        self.crash_at: int | None = None
        self.full = False

    def effect(self) -> None:
        self.operations += 1
        if self.crash_at is not None and self.operations >= self.crash_at:
            raise PowerLost(f"at operation {self.operations}")
        if self.full:
            raise OSError(errno.ENOSPC, "no space")

    def lose_power(self, rng: Random) -> None:
        """Keep any part of what was not synced, the last kept write perhaps torn."""
        kept_changes = rng.randint(0, len(self.name_changes))
        for path, inode in self.name_changes[:kept_changes]:
            if inode is None:
                self.durable_names.pop(path, None)
            else:
                self.durable_names[path] = inode
        for inode in self.durable_names.values():
            for position, data in inode.unsynced:
                fate = rng.random()
                if fate < 0.35:
                    continue
                if fate < 0.6 and position >= 0:
                    # Sectors reach the platter one by one and in any order.
                    for start in range(0, len(data), SECTOR):
                        if rng.random() < 0.5:
                            _put(inode.platter, position + start, data[start : start + SECTOR])
                    continue
                _put(inode.platter, position, data)
            inode.unsynced.clear()
            inode.content = bytearray(inode.platter)
        self.names = dict(self.durable_names)
        self.name_changes = []
        self.restart()

    def restart(self) -> None:
        """As after a mere kill of the process."""
        self.crash_at = None
        self.full = False
        self.operations = 0

    # seam.Disk

    def open(self, path: str, *, create: bool = False) -> File:
        if path not in self.names:
            if not create:
                raise FileNotFoundError(errno.ENOENT, "no such file", path)
            self.effect()
            self.names[path] = Inode()
            self.name_changes.append((path, self.names[path]))
        return MemoryFile(self, path, self.names[path])

    def lock(self, path: str) -> DiskLock:
        raise NotImplementedError

    def exists(self, path: str) -> bool:
        return path in self.names or self.is_dir(path)

    def is_dir(self, path: str) -> bool:
        return any(name.startswith(path + "/") for name in self.names)

    def list(self, path: str) -> list[str]:
        prefix = path + "/"
        return sorted(name.removeprefix(prefix) for name in self.names if name.startswith(prefix))

    def make_dirs(self, path: str) -> None: ...

    def rename(self, source: str, target: str) -> None:
        self.effect()
        inode = self.names.pop(source)
        self.names[target] = inode
        # One change: the new name appears and the old one goes, or neither.
        self.name_changes.append((target, inode))
        self.name_changes.append((source, None))

    def remove(self, path: str) -> None:
        self.effect()
        del self.names[path]
        self.name_changes.append((path, None))

    def remove_tree(self, path: str) -> None:
        for name in self.list(path):
            self.remove(f"{path}/{name}")

    async def sync_dir(self, path: str) -> None:
        self.effect()
        self.durable_names = dict(self.names)
        self.name_changes = []

    def free_bytes(self, path: str) -> int:
        return 1 << 40


class MemoryFile:
    def __init__(self, disk: MemoryDisk, path: str, inode: Inode) -> None:
        self._disk = disk
        self._path = path
        self._inode = inode

    @property
    def path(self) -> str:
        return self._path

    def append(self, parts: Sequence[Buffer]) -> int:
        start = self.size()
        self.write_at(start, b"".join(parts))
        return start

    def write_at(self, position: int, data: Buffer) -> None:
        self._disk.effect()
        self._change(position, bytes(data))

    def _change(self, position: int, data: bytes) -> None:
        _put(self._inode.content, position, data)
        self._inode.unsynced.append((position, data))

    def read_at(self, position: int, length: int) -> bytes:
        return bytes(self._inode.content[position : position + length])

    def size(self) -> int:
        return len(self._inode.content)

    def modified_ms(self) -> int:
        return 0

    def truncate(self, size: int) -> None:
        self._disk.effect()
        self._change(-1 - size, b"")

    def preallocate(self, size: int) -> None:
        self._disk.effect()
        if size > self.size():
            self._change(self.size(), bytes(size - self.size()))

    def map(self, length: int) -> memoryview:
        return memoryview(self.read_at(0, length))

    async def sync(self) -> None:
        self._disk.effect()
        for position, data in self._inode.unsynced:
            _put(self._inode.platter, position, data)
        self._inode.unsynced.clear()

    def close(self) -> None: ...


def flip_bit(disk: MemoryDisk, path: str, position: int) -> None:
    """Rot, on the platter and in memory."""
    inode = disk.names[path]
    inode.content[position] ^= 1
    inode.platter[position] ^= 1


_: type[Disk] = MemoryDisk
