"""Switches for faults, with a history that forgets, and a clock that is set by hand."""

from __future__ import annotations

from random import Random

from logboat.seam import SystemClock
from logboat.seam.fault_history import FaultHistory
from logboat.seam.fault_switches import FaultSwitches


class SetClock:
    def __init__(self, now_ms: int = 1_000_000) -> None:
        self.ms = now_ms

    def now_ms(self) -> int:
        return self.ms


def new_switches() -> FaultSwitches:
    return FaultSwitches(Random(1), FaultHistory(SystemClock()))
