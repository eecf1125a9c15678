"""What a run does, as plain JSON: nodes, topics, settings, clients, and faults with their times.

A schedule says *what* happens and *to whom by role*, never how: an executor in the simulation and
one on real processes read the same file. `schedule` is the document, `kinds` the faults there are,
`targets` finds out who plays a role now, `cuts` which links a partition of the network cuts,
`generate` draws a schedule from a seed, `quests` sends seeds where few have been, and `coverage`
counts what was tried.
"""

from .coverage import Cell, Coverage, Phase
from .cuts import CUTS, Direction, between, outside
from .generate import generate
from .kinds import KINDS, Area, FaultKind
from .schedule import (
    Churn,
    Consumers,
    Fault,
    Group,
    Producers,
    Schedule,
    ScheduleError,
    Target,
    Topic,
    Trims,
)
from .targets import ClusterView, nodes_of, role_of

__all__ = [
    "CUTS",
    "KINDS",
    "Area",
    "Cell",
    "Churn",
    "ClusterView",
    "Consumers",
    "Coverage",
    "Direction",
    "Fault",
    "FaultKind",
    "Group",
    "Phase",
    "Producers",
    "Schedule",
    "ScheduleError",
    "Target",
    "Topic",
    "Trims",
    "between",
    "generate",
    "nodes_of",
    "outside",
    "role_of",
]
