"""When a fault strikes, whom, and when it is left out."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

from logboat.jepsen_style.clients import Journal, Witness
from logboat.jepsen_style.processes.coverage import Coverage, Phase
from logboat.jepsen_style.processes.draw import draw
from logboat.jepsen_style.processes.process_faults import Heal, Missed
from logboat.jepsen_style.processes.strikes import Strikes
from logboat.jepsen_style.processes.view import RunView
from logboat.jepsen_style.schedule import Fault, Target
from logboat.testing import LocalCluster
from tests.metadata.virtual_loop import run

LEADER = Target("leader", "orders")


class Struck:
    """Strikes on a view that tests change, with one kind of fault that notes whom it hit."""

    def __init__(self, *, kind: str = "kill", misses: int = 0) -> None:
        self.kind = kind
        self.log: list[tuple[float, str, list[int]]] = []
        """Seconds since the start, what happened, to whom."""
        self._misses = misses
        self.down: set[int] = set()
        runs = SimpleNamespace(node_ids=[1, 2, 3], is_running=lambda node: node not in self.down)
        cluster = cast(LocalCluster, runs)
        journal = Journal(time.monotonic_ns, cast(Witness, None))
        self.view = RunView(cluster, ["orders"], journal)
        self.coverage = Coverage([])
        self.schedule = draw(1, nodes=3, minutes=1, mode="synced")
        kinds = {kind: self._act}
        self.strikes = Strikes(self.view, journal, self.coverage, kinds, self.schedule)

    def knows(
        self, partition: int = 0, *, leader: int = 1, isr: Sequence[int], elr: Sequence[int] = ()
    ) -> None:
        known: dict[str, Any] = {"leader": leader, "isr": isr, "elr": elr, "replicas": [1, 2, 3]}
        self.view._partitions["orders", partition] = known

    async def carry_out(self, target: Target, *, at_ms: int = 0, for_ms: int = 100) -> None:
        self.began = asyncio.get_running_loop().time()
        await self.strikes.carry_out([Fault(at_ms, self.kind, target, for_ms)])

    async def _act(self, fault: Fault, nodes: Sequence[int]) -> Heal:
        if self._misses:
            self._misses -= 1
            raise Missed
        self._note("struck", nodes)

        async def heal() -> None:
            self._note("healed", nodes)

        return heal

    def _note(self, what: str, nodes: Sequence[int]) -> None:
        passed = asyncio.get_running_loop().time() - self.began
        self.log.append((round(passed, 1), what, list(nodes)))


def of_node(kind: str, node_id: int) -> tuple[Fault, list[int]]:
    return Fault(0, kind, Target("node", number=node_id), 100), [node_id]


def test_no_disk_is_damaged_whose_node_is_the_last_member_of_a_partition() -> None:
    struck = Struck(kind="bit-flip")
    struck.knows(0, isr=[1, 2])
    struck.knows(1, isr=[1])
    run(struck.carry_out(Target("node", number=1)))
    assert struck.log == []
    assert struck.strikes.outside == {"bit-flip": 1}
    run(struck.carry_out(Target("node", number=2)))
    assert [nodes for _, what, nodes in struck.log if what == "struck"] == [[2]]


def test_a_mere_kill_leaves_the_guarantee_in_force() -> None:
    struck = Struck(kind="kill")
    struck.knows(isr=[1])
    run(struck.carry_out(Target("node", number=1)))
    assert struck.log == [(0.0, "struck", [1]), (0.1, "healed", [1])]


def test_a_member_whose_disk_was_damaged_before_is_not_counted_on() -> None:
    struck = Struck(kind="wiped-disk")
    struck.knows(isr=[1, 2])
    run(struck.carry_out(Target("node", number=1)))
    assert not struck.strikes._spares(*of_node("failed-sync", 2))
    struck.knows(isr=[1, 2], elr=[3])
    assert struck.strikes._spares(*of_node("failed-sync", 2))


def test_a_fault_waits_until_somebody_plays_its_role_and_lasts_as_long_as_ever() -> None:
    struck = Struck()
    struck.knows(leader=-1, isr=[])

    async def scenario() -> None:
        asyncio.get_running_loop().call_later(3.05, lambda: struck.knows(leader=2, isr=[2]))
        await struck.carry_out(LEADER, at_ms=1_000, for_ms=500)

    run(scenario())
    assert struck.log == [(3.1, "struck", [2]), (3.6, "healed", [2])]
    assert struck.coverage.kinds == {"kill"}


def test_a_fault_waits_until_the_guarantee_stays_in_force() -> None:
    struck = Struck(kind="failed-sync")
    struck.knows(isr=[1])

    async def scenario() -> None:
        asyncio.get_running_loop().call_later(2.05, lambda: struck.knows(isr=[1, 3]))
        await struck.carry_out(LEADER)

    run(scenario())
    assert struck.log == [(2.1, "struck", [1]), (2.2, "healed", [1])]
    assert not struck.strikes.outside


def test_a_fault_that_is_done_to_a_process_waits_for_it_to_run() -> None:
    struck = Struck(kind="kill-at-sync")
    struck.knows(isr=[1, 2, 3])
    struck.down.add(1)

    async def scenario() -> None:
        asyncio.get_running_loop().call_later(1.05, struck.down.clear)
        await struck.carry_out(LEADER)

    run(scenario())
    assert struck.log == [(1.1, "struck", [1]), (1.2, "healed", [1])]


def test_a_fault_that_misses_tries_again_and_counts_once() -> None:
    struck = Struck(misses=3)
    struck.knows(isr=[1, 2, 3])
    run(struck.carry_out(LEADER))
    assert struck.log == [(0.3, "struck", [1]), (0.4, "healed", [1])]
    assert struck.coverage.strikes == 1
    assert struck.coverage.cells == {("kill", "leader", Phase.WHOLE): 1}


def test_no_fault_waits_for_ever() -> None:
    struck = Struck()
    struck.knows(leader=-1, isr=[])

    async def scenario() -> float:
        await struck.carry_out(LEADER)
        return asyncio.get_running_loop().time() - struck.began

    waited = run(scenario())
    assert struck.log == []
    patience = struck.schedule.settle_ms / 1000
    assert patience <= waited < patience + 1
    assert not struck.strikes.outside
