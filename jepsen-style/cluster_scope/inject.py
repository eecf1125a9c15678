"""Strikes when the schedule says, whom it says, and heals when the time is over."""

from __future__ import annotations

from collections.abc import Sequence

from ..clients import Journal
from ..schedule import KINDS, Coverage, Fault, Target, nodes_of
from ..schedule.quests import reachable
from .disk_faults import DiskFaults
from .network_faults import NetworkFaults
from .observing import observe_fault, observe_heal
from .process_faults import ProcessFaults
from .stage import Heal, Stage
from .supervisor import Supervisor


class Injector:
    def __init__(
        self, stage: Stage, supervisor: Supervisor, journal: Journal, *, sync_s: float
    ) -> None:
        self.coverage = Coverage(reachable())
        """Of strikes that met a running process."""
        self._stage = stage
        self._supervisor = supervisor
        self._journal = journal
        self._kinds = {
            **ProcessFaults(stage, supervisor).kinds,
            **NetworkFaults(stage).kinds,
            **DiskFaults(
                stage, supervisor, sync_s=sync_s, on_failed_sync=self._observe_failed_sync
            ).kinds,
        }

    def schedule(self, faults: Sequence[Fault]) -> float:
        """All of them, counted from now; returns the world time at which all is healed."""
        world = self._stage.world
        for fault in faults:
            world.at(fault.at_ms / 1000, self._strike, fault)
        longest = max((fault.at_ms + fault.for_ms for fault in faults), default=0)
        return world.now + longest / 1000

    def _strike(self, fault: Fault) -> None:
        stage = self._stage
        nodes = nodes_of(fault.target, stage)
        role = stage.role(fault.target)
        if KINDS[fault.kind].damages and (others := self._supervisor.damageable(nodes)) != nodes:
            nodes, role = others, stage.role(Target("node", number=others[0]))
        if not nodes:
            return
        stage.world.note(f"fault {fault.kind} {nodes}")
        if any(host.alive for host in stage.hosts(nodes)):
            self.coverage.add(fault.kind, role, stage.phase())
        observe_fault(self._journal, fault, role, nodes)
        heal = self._kinds[fault.kind](fault, nodes)
        stage.world.at(fault.for_ms / 1000, self._heal, fault, role, nodes, heal)

    def _observe_failed_sync(self, fault: Fault, number: int) -> None:
        """Once more, now that it has happened: a ledger asks when a disk lost what it had."""
        role = self._stage.role(Target("node", number=number))
        observe_fault(self._journal, fault, role, [number])

    def _heal(self, fault: Fault, role: str, nodes: Sequence[int], heal: Heal) -> None:
        heal()
        observe_heal(self._journal, fault, role, nodes)
