"""Strikes when the schedule says, whom it says, and heals when the time is over."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from ..clients import Journal
from ..schedule import KINDS, Fault, Schedule, nodes_of
from .coverage import Coverage
from .network_faults import NetworkFaults
from .process_faults import Do, ProcessFaults
from .view import RunView

NEMESIS = "nemesis"


class NotBuilt(Exception):
    """The schedule asks for what this executor cannot do; one sentence."""


KNOWN_KINDS = frozenset(
    {"kill", "kill-all", "pause", "stall", "restart"}
    | {"isolate", "halves", "ring", "bridge", "clients-cut"}
    | {"reset", "delay", "reorder", "loss", "lost-responses"}
)


def refuse_unknown(schedule: Schedule) -> None:
    """Raises NotBuilt for kinds of faults, or roles, without means here."""
    for fault in schedule.faults:
        if fault.kind not in KNOWN_KINDS:
            area = KINDS[fault.kind].area.value
            raise NotBuilt(f"{fault.kind}: faults of this {area} are not built for real processes")
        if fault.target.role == "coordinator":
            raise NotBuilt("groups are not part of the workload on real processes yet")


class Strikes:
    def __init__(
        self,
        view: RunView,
        journal: Journal,
        coverage: Coverage,
        processes: ProcessFaults,
        network: NetworkFaults,
    ) -> None:
        self._view = view
        self._journal = journal
        self._coverage = coverage
        self._kinds: Mapping[str, Do] = {**processes.kinds, **network.kinds}

    async def carry_out(self, faults: Sequence[Fault]) -> None:
        """All of them, counted from now; returns when the last one is healed."""
        async with asyncio.TaskGroup() as all_faults:
            began = asyncio.get_running_loop().time()
            for fault in faults:
                all_faults.create_task(self._strike(fault, began))

    async def _strike(self, fault: Fault, began: float) -> None:
        now = asyncio.get_running_loop().time
        await asyncio.sleep(began + fault.at_ms / 1000 - now())
        nodes = nodes_of(fault.target, self._view)
        if not nodes:
            return
        role = fault.target.role
        self._coverage.add(fault.kind, role, self._view.phase())
        seen = {"kind": fault.kind, "role": role, "node": nodes[0], "nodes": list(nodes)}
        options = dict(fault.options)
        self._journal.observe(NEMESIS, "fault", {**seen, "for_ms": fault.for_ms, **options})
        heal = await self._kinds[fault.kind](fault, nodes)
        await asyncio.sleep(began + (fault.at_ms + fault.for_ms) / 1000 - now())
        await heal()
        self._journal.observe(NEMESIS, "heal", seen)
