"""Where seeds are sent on purpose: cells of the coverage that chance alone reaches seldom.

All reachable cells stand in one order, shuffled once and for all, and each seed takes the next
few: a range of seeds walks through them, and what a seed does still depends on nothing but itself.
A quest is an intention. Whether the cluster was in that phase, and who played that role, is seen
when the fault strikes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from ..simulation.dice import stream
from .coverage import Cell, Phase
from .kinds import KINDS

QUESTS = 3
"""Of each seed."""

ONE_NODE = ("leader", "follower", "controller")
ALL_NODES = ("all",)
STRIKE_ALL = ("kill-all", "blackout")


def reachable() -> list[tuple[str, str]]:
    """Kind and role of what seeds may draw for the simulation."""
    return [
        (kind.name, role)
        for kind in KINDS.values()
        if kind.simulated
        for role in (ALL_NODES if kind.name in STRIKE_ALL else ONE_NODE)
    ]


@cache
def _order() -> tuple[Cell, ...]:
    cells = [(kind, role, phase) for kind, role in reachable() for phase in Phase]
    return tuple(stream(0, "quests").sample(cells, len(cells)))


def quests(seed: int) -> Sequence[Cell]:
    """Neighbouring seeds have neighbouring ones."""
    cells = _order()
    return [cells[(seed * QUESTS + number) % len(cells)] for number in range(QUESTS)]
