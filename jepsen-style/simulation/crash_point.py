"""Death before the n-th change of a disk: run once for every n, and no write is left untested."""

from __future__ import annotations

import errno
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
