"""What a host's disk holds: the image that processes see, and the one that a power cut leaves.

Files and directories have two images each. The *cached* one is the page cache: it survives the
death of a process. The *durable* one is the platter. Changes wait in order until a sync carries
them over. Directories are synced one by one: syncing a file says nothing about its name, syncing a
directory nothing about its parent. That is stricter than ext4 and what POSIX promises.
"""

from __future__ import annotations

import errno
import os
import posixpath
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from random import Random

SECTOR_BYTES = 512
"""A write interrupted by a power cut is torn at a multiple of this."""

UNLIMITED = 1 << 50

_CHANGES = (
    *("create", "append", "write_at", "truncate", "preallocate"),
    *("make_dirs", "rename", "remove", "remove_tree"),
)


class Keep(Enum):
    """What of the unsynced reaches the platter when power is lost, each file on its own."""

    NONE = "none"
    PREFIX = "prefix"
    """The first changes, in order; the last of them perhaps torn."""
    ANY = "any"
    """Any subset of the changes; the last of them perhaps torn."""
    TORN = "torn"
    """All but the last write, and a part of that."""
    ALL = "all"


@dataclass(frozen=True, slots=True)
class DiskCall:
    """One call that reached the disk; its number is a crash point of the run."""

    number: int
    kind: str
    path: str
    size: int

    @property
    def changes(self) -> bool:
        """Whether what a crash leaves differs before and after it."""
        return self.kind.split()[0] in _CHANGES or self.kind.endswith(" effect")


@dataclass(frozen=True, slots=True)
class DiskChange:
    """What a process has just done to a file or its name."""

    path: str
    position: int = 0
    """Where a write began, or the size to which a file was cut."""
    written: int = 0
    """Bytes; 0 for a cut."""
    renamed: bool = False
    """Names at or below `path` have changed."""


@dataclass(frozen=True, slots=True)
class _Write:
    position: int
    data: bytes


@dataclass(frozen=True, slots=True)
class _Resize:
    size: int


def _apply(image: bytearray, change: _Write | _Resize) -> None:
    if isinstance(change, _Resize):
        if change.size < len(image):
            del image[change.size :]
        else:
            image.extend(bytes(change.size - len(image)))
        return
    if change.position > len(image):
        image.extend(bytes(change.position - len(image)))
    image[change.position : change.position + len(change.data)] = change.data


