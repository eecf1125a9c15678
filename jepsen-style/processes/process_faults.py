"""Signals: killed, paused, ended in order, and started again."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence

from ...client.cluster.launch import last_words
from ...testing import LocalCluster, NotInTime
from ..schedule import Fault

Heal = Callable[[], Awaitable[None]]
Do = Callable[[Fault, Sequence[int]], Awaitable[Heal]]
"""Strikes these nodes; what it returns is called when the fault's time is over."""

ORDERLY_S = 10.0
"""A node that was told to end and has not by then is killed: its cluster may be cut apart."""


async def nothing() -> None:
    """Nothing has to be undone."""


STARTS_IN_S = 15.0
"""A process younger than this may, on a busy machine, not handle SIGTERM yet, which then ends it:
no fault of the node's."""


class ProcessFaults:
    """Faults may overlap: a node runs again when the last one that stopped it is over."""

    def __init__(self, cluster: LocalCluster) -> None:
        self._cluster = cluster
        self._stops: Counter[int] = Counter()
        self._pauses: Counter[int] = Counter()
        self._started_at: dict[int, float] = {}
        self.leaders_killed = 0
        self.failures: list[str] = []
        """What no node may do: end by itself, or with an error when told to end."""
        self.late_ends = 0
        """Orderly stops that had to be finished by SIGKILL."""
        self.kinds: Mapping[str, Do] = {
            "kill": self._kill,
            "kill-all": self._kill,
            "pause": self._pause,
            "stall": self._pause,
            "restart": self._restart,
        }

    def dead(self) -> list[str]:
        """Nodes that do not run though no fault stopped them: each ended by itself."""
        return [
            f"failed: node {node_id} ended by itself: {last_words(self._cluster.folder, node_id)}"
            for node_id in self._cluster.node_ids
            if not self._stops[node_id] and not self._cluster.is_running(node_id)
        ]

    def _about_to_stop(self, nodes: Sequence[int]) -> list[int]:
        """Those that no other fault stops already. Whoever died by itself would go unnoticed when
        it is started again, so that is noted here."""
        self.failures += self.dead()
        free = [node_id for node_id in nodes if not self._stops[node_id]]
        self._stops.update(nodes)
        return free

    async def _kill(self, fault: Fault, nodes: Sequence[int]) -> Heal:
        for node_id in self._about_to_stop(nodes):
            self._cluster.kill(node_id)
            self.leaders_killed += fault.target.role == "leader"
        return lambda: self._start(nodes)

    async def _restart(self, fault: Fault, nodes: Sequence[int]) -> Heal:
        await asyncio.gather(*map(self._end, self._about_to_stop(nodes)))
        return lambda: self._start(nodes)

    async def _end(self, node_id: int) -> None:
        asked_at = time.monotonic()
        try:
            await asyncio.to_thread(self._cluster.stop, node_id, seconds=ORDERLY_S)
        except NotInTime:
            self.late_ends += 1
            self._cluster.kill(node_id)
        except RuntimeError as error:
            age_s = asked_at - self._started_at.get(node_id, 0.0)
            if age_s > STARTS_IN_S:
                self.failures.append(f"failed: {error}")

    async def _start(self, nodes: Sequence[int]) -> None:
        for node_id in nodes:
            self._stops[node_id] -= 1
            if not self._stops[node_id]:
                self._started_at[node_id] = time.monotonic()
                self._cluster.start(node_id, wait=False)

    async def _pause(self, fault: Fault, nodes: Sequence[int]) -> Heal:
        for node_id in nodes:
            self._pauses[node_id] += 1
            self._cluster.pause(node_id)

        async def heal() -> None:
            for node_id in nodes:
                self._pauses[node_id] -= 1
                if not self._pauses[node_id]:
                    self._cluster.resume(node_id)

        return heal
