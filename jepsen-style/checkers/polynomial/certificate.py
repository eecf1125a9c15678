"""A proof of linearizability that anybody can check: an order, and a point for each operation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..linearizability.models import Illegal, Model
from ..linearizability.search import TimedCall


@dataclass(frozen=True, slots=True)
class Certificate:
    """Numbers of operations in their order; each one's point is a place in the history.

    An operation placed at point p takes effect right after event p.
    """

    order: tuple[int, ...]
    points: tuple[int, ...]

    def quarrel(self, calls: Sequence[TimedCall], model: Model) -> str | None:
        """Why this proves nothing about `calls`; None when it does.

        Operations without a completion may be missing.
        """
        by_number = {timed[3]: timed for timed in calls}
        placed = set(self.order)
        for number, (_, _, completed, _) in by_number.items():
            if number not in placed and completed < (1 << 62):
                return f"operation {number} completed and is not placed"
        state, latest = model.initial, -1
        for number, point in zip(self.order, self.points, strict=True):
            call, invoked, completed, _ = by_number[number]
            if not invoked <= point < completed:
                return f"operation {number} is placed outside its own time"
            if point < latest:
                return f"operation {number} is placed before its predecessor"
            after = model.step(state, call)
            if isinstance(after, Illegal):
                return f"operation {number} ({call}) is impossible in state {state!r}"
            state, latest = after, point
        return None


def placed(order: Sequence[int], points: Sequence[int]) -> Certificate:
    return Certificate(tuple(order), tuple(points))
