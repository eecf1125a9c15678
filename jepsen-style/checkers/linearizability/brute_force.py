"""Linearizability by trying every order: the definition itself, for histories of a few operations.

Kept as plain as can be, and apart from `search`: it is what the fast checkers are compared with.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...history import NEVER
from .models import Illegal, Model, State
from .search import TimedCall


def linearizable_by_trying(calls: Sequence[TimedCall], model: Model) -> bool:
    """Exponential. Operations without a completion may or may not happen."""
    parts = {model.partition(timed[0]) for timed in calls}
    return all(
        one_object([timed for timed in calls if model.partition(timed[0]) == part], model)
        for part in parts
    )


def one_object(calls: Sequence[TimedCall], model: Model) -> bool:
    def go(state: State, left: frozenset[int]) -> bool:
        if all(calls[number][2] == NEVER for number in left):
            return True
        for number in left:
            call, invoked, _, _ = calls[number]
            if any(calls[other][2] < invoked for other in left):
                continue  # something else completed before this one began
            after = model.step(state, call)
            if not isinstance(after, Illegal) and go(after, left - {number}):
                return True
        return False

    return go(model.initial, frozenset(range(len(calls))))
