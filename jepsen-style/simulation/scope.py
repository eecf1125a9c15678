"""What a scope of the simulation hands to the command: its options, and how a seed is run."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from ..schedule.coverage import Cell


@dataclass(slots=True)
class SeedResult:
    """What a seed gave."""

    seed: int
    violations: list[str] = field(default_factory=list)
    """Each begins with its kind and a colon."""
    stuck: list[str] = field(default_factory=list)
    """Why it proves nothing: no progress, or too little happened."""
    acknowledged: int = 0
    faults: int = 0
    simulated_s: float = 0.0
    digest: str = ""
    cells: Mapping[Cell, int] = field(default_factory=dict)
    """What was tried, where a scope counts that."""

    @property
    def good(self) -> bool:
        return not self.violations and not self.stuck


class SeedPlan(Protocol):
    """What, besides the seed, makes a run. Travels to other processes."""

    def seeds(self) -> range | None:
        """Those that the plan itself is about; None: any."""
        ...

    def run(self, seed: int) -> SeedResult:
        """Never raises for what the simulated do."""
        ...

    def arguments(self, seed: int) -> str:
        """The options of the command that repeat it."""
        ...


@dataclass(frozen=True, slots=True)
class Scope:
    name: str
    reachable: Sequence[tuple[str, str]]
    """Kinds of faults and roles that seeds may draw; empty where that is not counted."""
    add_options: Callable[[argparse.ArgumentParser], None]
    plan: Callable[[argparse.Namespace], SeedPlan]
