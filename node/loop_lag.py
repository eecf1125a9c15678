"""How late the loop comes to what is due (RULES F1, metric `loop_lag`)."""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections import deque

from ..seam import frozen

INTERVAL_S = 0.1
WINDOW_S = 60.0
WINDOWS = 5
"""The last minutes that are told of: four to five, the newest of them still growing."""
BOUNDS_S = tuple(0.0001 * 1.25**step for step in range(60))
"""Upper ends of the buckets, 0.1 ms to 52 s: a quantile is told at most a quarter too high."""
LONGEST_COUNTED_S = 60.0
"""A process that was paused for a night counts for a minute."""


@frozen
class LagSummary:
    """Seconds, over the last minutes. Quantiles are rounded up, never beyond the largest."""

    p50_s: float
    p99_s: float
    p999_s: float
    largest_s: float
    samples: int


class _Window:
    """The lags of one minute."""

    def __init__(self, begun: float) -> None:
        self.begun = begun
        self.counts = [0] * (len(BOUNDS_S) + 1)
        self.largest_s = 0.0


class LoopLag:
    """Asks for a call every 100 ms and notes how late each comes. One timer, no task.

    A call that comes 250 ms late stands for those due 150 and 50 ms ago as well: otherwise one long
    stall would weigh no more than one punctual tick, and a high quantile would miss it.
    """

    def __init__(self) -> None:
        self._windows: deque[_Window] = deque(maxlen=WINDOWS)
        self._timer: asyncio.TimerHandle | None = None
        self._due = 0.0

    def start(self) -> None:
        self._ask_for(asyncio.get_running_loop().time() + INTERVAL_S)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    @property
    def largest_s(self) -> float:
        return max((window.largest_s for window in self._windows), default=0.0)

    def quantile_s(self, fraction: float) -> float:
        """`fraction` between 0 and 1."""
        return self._quantile_s(self._counts(), fraction)

    def summary(self) -> LagSummary:
        counts = self._counts()
        return LagSummary(
            p50_s=self._quantile_s(counts, 0.5),
            p99_s=self._quantile_s(counts, 0.99),
            p999_s=self._quantile_s(counts, 0.999),
            largest_s=self.largest_s,
            samples=sum(counts),
        )

    def _counts(self) -> list[int]:
        return [sum(column) for column in zip(*(w.counts for w in self._windows), strict=True)]

    def _quantile_s(self, counts: list[int], fraction: float) -> float:
        left = fraction * sum(counts)
        for bound, count in zip(BOUNDS_S, counts, strict=False):
            left -= count
            if left <= 0:
                return min(bound, self.largest_s)
        return self.largest_s

    def _ask_for(self, due: float) -> None:
        self._due = due
        self._timer = asyncio.get_running_loop().call_at(due, self._measure)

    def _measure(self) -> None:
        now = asyncio.get_running_loop().time()
        if not self._windows or now - self._windows[-1].begun >= WINDOW_S:
            self._windows.append(_Window(now))
        window = self._windows[-1]
        window.largest_s = max(window.largest_s, now - self._due)
        lag = min(max(0.0, now - self._due), LONGEST_COUNTED_S)
        while lag >= 0:
            window.counts[bisect_left(BOUNDS_S, lag)] += 1
            lag -= INTERVAL_S
        # What is left is the (negative) lag of the next one that is due.
        self._ask_for(now - lag)
