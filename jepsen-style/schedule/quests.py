"""Where seeds are sent on purpose: cells of the coverage that chance alone reaches seldom.

Every third seed has a consumer group and is sent to its coordinator, the others to everybody else.
Either walk goes through its cells in one order, shuffled once and for all, a few for each seed: a
range of seeds covers them, and what a seed does still depends on nothing but itself. A quest is an
intention. Whether the cluster was in that phase, and who played that role, is seen when the fault
strikes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from ..simulation.dice import stream
from .coverage import Cell, Phase
from .kinds import KINDS

QUESTS = 3
"""Of each seed."""

GROUPS_EVERY = 3
"""Seeds: one of so many has a consumer group."""

COORDINATOR = "coordinator"
ONE_NODE = ("leader", "follower", "controller", COORDINATOR)
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


def has_group(seed: int) -> bool:
    return seed % GROUPS_EVERY == 0


@cache
def _order(*, at_coordinators: bool) -> tuple[Cell, ...]:
    cells = [
        (kind, role, phase)
        for kind, role in reachable()
        for phase in Phase
        if (role == COORDINATOR) is at_coordinators
    ]
    return tuple(stream(0, "quests").sample(cells, len(cells)))


def quests(seed: int) -> Sequence[Cell]:
    """Neighbouring seeds have neighbouring ones."""
    with_group = has_group(seed)
    cells = _order(at_coordinators=with_group)
    before = seed // GROUPS_EVERY if with_group else seed - seed // GROUPS_EVERY - 1
    return [cells[(before * QUESTS + number) % len(cells)] for number in range(QUESTS)]
