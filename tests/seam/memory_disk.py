"""A small disk in memory that can lose power: only what was synced is sure to survive.

Two pictures of everything: what the process sees, and what would be found after a loss of power.
File content becomes durable by `sync`, names by `sync_dir`. `crash_at` stops the process (raises
`Crashed`) before the n-th change; `power_loss` then keeps, of each file's unsynced writes and each
directory's unsynced changes, a random part in the given mode.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Literal

from logboat.seam import Buffer, DiskLocked

Loss = Literal["none", "prefix", "any", "all"]
"""How much of what was not synced survives: nothing, a prefix, a subset (torn), everything."""

SECTOR = 512
"""Sectors of one write reach the platter one by one and in any order."""


class Crashed(BaseException):
    """The process ended here."""


@dataclass(eq=False)
class Inode:
    data: bytearray = field(default_factory=bytearray)
    durable: bytearray = field(default_factory=bytearray)
    pending: list[tuple[int, bytes | None]] = field(default_factory=list)
    """(position, bytes) of a write or (size, None) of a truncation, in order."""
    modified_ms: int = 0


@dataclass(eq=False)
class Folder:
    names: dict[str, Inode | Folder] = field(default_factory=dict)
    durable: dict[str, Inode | Folder] = field(default_factory=dict)
    pending: list[dict[str, Inode | Folder | None]] = field(default_factory=list)
    """Each change as name -> node, None where the name goes."""


def _apply(data: bytearray, position: int, piece: bytes | None) -> None:
    if piece is None:
        if position < len(data):
            del data[position:]
        else:
            data.extend(bytes(position - len(data)))
        return
    if position > len(data):
        data.extend(bytes(position - len(data)))
    data[position : position + len(piece)] = piece


class MemoryFile:
    def __init__(self, disk: MemoryDisk, path: str, inode: Inode) -> None:
        self._disk = disk
        self._path = path
        self._inode = inode
        self._closed = False
        self._life = disk.life

    @property
    def path(self) -> str:
        return self._path

    def _live(self) -> Inode:
        if self._life != self._disk.life:
            raise Crashed(f"{self._path} belongs to an earlier process")
        if self._closed:
            raise ValueError(f"{self._path} is closed")
        return self._inode

    def _write(self, position: int, data: bytes) -> None:
        inode = self._live()
        inode.modified_ms = self._disk.now_ms
        room = self._disk.room()
        if room is not None and len(data) > room:
            _apply(inode.data, position, data[:room])
            inode.pending.append((position, data[:room]))
            raise OSError(errno.ENOSPC, "no space", self._path)
        _apply(inode.data, position, data)
        inode.pending.append((position, data))

    def append(self, parts: Sequence[Buffer]) -> int:
        self._live()
        self._disk.step("append", self._path)
        start = len(self._live().data)
        self._write(start, b"".join(parts))
        return start

    def write_at(self, position: int, data: Buffer) -> None:
        self._live()
        self._disk.step("write_at", self._path)
        self._write(position, bytes(data))

    def read_at(self, position: int, length: int) -> bytes:
        return bytes(self._live().data[position : position + length])

    def size(self) -> int:
        return len(self._live().data)

    def modified_ms(self) -> int:
        return self._live().modified_ms

    def truncate(self, size: int) -> None:
        self._live()
        self._disk.step("truncate", self._path)
        inode = self._live()
        _apply(inode.data, size, None)
        inode.pending.append((size, None))

    def preallocate(self, size: int) -> None:
        self.truncate(max(size, self.size()))

    def map(self, length: int) -> memoryview:
        return memoryview(bytes(self._live().data[:length]))

    async def sync(self) -> None:
        inode = self._live()
        self._disk.step("sync", self._path)
        covered = len(inode.pending)
        await self._disk.wait()
        self._disk.check_alive()
        self._live()
        for position, piece in inode.pending[:covered]:
            _apply(inode.durable, position, piece)
        del inode.pending[:covered]

    def close(self) -> None:
        self._closed = True


class _Lock:
    def __init__(self, held: dict[str, None], path: str) -> None:
        self._held = held
        self._path = path

    def release(self) -> None:
        self._held.pop(self._path, None)


class MemoryDisk:
    """Relative paths begin at the root, which is there."""

    def __init__(self, folder: str = "") -> None:
        """`folder` is there, too, and durable."""
        self.root = Folder()
        self.steps = 0
        self.life = 0
        """Grows with each restart: files opened before are dead."""
        self.log: list[tuple[str, str]] = []
        self.crash_at: int | None = None
        self.dead = False
        self.capacity: int | None = None
        self.fail: Callable[[str, str], int | None] | None = None
        """(kind, path) -> errno to raise, or None."""
        self.on_wait: Callable[[], None] | None = None
        """Called inside each sync: what happens while the device works."""
        self.now_ms = 0
        """Wall time, for what files say of their last change."""
        self._locks: dict[str, None] = {}
        at = self.root
        for name in folder.strip("/").split("/") if folder else ():
            inner = Folder()
            at.names[name] = at.durable[name] = inner
            at = inner

    # Faults.

    def step(self, kind: str, path: str) -> None:
        self.check_alive()
        self.steps += 1
        self.log.append((kind, path))
        if self.crash_at is not None and self.steps >= self.crash_at:
            self.dead = True
            raise Crashed(f"step {self.steps}: {kind} {path}")
        if self.fail is not None and (code := self.fail(kind, path)) is not None:
            raise OSError(code, "injected", path)

    def check_alive(self) -> None:
        if self.dead:
            raise Crashed("dead")

    async def wait(self) -> None:
        if self.on_wait is not None:
            self.on_wait()

    def room(self) -> int | None:
        return None if self.capacity is None else max(0, self.capacity - self._used(self.root))

    def _used(self, folder: Folder) -> int:
        return sum(
            len(node.data) if isinstance(node, Inode) else self._used(node)
            for node in folder.names.values()
        )

    def restart(self) -> None:
        """The process was killed: the page cache lives on."""
        self.life += 1
        self.dead = False
        self.crash_at = None
        self.fail = None
        self._locks.clear()

    def inode(self, path: str) -> Inode:
        """The file, to look at or to damage."""
        node = self._find(path)
        assert isinstance(node, Inode), path
        return node

    def flip_bit(self, path: str, position: int) -> None:
        """Rot, on the platter and in memory."""
        inode = self.inode(path)
        inode.data[position] ^= 1
        inode.durable[position] ^= 1

    def power_loss(self, rng: Random, mode: Loss) -> None:
        self._lose_folder(self.root, rng, mode)
        self.restart()

    def _lose_folder(self, folder: Folder, rng: Random, mode: Loss) -> None:
        survived = len(folder.pending)
        if mode == "none":
            survived = 0
        elif mode in ("prefix", "any"):
            survived = rng.randrange(survived + 1)
        names = dict(folder.durable)
        for change in folder.pending[:survived]:
            _change(names, change)
        folder.names, folder.durable, folder.pending = names, dict(names), []
        for node in names.values():
            if isinstance(node, Folder):
                self._lose_folder(node, rng, mode)
            else:
                _lose_content(node, rng, mode)

    # The directory tree.

    def _folder(self, path: str) -> Folder:
        folder = self.root
        for name in path.strip("/").split("/"):
            if name in ("", "."):
                continue
            node = folder.names.get(name)
            if not isinstance(node, Folder):
                raise FileNotFoundError(errno.ENOENT, "no such folder", path)
            folder = node
        return folder

    def _split(self, path: str) -> tuple[Folder, str]:
        parent, _, name = path.rpartition("/")
        return self._folder(parent), name

    def _find(self, path: str) -> Inode | Folder | None:
        try:
            folder, name = self._split(path)
        except FileNotFoundError:
            return None
        return folder.names.get(name)

    @staticmethod
    def _record(folder: Folder, change: dict[str, Inode | Folder | None]) -> None:
        _change(folder.names, change)
        folder.pending.append(change)

    def open(self, path: str, *, create: bool = False) -> MemoryFile:
        node = self._find(path)
        if node is None:
            if not create:
                raise FileNotFoundError(errno.ENOENT, "no such file", path)
            self.step("create", path)
            node = Inode(modified_ms=self.now_ms)
            folder, name = self._split(path)
            self._record(folder, {name: node})
        assert isinstance(node, Inode)
        return MemoryFile(self, path, node)

    def lock(self, path: str) -> _Lock:
        if path in self._locks:
            raise DiskLocked(path)
        self.open(path, create=True)
        self._locks[path] = None
        return _Lock(self._locks, path)

    def exists(self, path: str) -> bool:
        return self._find(path) is not None

    def is_dir(self, path: str) -> bool:
        return isinstance(self._find(path), Folder)

    def list(self, path: str) -> list[str]:
        return sorted(self._folder(path).names)

    def make_dirs(self, path: str) -> None:
        folder = self.root
        for name in path.strip("/").split("/"):
            node = folder.names.get(name)
            if node is None:
                self.step("make_dir", path)
                node = Folder()
                self._record(folder, {name: node})
            assert isinstance(node, Folder)
            folder = node

    def rename(self, source: str, target: str) -> None:
        self.step("rename", target)
        folder, old = self._split(source)
        target_folder, new = self._split(target)
        assert folder is target_folder, "renames stay within a folder here"
        self._record(folder, {new: folder.names[old], old: None})

    def remove(self, path: str) -> None:
        self.step("remove", path)
        folder, name = self._split(path)
        if name not in folder.names:
            raise FileNotFoundError(errno.ENOENT, "no such file", path)
        self._record(folder, {name: None})

    def remove_tree(self, path: str) -> None:
        if self._find(path) is None:
            return
        self.step("remove_tree", path)
        folder, name = self._split(path)
        self._record(folder, {name: None})

    async def sync_dir(self, path: str) -> None:
        self.step("sync_dir", path)
        folder = self._folder(path)
        covered = len(folder.pending)
        await self.wait()
        self.check_alive()
        for change in folder.pending[:covered]:
            _change(folder.durable, change)
        del folder.pending[:covered]

    def free_bytes(self, path: str) -> int:
        room = self.room()
        return 1 << 40 if room is None else room


def _change(names: dict[str, Inode | Folder], change: dict[str, Inode | Folder | None]) -> None:
    for name, node in change.items():
        if node is None:
            names.pop(name, None)
        else:
            names[name] = node


def _lose_content(inode: Inode, rng: Random, mode: Loss) -> None:
    pending = inode.pending
    if mode == "none":
        survived: list[tuple[int, bytes | None]] = []
    elif mode == "all":
        survived = pending
    elif mode == "prefix":
        survived = pending[: rng.randrange(len(pending) + 1)]
    else:
        survived = [change for change in pending if rng.random() < 0.5]
    data = bytearray(inode.durable)
    for number, (position, piece) in enumerate(survived):
        torn = mode in ("prefix", "any") and number + 1 == len(survived) and piece
        if torn and piece is not None:
            if mode == "any" and rng.random() < 0.5:
                for start, end in _sectors(position, len(piece)):
                    if rng.random() < 0.5:
                        _apply(data, position + start, piece[start:end])
                continue
            size = position + len(piece)
            piece = piece[: _torn_at(rng.randrange(len(piece) + 1), position, len(data))]
            if rng.random() < 0.5:
                # The size came through and the content did not.
                data.extend(bytes(max(0, size - len(data))))
        _apply(data, position, piece)
    inode.data, inode.durable, inode.pending = data, bytearray(data), []


def _sectors(position: int, length: int) -> Iterator[tuple[int, int]]:
    """(start, end) within the write of what it has of each sector."""
    start = 0
    while start < length:
        end = min(length, start + SECTOR - (position + start) % SECTOR)
        yield start, end
        start = end


def _torn_at(kept: int, position: int, size: int) -> int:
    """How much of a write stays: any part of what makes a file grow, whole sectors of what was
    there before."""
    end = position + kept
    return kept if end > size else max(0, end // SECTOR * SECTOR - position)
