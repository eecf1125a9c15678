"""What a drive does wrong: calls that fail, and bytes that change while nobody runs."""

from __future__ import annotations

import errno
from collections.abc import Callable
from random import Random

from ..simulation import DiskCall, Drive, Host
from ..simulation.cluster import DATA
from ..simulation.drive import SECTOR_BYTES, DirectoryNode, FileNode

OnStrike = Callable[[], None]


class FailingCalls:
    """Of one host's drive: any number of failures waiting for their call."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._waiting: dict[int, tuple[tuple[str, ...], int, OnStrike]] = {}
        """By ticket: kinds of call, how many of them pass, whom to tell."""
        self._tickets = 0

    def fail(self, *kinds: str, after: int, on_strike: OnStrike) -> int:
        """The call after `after` further ones of these kinds raises EIO. Returns a ticket."""
        self._tickets += 1
        self._waiting[self._tickets] = (kinds, after, on_strike)
        self._host.drive.on_call = self._on_call
        return self._tickets

    def cancel(self, ticket: int) -> None:
        self._waiting.pop(ticket, None)
        if not self._waiting:
            self._host.drive.on_call = None

    def _on_call(self, call: DiskCall) -> None:
        for ticket, (kinds, after, on_strike) in list(self._waiting.items()):
            if call.kind not in kinds:
                continue
            if after:
                self._waiting[ticket] = (kinds, after - 1, on_strike)
                continue
            self.cancel(ticket)
            on_strike()
            raise OSError(errno.EIO, "the device failed", call.path)


def files_of(drive: Drive, place: str) -> dict[str, FileNode]:
    """Files that a damage may hit, by path; not empty ones."""
    found: dict[str, FileNode] = {}

    def walk(directory: DirectoryNode, prefix: str) -> None:
        for name, node in sorted(directory.entries.items()):
            path = f"{prefix}/{name}"
            if isinstance(node, DirectoryNode):
                walk(node, path)
            elif node.cached and _is_at(path, place):
                found[path] = node

    data = drive.find(DATA)
    if isinstance(data, DirectoryNode):
        walk(data, DATA)
    return found


def _is_at(path: str, place: str) -> bool:
    in_quorum = path.startswith(f"{DATA}/quorum/")
    if place == "quorum":
        return in_quorum
    if in_quorum:
        return False
    if place == "log":
        return path.endswith(".log")
    if place == "index":
        return path.endswith(("index", ".snapshot"))
    return path.endswith("-checkpoint")


def damage(drive: Drive, kind: str, *, place: str, where: float, bit: int, dice: Random) -> bool:
    """Change bytes in one file, `where` of its length; False when there is none to change.

    Both images change: nobody has the file in its cache any more.
    """
    files = files_of(drive, place)
    if not files:
        return False
    path = dice.choice(list(files))
    node = files[path]
    size = len(node.durable)
    position = min(int(where * size), size - 1)
    if not size:
        return False
    if kind == "bit-flip":
        drive.flip_bit(path, position, bit)
        return True
    sector = position // SECTOR_BYTES * SECTOR_BYTES
    if kind == "stale-block":
        # A write that the device reported and never did: before it there was nothing.
        new = bytes(SECTOR_BYTES)
    else:
        # A write that belongs elsewhere landed here.
        source = dice.choice(list(files.values())).durable
        start = dice.randrange(max(1, len(source) - SECTOR_BYTES + 1))
        new = bytes(source[start : start + SECTOR_BYTES])
    for image in (node.cached, node.durable):
        end = min(sector + len(new), len(image))
        image[sector:end] = new[: end - sector]
    return True
