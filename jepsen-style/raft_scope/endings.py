"""Processes that end themselves: which fault explains it, and what must not go on living."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from uuid import UUID

from ..simulation.drive import DiskCall
from ..simulation.host import Host

RESTART_S = 0.5
"""A supervisor starts a process again this long after it has ended itself."""

GRACE_S = 3.0
"""Within this a process whose sync has failed must have ended (RULES C4)."""


class SyncFailed(OSError):
    """Raised by a fault, so that it can be told from an error that nobody asked for."""

    def __init__(self) -> None:
        super().__init__(errno.EIO, "the disk lost its pages")


class Endings:
    """What ended each process, judged when it happens."""

    def __init__(self) -> None:
        self.explained: dict[str, int] = {}
        """How often each fault has made a process end itself."""
        self.unexplained: list[str] = []
        self._former: dict[str, list[UUID]] = {}

    def directory_lost(self, host: Host, directory_id: UUID) -> None:
        """The host's data directory was emptied; it comes back under another id."""
        self._former.setdefault(host.name, []).append(directory_id)

    def judge(self, host: Host, error: BaseException | None) -> None:
        """`host` has ended itself with `error`."""
        fault = self._fault_behind(host, error)
        if fault is None:
            self.unexplained.append(f"end: {host.name} ended itself: {error!r}")
        else:
            self.explained[fault] = self.explained.get(fault, 0) + 1

    def _fault_behind(self, host: Host, error: BaseException | None) -> str | None:
        for cause in _chain(error):
            if isinstance(cause, SyncFailed):
                return "failed sync"
            if isinstance(cause, OSError) and cause.errno == errno.ENOSPC:
                return "full disk"
        told = str(error)
        former = self._former.get(host.name, [])
        if "replace-voter" in told and any(f"by directory {id}," in told for id in former):
            # Told the pin of a directory that it really has lost, by a peer that has not yet
            # applied the new one.
            return "emptied directory"
        return None


def fail_next_sync(host: Host, endings: Endings) -> None:
    """The next sync of `host` fails, and what it covered never reaches the platter."""
    incarnation = host.incarnation

    def must_have_ended() -> None:
        if not host.alive or host.incarnation != incarnation:
            return
        if host.paused:
            host.world.at(GRACE_S, must_have_ended)
            return
        endings.unexplained.append(f"end: {host.name} goes on after a failed sync")

    def fail(call: DiskCall) -> None:
        if call.kind == "sync effect":
            host.drive.on_call = None
            host.world.at(GRACE_S, must_have_ended)
            raise SyncFailed

    host.drive.on_call = fail


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
