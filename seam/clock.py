"""The wall clock, kept apart from the loop's clock that measures durations."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Wall time: for record timestamps, retention and people only.

    Lag, sessions and deadlines use the running loop's `time()`, which never jumps.
    """

    def now_ms(self) -> int:
        """Milliseconds since the Unix epoch."""
        ...


class SystemClock:
    """The machine's clock."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000
