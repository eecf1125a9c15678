"""The machine's disk. Syncs run side by side in a small pool; everything else in the caller."""

from __future__ import annotations

import asyncio
import errno
import fcntl
import mmap
import os
import shutil
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from .disk import Buffer, Disk, DiskLock, DiskLocked, File
from .fatal import Fatal, SyncFailed

SYNC_THREADS = 4
"""Logs syncing side by side (RULES C5). More threads only queue in the kernel's journal."""

SCARCITY = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})
"""Why a directory may not open although it is there."""

DESCRIPTOR_WAIT_SECONDS = 5.0
DESCRIPTOR_RETRY_SECONDS = 0.05

MAX_VECTORS = 1024
"""IOV_MAX on Linux and macOS: one writev takes no more buffers than this."""


class RealFile:
    """A file descriptor with a position of its own for appends."""

    def __init__(self, path: str, fd: int, pool: ThreadPoolExecutor) -> None:
        self._path = path
        self._fd = fd
        self._pool = pool
        # A descriptor closed under a running sync could be reused by another file: the sync
        # would then promise durability for the wrong one. The last of both closes it.
        self._syncs_running = 0
        self._close_wanted = False

    @property
    def path(self) -> str:
        return self._path

    def append(self, parts: Sequence[Buffer]) -> int:
        start = self.size()
        position = start
        for first in range(0, len(parts), MAX_VECTORS):
            position += self._write_vectors(parts[first : first + MAX_VECTORS], position)
        return start

    def _write_vectors(self, parts: Sequence[Buffer], position: int) -> int:
        wanted = sum(len(part) for part in parts)
        written = os.pwritev(self._fd, parts, position)
        if written < wanted:
            # A short write is legal: write the rest plainly, so that ENOSPC surfaces as itself.
            rest = memoryview(b"".join(parts))[written:]
            while rest:
                count = os.pwrite(self._fd, rest, position + written)
                if count == 0:
                    raise OSError(errno.EIO, "write made no progress", self._path)
                written += count
                rest = rest[count:]
        return written

    def write_at(self, position: int, data: Buffer) -> None:
        rest = memoryview(data)
        while rest:
            count = os.pwrite(self._fd, rest, position)
            if count == 0:
                raise OSError(errno.EIO, "write made no progress", self._path)
            position += count
            rest = rest[count:]

    def read_at(self, position: int, length: int) -> bytes:
        data = os.pread(self._fd, length, position)
        if len(data) == length or not data:
            return data
        pieces = [data]
        got = len(data)
        while got < length:
            piece = os.pread(self._fd, length - got, position + got)
            if not piece:
                break
            pieces.append(piece)
            got += len(piece)
        return b"".join(pieces)

    def size(self) -> int:
        return os.fstat(self._fd).st_size

    def modified_ms(self) -> int:
        return os.fstat(self._fd).st_mtime_ns // 1_000_000

    def truncate(self, size: int) -> None:
        os.ftruncate(self._fd, size)

    def preallocate(self, size: int) -> None:
        start = self.size()
        zeros = bytes(min(1 << 20, max(0, size - start)))
        while start < size:
            # Written, not fallocate'd: extents marked unwritten would cost a journal commit at
            # the first sync of each page, which is what preallocation is there to avoid (E6).
            count = os.pwrite(self._fd, zeros[: size - start], start)
            start += count

    def map(self, length: int) -> memoryview:
        if length == 0:
            return memoryview(b"")
        return memoryview(mmap.mmap(self._fd, length, access=mmap.ACCESS_READ))

    async def sync(self) -> None:
        if self._fd < 0:
            raise Fatal(f"sync of {self._path} after it was closed")
        self._syncs_running += 1
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[None] = loop.create_future()
        # Not `run_in_executor`: its chain of futures takes two more turns of the loop to wake the
        # waiter, and under load the device stands idle for that long after each sync.
        self._pool.submit(self._sync_in_thread, self._fd, loop, ended)
        try:
            await ended
        except OSError as error:
            raise SyncFailed(f"sync of {self._path} failed: {error}") from error

    def _sync_in_thread(
        self, fd: int, loop: asyncio.AbstractEventLoop, ended: asyncio.Future[None]
    ) -> None:
        failure = None
        try:
            os.fdatasync(fd)
        except OSError as error:
            failure = error
        loop.call_soon_threadsafe(self._on_sync_ended, ended, failure)

    def _on_sync_ended(self, ended: asyncio.Future[None], failure: OSError | None) -> None:
        self._syncs_running -= 1
        if self._close_wanted:
            self.close()
        if ended.done():
            return  # Nobody waits any more.
        if failure is None:
            ended.set_result(None)
        else:
            ended.set_exception(failure)

    def close(self) -> None:
        if self._syncs_running:
            self._close_wanted = True
        elif self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


class _HeldLock:
    def __init__(self, fd: int) -> None:
        self._fd = fd

    def release(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


class RealDisk:
    """`Disk` over the operating system. One per process; `close` ends its threads."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(SYNC_THREADS, thread_name_prefix="sync")

    def open(self, path: str, *, create: bool = False) -> File:
        flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0)
        return RealFile(path, os.open(path, flags, 0o644), self._pool)

    def lock(self, path: str) -> DiskLock:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            raise DiskLocked(path) from None
        except OSError:
            os.close(fd)
            raise
        return _HeldLock(fd)

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def is_dir(self, path: str) -> bool:
        return os.path.isdir(path)

    def list(self, path: str) -> list[str]:
        return sorted(os.listdir(path))

    def make_dirs(self, path: str) -> None:
        os.makedirs(path, exist_ok=True)

    def rename(self, source: str, target: str) -> None:
        os.replace(source, target)

    def remove(self, path: str) -> None:
        os.unlink(path)

    def remove_tree(self, path: str) -> None:
        try:
            shutil.rmtree(path)
        except FileNotFoundError:
            return

    async def sync_dir(self, path: str) -> None:
        fd = await _open_directory(path)
        loop = asyncio.get_running_loop()
        await _raise_fatal(path, loop.run_in_executor(self._pool, _fsync_and_close, fd))

    def free_bytes(self, path: str) -> int:
        stat = os.statvfs(path)
        return stat.f_bavail * stat.f_frsize

    def close(self) -> None:
        self._pool.shutdown(wait=True)


async def _open_directory(path: str) -> int:
    """To open is not to sync: without a descriptor nothing was tried, so nothing has failed. Those
    that are opened in passing are soon free again. OSError when none is after a while."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + DESCRIPTOR_WAIT_SECONDS
    while True:
        try:
            return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            if error.errno not in SCARCITY:
                raise SyncFailed(f"sync of {path} failed: {error}") from error
            if loop.time() >= deadline:
                raise
        await asyncio.sleep(DESCRIPTOR_RETRY_SECONDS)


def _fsync_and_close(fd: int) -> None:
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


async def _raise_fatal(path: str, sync: asyncio.Future[None]) -> None:
    try:
        # Shielded: a cancelled waiter must not make the done-callback run before the thread ends.
        await asyncio.shield(sync)
    except OSError as error:
        raise SyncFailed(f"sync of {path} failed: {error}") from error


_: Callable[[], Disk] = RealDisk