class FileNode:
    """A file without its name."""

    __slots__ = ("_first", "_waiting", "cached", "durable", "modified_ms")

    def __init__(self) -> None:
        self.cached = bytearray()
        self.durable = bytearray()
        self.modified_ms = 0
        """Wall time of the last change; kept by who changes it."""
        self._waiting: list[_Write | _Resize] = []
        self._first = 0
        """Number of the first waiting change, counted from the file's creation."""

    def write(self, position: int, data: bytes) -> None:
        self._change(_Write(position, data))

    def resize(self, size: int) -> None:
        self._change(_Resize(size))

    def _change(self, change: _Write | _Resize) -> None:
        _apply(self.cached, change)
        self._waiting.append(change)

    def mark(self) -> int:
        """Where the changes made so far end; what a sync that begins now promises."""
        return self._first + len(self._waiting)

    def flush_to(self, mark: int) -> None:
        """Changes before `mark` reach the platter. Replayed: a copy of the file would be slow."""
        for change in self._take_to(mark):
            _apply(self.durable, change)

    def forget_to(self, mark: int) -> None:
        """A sync failed: the kernel takes the pages for clean, and they never reach the platter."""
        self._take_to(mark)

    def _take_to(self, mark: int) -> list[_Write | _Resize]:
        count = max(0, mark - self._first)
        taken = self._waiting[:count]
        del self._waiting[:count]
        self._first += len(taken)
        return taken

    def lose_power(self, keep: Keep, dice: Random) -> None:
        kept = self._kept(keep, dice)
        for number, change in enumerate(kept):
            last = number == len(kept) - 1
            if last and keep is not Keep.ALL and isinstance(change, _Write) and change.data:
                self._tear(change, dice, whole=0.0 if keep is Keep.TORN else 0.5)
            else:
                _apply(self.durable, change)
        self._take_to(self.mark())
        self.cached = bytearray(self.durable)

    def _tear(self, write: _Write, dice: Random, *, whole: float) -> None:
        """Whole, or up to a sector; and perhaps the new size arrived, and its data did not."""
        if dice.random() < whole:
            _apply(self.durable, write)
            return
        end = write.position + dice.randrange(len(write.data))
        kept = max(0, end // SECTOR_BYTES * SECTOR_BYTES - write.position)
        _apply(self.durable, _Write(write.position, write.data[:kept]))
        full = write.position + len(write.data)
        if full > len(self.durable) and dice.random() < 0.5:
            # Only what lies behind the old end reads as zeros: an overwritten sector is old or new.
            _apply(self.durable, _Resize(full))

    def _kept(self, keep: Keep, dice: Random) -> list[_Write | _Resize]:
        if keep is Keep.NONE or not self._waiting:
            return []
        if keep in (Keep.ALL, Keep.TORN):
            return self._waiting
        if keep is Keep.PREFIX:
            return self._waiting[: dice.randrange(len(self._waiting) + 1)]
        return [change for change in self._waiting if dice.random() < 0.5]


class DirectoryNode:
    """Names of files and directories."""

    __slots__ = ("durable", "entries")

    def __init__(self) -> None:
        self.entries: dict[str, Node] = {}
        self.durable: dict[str, Node] = {}


Node = FileNode | DirectoryNode


@dataclass(frozen=True, slots=True)
class _Link:
    directory: DirectoryNode
    name: str
    node: Node | None
    """None: the name goes away."""

    def apply(self, entries: dict[str, Node]) -> None:
        if self.node is None:
            entries.pop(self.name, None)
        else:
            entries[self.name] = self.node


@dataclass(frozen=True, slots=True)
class _NameChange:
    """One atomic change of the tree: a rename has two links, everything else one."""

    links: tuple[_Link, ...]

    def touches(self, directory: DirectoryNode) -> bool:
        return any(link.directory is directory for link in self.links)


@dataclass(eq=False)
class Drive:
    """The disk of one host. Outlives its processes."""

    dice: Random
    capacity_bytes: int = UNLIMITED
    sync_latency_s: float = 300e-6
    """Middle of the range from which the duration of a sync is drawn."""
    on_call: Callable[[DiskCall], None] | None = None
    """Sees every call before its effect. May raise OSError, or kill the host: a crash point."""
    on_change: Callable[[DiskChange], None] | None = None
    """Sees every change of the cached image after it was made. Must not raise."""
    calls: int = 0
    root: DirectoryNode = field(default_factory=DirectoryNode)
    _name_changes: list[_NameChange] = field(default_factory=list)
    _locked: list[FileNode] = field(default_factory=list)

    # Names

    def find(self, path: str) -> Node | None:
        """What `path` names, or None."""
        try:
            return self.get(path)
        except (FileNotFoundError, NotADirectoryError):
            return None

    def get(self, path: str) -> Node:
        node: Node = self.root
        for part in _parts(path):
            if not isinstance(node, DirectoryNode):
                raise _error(errno.ENOTDIR, path)
            found = node.entries.get(part)
            if found is None:
                raise _error(errno.ENOENT, path)
            node = found
        return node

    def get_directory(self, path: str) -> DirectoryNode:
        node = self.get(path)
        if not isinstance(node, DirectoryNode):
            raise _error(errno.ENOTDIR, path)
        return node

    def open_file(self, path: str, *, create: bool) -> FileNode:
        directory, name = self._parent(path)
        node = directory.entries.get(name)
        if isinstance(node, DirectoryNode):
            raise _error(errno.EISDIR, path)
        if node is None:
            if not create:
                raise _error(errno.ENOENT, path)
            node = FileNode()
            self._link(_Link(directory, name, node))
        return node

    def make_dirs(self, path: str) -> None:
        directory = self.root
        for part in _parts(path):
            node = directory.entries.get(part)
            if node is None:
                node = DirectoryNode()
                self._link(_Link(directory, part, node))
            if not isinstance(node, DirectoryNode):
                raise _error(errno.EEXIST, path)
            directory = node

    def rename(self, source: str, target: str) -> None:
        from_directory, from_name = self._parent(source)
        node = from_directory.entries.get(from_name)
        if node is None:
            raise _error(errno.ENOENT, source)
        to_directory, to_name = self._parent(target)
        if isinstance(node, DirectoryNode) and _is_below(target, source):
            raise _error(errno.EINVAL, target)
        replaced = to_directory.entries.get(to_name)
        if replaced is node:
            return
        if isinstance(replaced, DirectoryNode):
            if not isinstance(node, DirectoryNode):
                raise _error(errno.EISDIR, target)
            if replaced.entries:
                raise _error(errno.ENOTEMPTY, target)
        elif replaced is not None and isinstance(node, DirectoryNode):
            raise _error(errno.ENOTDIR, target)
        self._link(_Link(to_directory, to_name, node), _Link(from_directory, from_name, None))

    def remove(self, path: str) -> None:
        directory, name = self._parent(path)
        node = directory.entries.get(name)
        if node is None:
            raise _error(errno.ENOENT, path)
        if isinstance(node, DirectoryNode):
            raise _error(errno.EISDIR, path)
        self._link(_Link(directory, name, None))

    def remove_tree(self, path: str) -> None:
        """Name by name, the leaves first: a power cut may leave a part of the tree."""
        node = self.find(path)
        if node is None:
            return
        if not isinstance(node, DirectoryNode):
            raise _error(errno.ENOTDIR, path)
        self._empty(node)
        directory, name = self._parent(path)
        self._link(_Link(directory, name, None))

    def _empty(self, directory: DirectoryNode) -> None:
        for name, node in list(directory.entries.items()):
            if isinstance(node, DirectoryNode):
                self._empty(node)
            self._link(_Link(directory, name, None))

    def _parent(self, path: str) -> tuple[DirectoryNode, str]:
        parts = _parts(path)
        if not parts:
            raise _error(errno.EISDIR, path)
        return self.get_directory("/".join(parts[:-1])), parts[-1]

    def _link(self, *links: _Link) -> None:
        for link in links:
            link.apply(link.directory.entries)
        self._name_changes.append(_NameChange(links))

    def changed(self, change: DiskChange) -> None:
        if self.on_change is not None:
            self.on_change(change)

    # Durability

    def mark_names(self) -> list[_NameChange]:
        """The changes of names that a directory sync beginning now covers."""
        return list(self._name_changes)

    def flush_names(self, directory: DirectoryNode, marked: list[_NameChange]) -> None:
        """Carry the `marked` changes of this directory over, in order."""
        covered = [change for change in marked if change.touches(directory)]
        self._flush(covered)

    def _flush(self, changes: list[_NameChange]) -> None:
        done = {id(change) for change in changes}
        for change in self._name_changes:
            if id(change) in done:
                for link in change.links:
                    link.apply(link.directory.durable)
        self._name_changes = [change for change in self._name_changes if id(change) not in done]

    def lose_power(self, keep: Keep) -> None:
        """The page cache is gone; `keep` says how much of the unsynced had reached the platter."""
        self._flush(self._kept_names(keep))
        self._name_changes.clear()
        seen: dict[int, Node] = {}
        self._forget_cache(self.root, keep, seen)

    def _kept_names(self, keep: Keep) -> list[_NameChange]:
        changes = self._name_changes
        if keep in (Keep.ALL, Keep.TORN):
            return changes
        if keep is Keep.NONE or not changes:
            return []
        if keep is Keep.PREFIX:
            return changes[: self.dice.randrange(len(changes) + 1)]
        # Order holds within a directory, not between two.
        stopped: list[DirectoryNode] = []
        kept = []
        for change in changes:
            if any(change.touches(directory) for directory in stopped):
                stopped.extend(link.directory for link in change.links)
            elif self.dice.random() < 0.5:
                kept.append(change)
            else:
                stopped.extend(link.directory for link in change.links)
        return kept

    def _forget_cache(self, directory: DirectoryNode, keep: Keep, seen: dict[int, Node]) -> None:
        seen[id(directory)] = directory
        directory.entries = dict(directory.durable)
        for node in directory.entries.values():
            if id(node) in seen:
                continue
            seen[id(node)] = node
            if isinstance(node, FileNode):
                node.lose_power(keep, self.dice)
            else:
                self._forget_cache(node, keep, seen)

    # Space, locks, and what the harness asks

    def used_bytes(self) -> int:
        return sum(len(data) for data in self.files().values())

    def free_bytes(self) -> int:
        return max(0, self.capacity_bytes - self.used_bytes())

    def room_for(self, size: int) -> int:
        """How many of `size` bytes fit; all of them as long as no capacity is set."""
        if self.capacity_bytes == UNLIMITED:
            return size
        return min(size, self.free_bytes())

    def try_lock(self, node: FileNode) -> bool:
        if any(locked is node for locked in self._locked):
            return False
        self._locked.append(node)
        return True

    def unlock(self, node: FileNode) -> None:
        self._locked = [locked for locked in self._locked if locked is not node]

    def release_locks(self) -> None:
        """The process that held them is dead."""
        self._locked.clear()

    def files(self) -> dict[str, bytes | bytearray]:
        """Every file by path, as a process would read it now."""
        found: dict[str, bytes | bytearray] = {}
        self._collect(self.root, "", found)
        return dict(sorted(found.items()))

    def _collect(
        self, directory: DirectoryNode, prefix: str, found: dict[str, bytes | bytearray]
    ) -> None:
        for name, node in directory.entries.items():
            if isinstance(node, DirectoryNode):
                self._collect(node, f"{prefix}{name}/", found)
            else:
                found[prefix + name] = node.cached

    def flip_bit(self, path: str, position: int, bit: int = 0) -> None:
        """Damage one bit of a file, in both images."""
        node = self.get(path)
        if not isinstance(node, FileNode):
            raise _error(errno.EISDIR, path)
        for image in (node.cached, node.durable):
            if position < len(image):
                image[position] ^= 1 << bit


def _parts(path: str) -> list[str]:
    normal = posixpath.normpath("/" + path)
    return [part for part in normal.split("/") if part]


def _is_below(path: str, directory: str) -> bool:
    inner, outer = _parts(path), _parts(directory)
    return len(inner) > len(outer) and inner[: len(outer)] == outer


def _error(number: int, path: str) -> OSError:
    # OSError picks the subclass that belongs to the number.
    return OSError(number, os.strerror(number), path)
