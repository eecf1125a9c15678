"""A wall clock that is wrong on purpose, by as much as the switches say."""

from __future__ import annotations

from .clock import Clock
from .fault_switches import FaultSwitches


class FaultyClock:
    """`clock`, moved. What measures durations is the loop's and stays right, as under NTP."""

    def __init__(self, clock: Clock, switches: FaultSwitches) -> None:
        self._clock = clock
        self._switches = switches

    def now_ms(self) -> int:
        return max(0, self._clock.now_ms() + self._switches.clock_offset_ms)
