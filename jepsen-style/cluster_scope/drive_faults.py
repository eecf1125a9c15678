"""What a drive does wrong: calls that fail, and bytes that change while nobody runs."""

from __future__ import annotations

import errno
from collections.abc import Callable
from random import Random

from ..schedule import Fault
from ..schedule.damage import changed, is_at
from ..simulation import DiskCall, Drive, Host
from ..simulation.cluster import DATA
from ..simulation.drive import DirectoryNode, FileNode

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
            elif node.cached and is_at(path.removeprefix(f"{DATA}/"), place):
                found[path] = node

    data = drive.find(DATA)
    if isinstance(data, DirectoryNode):
        walk(data, DATA)
    return found


def damage(drive: Drive, fault: Fault, dice: Random) -> bool:
    """Change bytes in one file; False when there is none to change.

    Both images change: nobody has the file in its cache any more.
    """
    files = files_of(drive, str(fault.option("place")))
    if not files:
        return False
    node = files[dice.choice(list(files))]
    if not node.durable:
        return False
    other = dice.choice(list(files.values())).durable
    position, new = changed(fault, bytes(node.durable), bytes(other), dice)
    for image in (node.cached, node.durable):
        end = min(position + len(new), len(image))
        image[position:end] = new[: end - position]
    return True
