"""Disks: without power, full, slow, failing, damaged, gone; and death at a sync."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from random import Random

from ...client.cluster.launch import last_words
from ...testing import LocalCluster
from ..schedule import Fault
from .caretaker import Caretaker
from .damage import damage
from .halting import halt
from .keeper import Keeper
from .process_faults import Do, Heal, Missed
from .tracing import Tracer, failing, killing, slow
from .volumes import EXT4, Volume, Volumes

ENDS_WITHIN_S = 15.0
"""A node whose sync has failed, even when something has paused it meanwhile."""
AFTERMATH_S = 1.0
"""What a full disk has set going may end a node a moment after there is room again."""
LOOK_S = 0.05


class DiskFaults:
    """`kinds` has what the means at hand can do."""

    def __init__(
        self,
        cluster: LocalCluster,
        keeper: Keeper,
        volumes: Volumes | None,
        caretaker: Caretaker,
        dice: Random,
        *,
        traces: bool,
    ) -> None:
        """`dice`: which files are damaged."""
        self._cluster = cluster
        self._keeper = keeper
        self._caretaker = caretaker
        self._dice = dice
        self._volumes = volumes
        self._traced: dict[int, None] = {}
        """Nodes that strace is attached to: only one can be."""
        self._alone_on = {node_id: asyncio.Lock() for node_id in cluster.node_ids}
        """A disk must not be filled while it is not mounted."""
        kinds: dict[str, Do] = {
            "bit-flip": self._damage,
            "misdirected-write": self._damage,
            "stale-block": self._damage,
            "wiped-disk": self._wipe,
        }
        if volumes is not None:
            kinds["full-disk"] = self._full
            if volumes.kind == EXT4:
                kinds |= {"power-cut": self._power_cut, "blackout": self._power_cut}
        if traces:
            kinds |= {
                "failed-sync": self._fail,
                "slow-disk": self._slow,
                "kill-at-sync": self._kill_at_sync,
            }
        self.kinds: Mapping[str, Do] = kinds

    # Files of a node that does not run

    async def _damage(self, fault: Fault, nodes: Sequence[int]) -> Heal:
        def change(node_id: int) -> None:
            damage(Path(self._cluster.data_dir(node_id)), fault, self._dice)

        return await self._hurt_files(fault, nodes, change)

    async def _wipe(self, fault: Fault, nodes: Sequence[int]) -> Heal:
        return await self._hurt_files(fault, nodes, self._caretaker.replace_disk)

    async def _hurt_files(
        self, fault: Fault, nodes: Sequence[int], hurt: Callable[[int], None]
    ) -> Heal:
        for node_id in nodes:
            self._caretaker.take_on(node_id)
            self._keeper.kill(fault, [node_id])
            async with self._alone_on[node_id]:
                if self._cluster.is_running(node_id):
                    # Another fault was just stopping it in order.
                    self._cluster.kill(node_id)
                await asyncio.to_thread(hurt, node_id)

        async def heal() -> None:
            self._keeper.let_up(nodes)
            for node_id in nodes:
                await self._caretaker.admitted(node_id)

        return heal

    # On volumes

    async def _power_cut(self, fault: Fault, nodes: Sequence[int]) -> Heal:
        self._keeper.excuse(nodes)
        await asyncio.gather(*(self._cut(fault, node_id) for node_id in nodes))

        async def heal() -> None:
            self._keeper.let_up(nodes)
            self._keeper.expect(nodes)

        return heal

    async def _cut(self, fault: Fault, node_id: int) -> None:
        disk = self._disk(node_id)
        async with self._alone_on[node_id]:
            # Whoever loses its power says nothing afterwards. A process that went on would: Linux
            # lets an fdatasync that races with the shutdown return success for what it dropped.
            if self._cluster.is_running(node_id):
                await halt(self._cluster.pid(node_id))
            await asyncio.to_thread(disk.cut_power)
            self._keeper.kill(fault, [node_id])
            if self._cluster.is_running(node_id):
                # Another fault was just stopping it in order.
                self._cluster.kill(node_id)
            await asyncio.to_thread(disk.unmount)
            await asyncio.to_thread(disk.mount)

    async def _full(self, fault: Fault, nodes: Sequence[int]) -> Heal:
        self._keeper.excuse(nodes)
        for node_id in nodes:
            async with self._alone_on[node_id]:
                slack_bytes = int(fault.option("slack_bytes"))
                await asyncio.to_thread(self._disk(node_id).fill, slack_bytes)

        async def heal() -> None:
            for node_id in nodes:
                async with self._alone_on[node_id]:
                    await asyncio.to_thread(self._disk(node_id).drain)
            await asyncio.sleep(AFTERMATH_S)
            self._keeper.expect(nodes)

        return heal

    def _disk(self, node_id: int) -> Volume:
        assert self._volumes is not None
        return self._volumes[node_id]

    # By strace

    async def _fail(self, fault: Fault, nodes: Sequence[int]) -> Heal:
        tracers = await self._trace(nodes, failing(int(fault.option("after_syncs"))), may_end=True)
        pids = {node_id: self._cluster.pid(node_id) for node_id in tracers}

        async def heal() -> None:
            for node_id, tracer in tracers.items():
                if await self._let_go(node_id, tracer):
                    await self._must_end(node_id, pids[node_id])
            self._keeper.expect(nodes)

        return heal

    async def _must_end(self, node_id: int, pid: int) -> None:
        """RULES C4: a sync that has failed ends the process."""
        end = asyncio.get_running_loop().time() + ENDS_WITHIN_S
        while self._cluster.pid(node_id) == pid and self._cluster.is_running(node_id):
            if asyncio.get_running_loop().time() > end:
                words = last_words(self._cluster.folder, node_id)
                self._keeper.failures.append(
                    f"failed: node {node_id} goes on after a failed sync: {words}"
                )
                return
            await asyncio.sleep(LOOK_S)

    async def _slow(self, fault: Fault, nodes: Sequence[int]) -> Heal:
        tracers = await self._trace(nodes, slow(int(fault.option("sync_ms"))), may_end=False)

        async def heal() -> None:
            for node_id, tracer in tracers.items():
                await self._let_go(node_id, tracer)

        return heal

    async def _kill_at_sync(self, fault: Fault, nodes: Sequence[int]) -> Heal:
        tracers = await self._trace(nodes, killing(int(fault.option("number"))), may_end=True)

        async def heal() -> None:
            for node_id, tracer in tracers.items():
                killed = await self._let_go(node_id, tracer)
                self._keeper.leaders_killed += killed and fault.target.role == "leader"
            self._keeper.expect(nodes)

        return heal

    async def _trace(
        self, nodes: Sequence[int], injection: str, *, may_end: bool
    ) -> dict[int, Tracer]:
        """`may_end`: they are excused until `expect`. Raises Missed when none of them is there, or
        another fault traces them."""
        tracers = {}
        if may_end:
            self._keeper.excuse(nodes)
        for node_id in nodes:
            if node_id in self._traced or not self._cluster.is_running(node_id):
                continue
            self._traced[node_id] = None
            tracer = Tracer(self._cluster.pid(node_id), injection)
            if await tracer.attached():
                tracers[node_id] = tracer
            else:
                await self._let_go(node_id, tracer)
        if not tracers:
            if may_end:
                self._keeper.expect(nodes)
            raise Missed
        return tracers

    async def _let_go(self, node_id: int, tracer: Tracer) -> bool:
        """Whether it had injected anything."""
        try:
            return await tracer.detach()
        finally:
            with suppress(KeyError):
                del self._traced[node_id]
