"""Signals: killed, paused, ended in order, and started again."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence

from ...testing import LocalCluster, NotInTime
from ..schedule import Fault
from .keeper import Keeper

Heal = Callable[[], Awaitable[None]]
Do = Callable[[Fault, Sequence[int]], Awaitable[Heal]]
"""Strikes these nodes; what it returns is called when the fault's time is over."""

ORDERLY_S = 10.0
"""A node that was told to end and has not by then is killed: its cluster may be cut apart."""


async def nothing() -> None:
    """Nothing has to be undone."""


class Missed(Exception):
    """Whom the fault was meant for is not there to be hit."""


class ProcessFaults:
    def __init__(self, cluster: LocalCluster, keeper: Keeper) -> None:
        self._cluster = cluster
        self._keeper = keeper
        self._pauses: Counter[int] = Counter()
        self.late_ends = 0
        """Orderly stops that had to be finished by SIGKILL."""
        self.kinds: Mapping[str, Do] = {
            "kill": self._kill,
            "kill-all": self._kill,
            "pause": self._pause,
            "stall": self._pause,
            "restart": self._restart,
        }

    async def _kill(self, fault: Fault, nodes: Sequence[int]) -> Heal:
        self._keeper.kill(fault, nodes)
        return self._lets_up(nodes)

    async def _restart(self, fault: Fault, nodes: Sequence[int]) -> Heal:
        await asyncio.gather(*map(self._end, self._keeper.stop(nodes)))
        return self._lets_up(nodes)

    async def _end(self, node_id: int) -> None:
        excused = self._keeper.has_excuse(node_id)
        try:
            await asyncio.to_thread(self._cluster.stop, node_id, seconds=ORDERLY_S)
        except NotInTime:
            self.late_ends += 1
            self._cluster.kill(node_id)
        except RuntimeError as error:
            if not excused and not self._keeper.has_excuse(node_id):
                self._keeper.failures.append(f"failed: {error}")

    def _lets_up(self, nodes: Sequence[int]) -> Heal:
        async def heal() -> None:
            self._keeper.let_up(nodes)

        return heal

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
