"""Strikes when the schedule says, whom it says, and heals when the time is over."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence

from ..clients import NEMESIS, Journal
from ..schedule import KINDS, Fault, Schedule, nodes_of, role_of
from .coverage import Coverage
from .means import NEEDS, STRACE
from .process_faults import Do, Missed
from .view import RunView

LEAVES = frozenset({"failed-sync"})
"""Takes a node out of ISR and ELR in either mode (C1), though its disk is whole."""
LOOK_S = 0.1


class NotBuilt(Exception):
    """The schedule asks for what this executor cannot do; one sentence."""


def refuse_unknown(schedule: Schedule) -> None:
    """Raises NotBuilt for kinds of faults, or roles, that no machine has means for here, for
    what would be a loss outside the guarantee, and for topics whose records go by themselves."""
    for topic in schedule.topics:
        if schedule.retention(topic) is not None or schedule.is_compacted(topic):
            raise NotBuilt(f"{topic.name}: records that go by themselves are not judged here")
    damaged = {
        (fault.target.role, fault.target.number)
        for fault in schedule.faults
        if KINDS[fault.kind].damages
    }
    spare = min(map(schedule.least_holders, schedule.kept_topics())) - 1
    if len(damaged) > spare or any(role != "node" for role, _ in damaged):
        raise NotBuilt(
            f"at most {spare} disks, each of a node named by its number, may be damaged: a loss "
            "outside the guarantee is not judged here"
        )
    for fault in schedule.faults:
        if fault.kind not in NEEDS:
            area = KINDS[fault.kind].area.value
            raise NotBuilt(f"{fault.kind}: faults of this {area} are not built for real processes")
        if fault.target.role == "coordinator" and not schedule.groups:
            raise NotBuilt("a coordinator is to be hit, and there is no group")
        kind = KINDS[fault.kind]
        if kind.damages or (kind.cuts_power and fault.kind != "failed-sync"):
            cached = [topic.name for topic in schedule.topics if not schedule.is_synced(topic)]
            if cached:
                raise NotBuilt(f"{fault.kind}: {cached[0]} trusts the page cache; not judged here")


class Strikes:
    def __init__(
        self,
        view: RunView,
        journal: Journal,
        coverage: Coverage,
        kinds: Mapping[str, Do],
        schedule: Schedule,
    ) -> None:
        """`kinds`: those that there are means for; the others are skipped.

        On a busy machine nodes take their time to come back. So a fault waits for somebody to play
        its role, and for the guarantee to stay in force, as long as a step of the end may take.
        """
        self._patience_s = schedule.settle_ms / 1000
        self._groups = [group.name for group in schedule.groups]
        self._partitions = [
            (topic.name, number) for topic in schedule.topics for number in range(topic.partitions)
        ]
        self._view = view
        self._journal = journal
        self._coverage = coverage
        self._kinds = kinds
        self.skipped: Counter[str] = Counter()
        """Faults without means, by kind."""
        self.outside: Counter[str] = Counter()
        """Faults that were left out because nobody would have been left who holds everything."""
        self._damaged: dict[int, None] = {}
        """Nodes whose disks may hold bytes that nobody has found to be changed yet."""

    async def carry_out(self, faults: Sequence[Fault]) -> None:
        """All of them, counted from now; returns when the last one is healed."""
        async with asyncio.TaskGroup() as all_faults:
            began = asyncio.get_running_loop().time()
            for fault in faults:
                all_faults.create_task(self._strike(fault, began))

    def _whom(self, fault: Fault) -> Sequence[int]:
        nodes = nodes_of(fault.target, self._view)
        if STRACE in NEEDS[fault.kind]:
            # It attaches to a process.
            return [node_id for node_id in nodes if self._view.is_running(node_id)]
        return nodes

    def _spares(self, fault: Fault, nodes: Sequence[int]) -> bool:
        """Whether the guarantee stays in force (RULES V1): each partition keeps a member of ISR or
        ELR whose disk was never hurt. Timetables cannot see to that."""
        if not KINDS[fault.kind].damages and fault.kind not in LEAVES:
            return True
        return self._view.has_members_besides([*nodes, *self._damaged])

    async def _strike(self, fault: Fault, began: float) -> None:
        now = asyncio.get_running_loop().time
        act = self._kinds.get(fault.kind)
        if act is None:
            self.skipped[fault.kind] += 1
            return
        at = began + fault.at_ms / 1000
        await asyncio.sleep(at - now())
        while True:
            nodes = self._whom(fault)
            spared = not nodes or self._spares(fault, nodes)
            if nodes and spared and await self._hit(act, fault, nodes):
                return
            if now() > at + self._patience_s:
                break
            await asyncio.sleep(LOOK_S)
        if not spared:
            self.outside[fault.kind] += 1

    async def _hit(self, act: Do, fault: Fault, nodes: Sequence[int]) -> bool:
        """False: they were not there to be hit."""
        now = asyncio.get_running_loop().time
        until = now() + fault.for_ms / 1000
        role = role_of(fault.target, self._view, self._groups, self._partitions)
        phase = self._view.phase()
        if KINDS[fault.kind].damages:
            self._damaged.update(dict.fromkeys(nodes))
        seen = {"kind": fault.kind, "role": role, "node": nodes[0], "nodes": list(nodes)}
        options = dict(fault.options)
        self._journal.observe(NEMESIS, "fault", {**seen, "for_ms": fault.for_ms, **options})
        try:
            heal = await act(fault, nodes)
        except Missed:
            self._journal.observe(NEMESIS, "heal", seen)
            return False
        self._coverage.add(fault.kind, role, phase)
        await asyncio.sleep(until - now())
        await heal()
        self._journal.observe(NEMESIS, "heal", seen)
        return True
