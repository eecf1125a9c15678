"""The faults that a schedule may name, and their options with defaults.

Every fault lasts `for_ms` and is healed by its executor then: a stopped process starts again, a cut
is joined, a clock is set right. What a disk has lost stays lost.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType

Option = str | int | float | bool


class Area(Enum):
    """What a fault needs of an executor."""

    PROCESS = "process"
    NETWORK = "network"
    DISK = "disk"
    CLOCK = "clock"


@dataclass(frozen=True, slots=True)
class FaultKind:
    name: str
    area: Area
    options: Mapping[str, Option] = field(default_factory=dict)
    """Every option with its default."""
    damages: bool = False
    """What was synced may be gone from the target's disk (RULES V1)."""
    cuts_power: bool = False
    """What was not synced may be gone: a loss for page-cache topics."""
    simulated: bool = True
    """Whether the simulation has it, too."""


def _kinds(*kinds: FaultKind) -> Mapping[str, FaultKind]:
    return MappingProxyType({kind.name: kind for kind in kinds})


KEEPS = ("none", "prefix", "any", "all")
"""How much of the unsynced survives a power cut, each file by itself; the last one perhaps torn."""

PLACES = ("log", "index", "checkpoint", "quorum")
"""Which files a damage hits: segments, their indexes, the checkpoints, the quorum's journal."""

DIRECTIONS = ("both", "in", "out")

KINDS: Mapping[str, FaultKind] = _kinds(
    # Processes. The file system keeps what was written.
    FaultKind("kill", Area.PROCESS),
    FaultKind("kill-all", Area.PROCESS),
    FaultKind("pause", Area.PROCESS),
    # The process gets no processor time, but its sockets' timers and clocks go on.
    FaultKind("stall", Area.PROCESS),
    # By strace, at the n-th sync of one of its threads; the simulation enumerates them instead.
    FaultKind("kill-at-sync", Area.PROCESS, {"number": 1}, simulated=False),
    # SIGTERM, and started again.
    FaultKind("restart", Area.PROCESS),
    # Networks. `clients`: whether clients are cut off as well.
    FaultKind("isolate", Area.NETWORK, {"direction": "both", "clients": False}),
    FaultKind("halves", Area.NETWORK, {"clients": False}),
    # Nobody is heard by the next one.
    FaultKind("ring", Area.NETWORK),
    # Only the target is heard by everybody.
    FaultKind("bridge", Area.NETWORK),
    FaultKind("clients-cut", Area.NETWORK),
    FaultKind("reset", Area.NETWORK),
    FaultKind("delay", Area.NETWORK, {"latency_ms": 50, "jitter_ms": 50}),
    # Connections overtake each other; within one the order holds, as TCP's does.
    FaultKind("reorder", Area.NETWORK, {"jitter_ms": 200}),
    FaultKind("loss", Area.NETWORK, {"chance": 0.1}),
    # The target's answers to this API never arrive, whoever asked. `silently`: no reset tells it.
    FaultKind("lost-responses", Area.NETWORK, {"api": 0, "silently": True}),
    # The same for what is asked of it.
    FaultKind("lost-requests", Area.NETWORK, {"api": 0, "silently": True}),
    # On each open connection one of the target's answers to this API comes so much later, and all
    # that follows it there; other connections overtake it.
    FaultKind("late-responses", Area.NETWORK, {"api": 0, "by_ms": 1_500}),
    # The same for what is asked of it.
    FaultKind("late-requests", Area.NETWORK, {"api": 0, "by_ms": 1_500}),
    # Disks.
    FaultKind("power-cut", Area.DISK, {"keep": "any"}, cuts_power=True),
    FaultKind("blackout", Area.DISK, {"keep": "any"}, cuts_power=True),
    FaultKind("failed-sync", Area.DISK, {"after_syncs": 0}, cuts_power=True),
    FaultKind("write-error", Area.DISK, {"after_writes": 0}),
    FaultKind("read-error", Area.DISK, {"after_reads": 0}),
    FaultKind("full-disk", Area.DISK, {"slack_bytes": 0}),
    FaultKind("slow-disk", Area.DISK, {"sync_ms": 100}),
    # These stop the process, hurt its files, and start it again.
    FaultKind("bit-flip", Area.DISK, {"place": "log", "where": 0.5, "bit": 0}, damages=True),
    FaultKind("misdirected-write", Area.DISK, {"place": "log", "where": 0.5}, damages=True),
    FaultKind("stale-block", Area.DISK, {"place": "log", "where": 0.5}, damages=True),
    FaultKind("wiped-disk", Area.DISK, damages=True),
    # Clocks.
    FaultKind("clock-step", Area.CLOCK, {"seconds": 10.0}),
    FaultKind("clock-skew", Area.CLOCK, {"rate": 1.01}),
)
"""By name."""
