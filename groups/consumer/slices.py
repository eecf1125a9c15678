"""Long work in slices: a generator that pauses when it has done enough for one turn (RULES F1)."""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeVar

Result = TypeVar("Result")

Sliced = Generator[None, None, Result]
"""Each pause ends a slice."""

UNITS_PER_SLICE = 1_000
"""A unit is what takes a microsecond or so: work is counted and not timed, so a run repeats."""


class Effort:
    """
    if effort.spent(units):
        yield
    """

    def __init__(self) -> None:
        self._units = 0

    def spent(self, units: int) -> bool:
        """Is it time to pause?"""
        self._units += units
        if self._units < UNITS_PER_SLICE:
            return False
        self._units = 0
        return True
