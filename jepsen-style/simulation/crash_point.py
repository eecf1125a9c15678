"""Death before the n-th change of a disk: run once for every n, and no write is left untested."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from .drive import DiskCall, Keep
from .host import Host
from .world import World

T = TypeVar("T")

ENDS_WITHIN_S = 60.0
"""Simulated seconds that a script may take."""


class CrashPoint:
    """Kills `host` (or cuts its power, with `keep`) before the `number`-th change, counted from 1.

    Reads and the beginnings of syncs are not counted: to die before one of them is to die before
    the next change. `reached` tells whether there was such a change at all.
    """

    def __init__(self, host: Host, number: int, keep: Keep | None) -> None:
        self.reached = False
        self._host = host
        self._left = number
        self._keep = keep
        host.drive.on_call = self

    def __call__(self, call: DiskCall) -> None:
        if not call.changes or self.reached:
            return
        self._left -= 1
        if self._left == 0:
            self.reached = True
            if self._keep is None:
                self._host.kill()
            else:
                self._host.power_off(self._keep)


class FailedSync:
    """Lets the `number`-th sync of a host's disk fail once, counted from 1.

    `kinds` are the ends of the names of the calls that count. `failed` tells whether there was one.
    """

    def __init__(self, host: Host, number: int, *, kinds: str) -> None:
        self.failed = False
        self._left = number
        self._kinds = kinds
        host.drive.on_call = self

    def __call__(self, call: DiskCall) -> None:
        self._left -= call.kind.endswith(self._kinds)
        if self._left == 0 and not self.failed:
            self.failed = True
            raise OSError(errno.EIO, "injected")


CHANGES = ("create", "append", "write_at", "truncate", "make_dirs", "rename", "remove")
"""Calls that a full disk, or one that takes no more writes, may refuse; syncs apart."""


class RefusedCalls:
    """From the `number`-th call of these `kinds` on, counted from 1, `times` of them fail with that
    errno, all by default, until `heal`. `under`: how their paths begin. `failed` tells whether
    there was one."""

    def __init__(
        self,
        host: Host,
        number: int,
        error: int,
        *,
        kinds: tuple[str, ...],
        times: int | None = None,
        under: str = "",
    ) -> None:
        self.failed = False
        self._drive = host.drive
        self._left = number
        self._error = error
        self._kinds = kinds
        self._last = None if times is None else 1 - times
        self._under = under
        self._drive.on_call = self

    def __call__(self, call: DiskCall) -> None:
        if call.kind.endswith(" effect") or call.kind.split()[0] not in self._kinds:
            return
        if not call.path.startswith(self._under):
            return
        self._left -= 1
        if self._left <= 0 and (self._last is None or self._left >= self._last):
            self.failed = True
            raise OSError(self._error, os.strerror(self._error), call.path)

    def heal(self) -> None:
        self._drive.on_call = None


def live(world: World, host: Host, main: Callable[[Host], Coroutine[Any, Any, Any]]) -> None:
    """Run a process to its end, whatever that is; then the disk works again."""
    host.start(main)
    world.run_until(lambda: not host.alive, within=ENDS_WITHIN_S)
    host.drive.on_call = None


def ask(world: World, host: Host, main: Callable[[Host], Coroutine[Any, Any, T]]) -> T:
    """Run a process that must end in order; what it returned."""
    done = host.start(main)
    world.run_until(lambda: not host.alive, within=ENDS_WITHIN_S)
    answer: T = done.result()
    return answer


def for_every_number(run: Callable[[int], bool], *, at_least: int) -> None:
    """Call with 1, 2, ... until it says that there was nothing left; fail when that was early."""
    number = 1
    while run(number):
        number += 1
    assert number > at_least, f"only {number} were tried"
