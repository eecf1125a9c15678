"""Ends a run that takes too much real time: virtual time cannot notice a loop that never awaits."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Iterator
from types import FrameType

from .errors import WatchdogExpired

_clock = time.monotonic
"""Bound at import: while a world runs, `time.monotonic` is virtual."""


class Watchdog:
    """Counts the real seconds spent inside `watching`; beyond the limit the run is broken off.

    Where the process allows it (main thread, nobody else uses SIGALRM) a callback that never
    returns is broken off too; elsewhere only between two turns.
    """

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._left_s = limit_s
        self._deadline = 0.0
        self._checks = 0
        self._alarmed = False

    def check(self) -> None:
        """Called between turns; looks at the clock now and then only."""
        self._checks += 1
        # An alarm inside a task may have been swallowed by it.
        if self._alarmed or (self._checks % 256 == 0 and _clock() > self._deadline):
            raise self._expired()

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        begin = _clock()
        self._deadline = begin + self._left_s
        alarm = (
            threading.current_thread() is threading.main_thread()
            and signal.getsignal(signal.SIGALRM) is signal.SIG_DFL
        )
        if alarm:
            signal.signal(signal.SIGALRM, self._on_alarm)
            # Repeated: a task that swallows the first one meets the next.
            signal.setitimer(signal.ITIMER_REAL, max(0.001, self._left_s), 0.1)
        try:
            yield
        finally:
            if alarm:
                signal.setitimer(signal.ITIMER_REAL, 0)
                signal.signal(signal.SIGALRM, signal.SIG_DFL)
            self._left_s -= _clock() - begin

    def _on_alarm(self, _: int, __: FrameType | None) -> None:
        self._alarmed = True
        raise self._expired()

    def _expired(self) -> WatchdogExpired:
        return WatchdogExpired(f"the run took more than {self._limit_s} s of real time")
