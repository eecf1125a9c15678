"""The disk as the parts see it.

Calls that only touch the page cache are plain functions; what waits for the device (`sync`,
`sync_dir`) is awaited. A sync promises exactly what was written *before the call began*
(RULES C5, E2). A failed sync raises `Fatal` and is never retried (RULES C4): after it, nothing
that the kernel still holds can be trusted.

Paths are strings, relative ones below the process's working directory (in simulation: below the
host's own root). All other failures are `OSError` with the usual `errno`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

Buffer = bytes | bytearray | memoryview


class DiskLocked(Exception):
    """Another living process holds the lock on this directory."""


class DiskLock(Protocol):
    def release(self) -> None: ...


class File(Protocol):
    """An open file. Positions and lengths are bytes."""

    @property
    def path(self) -> str: ...

    def append(self, parts: Sequence[Buffer]) -> int:
        """Write all parts at the end as one vectored write and return where the first byte went.

        Raises OSError when it could not write everything; some bytes may then be there (short
        write on a full disk), and the caller truncates back to the returned-before size.
        """
        ...

    def write_at(self, position: int, data: Buffer) -> None: ...

    def read_at(self, position: int, length: int) -> bytes:
        """Up to `length` bytes; fewer only at the end of the file."""
        ...

    def size(self) -> int: ...

    def modified_ms(self) -> int:
        """Wall time of the last change of its content (or its making), in ms since the epoch."""
        ...

    def truncate(self, size: int) -> None: ...

    def preallocate(self, size: int) -> None:
        """Grow the file to `size` bytes of zeros that are really allocated (RULES E6)."""
        ...

    def map(self, length: int) -> memoryview:
        """A read-only view of the first `length` bytes; only of files never truncated again.

        The view stays readable after `close` and `remove` for as long as it is referenced.
        """
        ...

    async def sync(self) -> None:
        """Everything written before this call began is on the device when it returns."""
        ...

    def close(self) -> None: ...


class Disk(Protocol):
    def open(self, path: str, *, create: bool = False) -> File:
        """Open for reading and writing. FileNotFoundError unless it exists or `create` is set."""
        ...

    def lock(self, path: str) -> DiskLock:
        """Take the exclusive lock file `path`, or raise DiskLocked. It dies with the process."""
        ...

    def exists(self, path: str) -> bool: ...

    def is_dir(self, path: str) -> bool: ...

    def list(self, path: str) -> list[str]:
        """Names in the directory, sorted."""
        ...

    def make_dirs(self, path: str) -> None: ...

    def rename(self, source: str, target: str) -> None:
        """Atomic replacement, of a file or a directory. Durable after `sync_dir` of the parent."""
        ...

    def remove(self, path: str) -> None: ...

    def remove_tree(self, path: str) -> None:
        """Remove a directory and what it holds; nothing happens when it is not there."""
        ...

    async def sync_dir(self, path: str) -> None:
        """Every name changed in the directory before this call is on the device when it returns.

        OSError: it could not be opened for want of descriptors or memory. Nothing was synced and
        nothing failed, so it may be asked again; a failed sync is Fatal as for a file.
        """
        ...

    def free_bytes(self, path: str) -> int: ...


def read_file(disk: Disk, path: str) -> bytes:
    """The whole content of a small file."""
    file = disk.open(path)
    try:
        return file.read_at(0, file.size())
    finally:
        file.close()


async def write_file_atomically(disk: Disk, path: str, data: Buffer) -> None:
    """Replace a small file so that a crash leaves the old or the new content, never a mixture.
    Content and name are durable when this returns."""
    await replace_file(disk, path, data)
    await disk.sync_dir(path.rpartition("/")[0] or ".")


async def replace_file(disk: Disk, path: str, data: Buffer) -> None:
    """As `write_file_atomically`, but whether a crash leaves the old or the new content is open
    until the caller has synced the directory: one sync may cover many names."""
    temporary = path + ".tmp"
    file = disk.open(temporary, create=True)
    try:
        file.truncate(0)
        file.append([data])
        await file.sync()
    finally:
        file.close()
    disk.rename(temporary, path)
