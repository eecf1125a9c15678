"""`seam.Disk` for one process of a host: costs, faults and the fence around the dead."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ...seam import Buffer, Disk, DiskLock, DiskLocked, File, SyncFailed
from .dice import stream
from .drive import DirectoryNode, DiskCall, DiskChange, Drive, FileNode
from .errors import SimKilled
from .virtual_threads import VirtualThreads

if TYPE_CHECKING:
    from .host import Host

SYSCALL_S = 1e-6
NAME_CHANGE_S = 10e-6
BYTES_PER_S = 2e9
"""Speed of copies to and from the page cache."""

SYNC_THREADS = 4
"""As many syncs side by side as `seam.RealDisk` has threads for them."""


class SimDisk:
    """The drive as one incarnation sees it. After its death every call raises `SimKilled`."""

    def __init__(self, drive: Drive, host: Host) -> None:
        self.drive = drive
        self.host = host
        self._loop = host.loop
        self._dice = stream(host.world.seed, f"disk:{host.name}:{host.incarnation}")
        self._threads = VirtualThreads(host.loop, SYNC_THREADS, self._dice)

    # Every call passes here

    def enter(
        self,
        kind: str,
        path: str,
        cost: float,
        *,
        position: int = 0,
        data: bytes = b"",
        size: int = 0,
    ) -> None:
        """Count, charge and trace a call before its effect; it may fail or be the last one."""
        self._fence()
        host = self.host
        host.spend(cost)
        host.world.trace.disk(host.world.now, host.number, kind, path, position, data, size)
        self.inject(kind, path, size)

    def inject(self, kind: str, path: str, size: int) -> None:
        """Let the drive's injector see the call; it may raise, or kill this process."""
        self.drive.calls += 1
        if self.drive.on_call is not None:
            self.drive.on_call(DiskCall(self.drive.calls, kind, path, size))
            self._fence()

    def _fence(self) -> None:
        if self._loop.dead:
            raise SimKilled

    def now_ms(self) -> int:
        return int(self.host.wall_time() * 1000)

    # seam.Disk

    def open(self, path: str, *, create: bool = False) -> File:
        creates = create and self.drive.find(path) is None
        self.enter("create" if creates else "open", path, NAME_CHANGE_S if creates else SYSCALL_S)
        node = self.drive.open_file(path, create=create)
        if creates:
            node.modified_ms = self.now_ms()
        return SimFile(self, path, node)

    def lock(self, path: str) -> DiskLock:
        self.enter("lock", path, SYSCALL_S)
        node = self.drive.open_file(path, create=True)
        if not self.drive.try_lock(node):
            raise DiskLocked(path)
        return _HeldLock(self.drive, node)

    def exists(self, path: str) -> bool:
        self.enter("exists", path, SYSCALL_S)
        return self.drive.find(path) is not None

    def is_dir(self, path: str) -> bool:
        self.enter("is_dir", path, SYSCALL_S)
        return isinstance(self.drive.find(path), DirectoryNode)

    def list(self, path: str) -> list[str]:
        self.enter("list", path, SYSCALL_S)
        return sorted(self.drive.get_directory(path).entries)

    def make_dirs(self, path: str) -> None:
        self.enter("make_dirs", path, NAME_CHANGE_S)
        self.drive.make_dirs(path)

    def rename(self, source: str, target: str) -> None:
        self.enter(f"rename {source} to", target, NAME_CHANGE_S)
        self.drive.rename(source, target)
        self.drive.changed(DiskChange(source, renamed=True))
        self.drive.changed(DiskChange(target, renamed=True))

    def remove(self, path: str) -> None:
        self.enter("remove", path, NAME_CHANGE_S)
        self.drive.remove(path)
        self.drive.changed(DiskChange(path, renamed=True))

    def remove_tree(self, path: str) -> None:
        self.enter("remove_tree", path, NAME_CHANGE_S)
        self.drive.remove_tree(path)
        self.drive.changed(DiskChange(path, renamed=True))

    async def sync_dir(self, path: str) -> None:
        self.enter("sync_dir", path, SYSCALL_S)
        marked = self.drive.mark_names()

        def effect() -> None:
            self.inject("sync_dir effect", path, 0)
            self.drive.flush_names(self.drive.get_directory(path), marked)

        await self.run_sync(path, effect)

    def free_bytes(self, path: str) -> int:
        self.enter("free_bytes", path, SYSCALL_S)
        self.drive.get(path)
        return self.drive.free_bytes()

    async def run_sync(self, path: str, effect: Callable[[], None]) -> None:
        """Wait for the device, have the effect at one instant, hear of it a moment later."""
        delay = self.drive.sync_latency_s * (0.5 + self._dice.random())
        try:
            await self._threads.submit(effect, delay=delay)
        except OSError as error:
            raise SyncFailed(f"sync of {path} failed: {error}") from error


