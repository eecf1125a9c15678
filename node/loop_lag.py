"""How late the loop comes to what is due (RULES F1, metric `loop_lag`)."""

from __future__ import annotations

import asyncio
from collections import deque

INTERVAL_S = 0.1
KEPT = 600
"""Measurements: the last minute."""


class LoopLag:
    """Asks for a call every 100 ms and notes how late each comes. One timer, no task."""

    def __init__(self) -> None:
        self._lags: deque[float] = deque(maxlen=KEPT)
        self._timer: asyncio.TimerHandle | None = None
        self._due = 0.0

    def start(self) -> None:
        loop = asyncio.get_running_loop()
        self._due = loop.time() + INTERVAL_S
        self._timer = loop.call_at(self._due, self._measure)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    @property
    def last_s(self) -> float:
        return self._lags[-1] if self._lags else 0.0

    @property
    def largest_s(self) -> float:
        """Of the last minute."""
        return max(self._lags, default=0.0)

    def quantile_s(self, fraction: float) -> float:
        """Of the last minute; `fraction` between 0 and 1."""
        ordered = sorted(self._lags)
        return ordered[int(fraction * (len(ordered) - 1))] if ordered else 0.0

    def _measure(self) -> None:
        self._lags.append(max(0.0, asyncio.get_running_loop().time() - self._due))
        self.start()
