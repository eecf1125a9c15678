"""What a run comes to, in one word and one line."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

GAP_S = 1.0
"""A partition that acknowledges nothing for longer counts as unavailable for all that time."""


class Word(Enum):
    """With the exit status of the command."""

    HELD = "held"
    VIOLATION = "violation"
    OUTSIDE = "outside"
    UNDECIDED = "undecided"
    TOO_WEAK = "too weak"

    @property
    def status(self) -> int:
        return {Word.HELD: 0, Word.TOO_WEAK: 3}.get(self, 1)


@dataclass(frozen=True, slots=True)
class Floors:
    """What a run must have done to prove anything."""

    acknowledged: int
    strikes: int
    kinds: int
    leaders_killed: int

    @classmethod
    def of(cls, minutes: float) -> Floors:
        """Only faults are asked for by the minute: a shorter run does not prove as much."""
        return cls(acknowledged=1_000, strikes=math.ceil(6 * minutes), kinds=5, leaders_killed=2)


@dataclass(slots=True)
class Tally:
    """The run in numbers."""

    operations: int = 0
    acknowledged: int = 0
    lost: int = 0
    strikes: int = 0
    kinds: int = 0
    leaders_killed: int = 0
    unavailable_s: float = 0.0
    read_everything: bool = False

    def weaknesses(self, floors: Floors) -> list[str]:
        reached = (
            (self.acknowledged, floors.acknowledged, "acknowledged records"),
            (self.strikes, floors.strikes, "faults"),
            (self.kinds, floors.kinds, "kinds of faults"),
            (self.leaders_killed, floors.leaders_killed, "killed leaders"),
        )
        found = [
            f"{value} {what}, at least {floor} are needed"
            for value, floor, what in reached
            if value < floor
        ]
        return found if self.read_everything else [*found, "the final full read is missing"]

    def line(self, word: Word) -> str:
        return (
            f"run: {word.value} | ops={self.operations} acknowledged={self.acknowledged} "
            f"lost={self.lost} faults={self.strikes} unavailable_s={self.unavailable_s:.1f}"
        )


def unavailable(answers: Sequence[Sequence[float]], began: float, ended: float) -> float:
    """Seconds of began..ended in which at least one partition was in a gap of more than GAP_S
    between acknowledgements. `answers`: for each partition their times, in order."""
    gaps = [
        (one, other)
        for times in answers
        for one, other in zip([began, *times], [*times, ended], strict=True)
        if other - one > GAP_S
    ]
    total, covered = 0.0, began
    for start, end in sorted(gaps):
        total += max(0.0, end - max(start, covered))
        covered = max(covered, end)
    return total
