"""`python wrong_clock.py FILE PYTHON -m MODULE ARGUMENTS...`: the module, with a wall clock that is
as wrong as FILE says, whenever it says so.

Runs in the node's process, so it imports nothing that the node would not. FILE holds one line as
libfaketime reads it: `+SECONDS`, `-SECONDS`, and perhaps ` xRATE`. Clocks that measure durations
stay right, as they do under NTP.
"""

from __future__ import annotations

import os
import runpy
import sys
import time
from collections.abc import Callable

LOOK_NS = 100_000_000
"""How often the file is looked at."""


class WrongClock:
    def __init__(
        self, path: str, true_ns: Callable[[], int], monotonic_ns: Callable[[], int]
    ) -> None:
        self._path = path
        self._true_ns = true_ns
        self._monotonic_ns = monotonic_ns
        self._looked_ns = -LOOK_NS
        self._text = ""
        self._offset_ns = 0
        self._rate = 1.0
        self._since_ns = 0

    def time_ns(self) -> int:
        now = self._true_ns()
        if self._monotonic_ns() - self._looked_ns >= LOOK_NS:
            self._look(now)
        return now + self._offset_ns + int((now - self._since_ns) * (self._rate - 1.0))

    def _look(self, now: int) -> None:
        self._looked_ns = self._monotonic_ns()
        with open(self._path, encoding="ascii") as file:
            text = file.read()
        if text == self._text:
            return
        self._text, self._since_ns = text, now
        offset, _, rate = text.strip().partition(" x")
        self._offset_ns = int(float(offset) * 1e9)
        self._rate = float(rate or 1.0)


def main() -> None:
    path, *command = sys.argv[1:]
    clock = WrongClock(os.path.abspath(path), time.time_ns, time.monotonic_ns)
    time.time_ns = clock.time_ns
    time.time = lambda: clock.time_ns() / 1e9
    module = command.index("-m") + 1
    sys.argv = command[module:]
    runpy.run_module(command[module], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
