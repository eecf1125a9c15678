"""Strikes when the schedule says, whom it says, and heals when the time is over."""

from __future__ import annotations

from collections.abc import Sequence

from ..schedule import Fault, nodes_of
from .disk_faults import DiskFaults
from .network_faults import NetworkFaults
from .process_faults import ProcessFaults
from .stage import Stage
from .supervisor import Supervisor


class Injector:
    def __init__(self, stage: Stage, supervisor: Supervisor, *, sync_s: float) -> None:
        self.cells: dict[tuple[str, str], int] = {}
        """(kind, role) -> strikes that hit somebody."""
        self._stage = stage
        self._kinds = {
            **ProcessFaults(stage, supervisor).kinds,
            **NetworkFaults(stage).kinds,
            **DiskFaults(stage, supervisor, sync_s=sync_s).kinds,
        }

    @property
    def kinds(self) -> set[str]:
        return {kind for kind, _ in self.cells}

    @property
    def strikes(self) -> int:
        return sum(self.cells.values())

    def schedule(self, faults: Sequence[Fault]) -> float:
        """All of them, counted from now; returns the world time at which all is healed."""
        world = self._stage.world
        for fault in faults:
            world.at(fault.at_ms / 1000, self._strike, fault)
        longest = max((fault.at_ms + fault.for_ms for fault in faults), default=0)
        return world.now + longest / 1000

    def _strike(self, fault: Fault) -> None:
        nodes = nodes_of(fault.target, self._stage)
        if not nodes:
            return
        world = self._stage.world
        world.note(f"fault {fault.kind} {nodes}")
        heal = self._kinds[fault.kind](fault, nodes)
        cell = fault.kind, fault.target.role
        self.cells[cell] = self.cells.get(cell, 0) + 1
        world.at(fault.for_ms / 1000, heal)
