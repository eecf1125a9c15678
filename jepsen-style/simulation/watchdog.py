"""Ends a run that takes too much processor time: virtual time cannot notice a loop that never
awaits. Not the time of day, which on a busy machine says nothing about the run."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Iterator
from types import FrameType

from .errors import WatchdogExpired

_clock = time.process_time


class Watchdog:
    """Counts the process's seconds spent inside `watching`; beyond the limit the run is broken off.

    Where the process allows it (main thread, nobody else uses SIGPROF) a callback that never
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
            and signal.getsignal(signal.SIGPROF) is signal.SIG_DFL
        )
        if alarm:
            signal.signal(signal.SIGPROF, self._on_alarm)
            # Repeated: a task that swallows the first one meets the next.
            signal.setitimer(signal.ITIMER_PROF, max(0.001, self._left_s), 0.1)
        try:
            yield
        finally:
            if alarm:
                signal.setitimer(signal.ITIMER_PROF, 0)
                signal.signal(signal.SIGPROF, signal.SIG_DFL)
            self._left_s -= _clock() - begin

    def _on_alarm(self, _: int, __: FrameType | None) -> None:
        self._alarmed = True
        raise self._expired()

    def _expired(self) -> WatchdogExpired:
        return WatchdogExpired(f"the run took more than {self._limit_s} s of processor time")