class SimFile:
    """An open file of one process."""

    def __init__(self, disk: SimDisk, path: str, node: FileNode) -> None:
        self._disk = disk
        self._path = path
        self._node = node
        self._open = True

    @property
    def path(self) -> str:
        return self._path

    def append(self, parts: Sequence[Buffer]) -> int:
        start = len(self._node.cached)
        self._write("append", start, b"".join(parts))
        return start

    def write_at(self, position: int, data: Buffer) -> None:
        self._write("write_at", position, bytes(data))

    def _write(self, kind: str, position: int, data: bytes) -> None:
        self._enter(kind, position=position, data=data, size=len(data))
        growth = max(0, position + len(data) - len(self._node.cached))
        missing = growth - self._disk.drive.room_for(growth)
        # As the kernel does: what fits is written, then the error comes.
        fitting = data[: max(0, len(data) - missing)] if missing else data
        if fitting:
            self._node.write(position, fitting)
            self._disk.drive.changed(DiskChange(self._path, position, len(fitting)))
            self._node.modified_ms = self._disk.now_ms()
        if missing:
            raise self._error(errno.ENOSPC)

    def read_at(self, position: int, length: int) -> bytes:
        self._enter("read_at", position=position, size=length)
        return bytes(self._node.cached[position : position + length])

    def size(self) -> int:
        self._enter("size")
        return len(self._node.cached)

    def modified_ms(self) -> int:
        self._enter("modified_ms")
        return self._node.modified_ms

    def truncate(self, size: int) -> None:
        self._enter("truncate", size=size)
        self._node.resize(size)
        self._disk.drive.changed(DiskChange(self._path, size))
        self._node.modified_ms = self._disk.now_ms()

    def preallocate(self, size: int) -> None:
        self._enter("preallocate", size=size)
        growth = size - len(self._node.cached)
        if growth <= 0:
            return
        room = self._disk.drive.room_for(growth)
        self._node.resize(len(self._node.cached) + room)
        if room < growth:
            raise self._error(errno.ENOSPC)

    def map(self, length: int) -> memoryview:
        self._enter("map", size=length)
        if length > len(self._node.cached):
            raise ValueError(f"map of {length} bytes beyond the end of {self._path}")
        return memoryview(bytes(self._node.cached[:length]))

    async def sync(self) -> None:
        node = self._node
        mark = node.mark()
        # A closed descriptor is a failed sync too.
        try:
            self._enter("sync", size=mark)
        except OSError as error:
            raise SyncFailed(f"sync of {self._path} failed: {error}") from error

        def effect() -> None:
            try:
                self._disk.inject("sync effect", self._path, mark)
            except OSError:
                node.forget_to(mark)
                raise
            node.flush_to(mark)

        await self._disk.run_sync(self._path, effect)

    def close(self) -> None:
        self._open = False

    def _enter(self, kind: str, *, position: int = 0, data: bytes = b"", size: int = 0) -> None:
        if not self._open:
            raise self._error(errno.EBADF)
        moved = size if kind in ("append", "write_at", "read_at", "preallocate") else 0
        cost = SYSCALL_S + moved / BYTES_PER_S
        self._disk.enter(kind, self._path, cost, position=position, data=data, size=size)

    def _error(self, number: int) -> OSError:
        return OSError(number, os.strerror(number), self._path)


class _HeldLock:
    def __init__(self, drive: Drive, node: FileNode) -> None:
        self._drive = drive
        self._node = node
        self._held = True

    def release(self) -> None:
        if self._held:
            self._held = False
            self._drive.unlock(self._node)


_: Callable[[Drive, Host], Disk] = SimDisk
