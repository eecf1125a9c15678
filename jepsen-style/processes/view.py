"""Who plays which role now, asked of every node over its HTTP port, past all proxies."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from ...client.cluster.probe import ask
from ...testing import LocalCluster
from ..clients import OBSERVER, Journal
from .coverage import Phase

LOOK_S = 0.2
ASK_S = 0.5
NOBODY = -1


class RunView:
    """A `schedule.ClusterView`. Of several nodes' views of a partition the newest counts."""

    def __init__(self, cluster: LocalCluster, topics: Sequence[str], journal: Journal) -> None:
        self._cluster = cluster
        self._topics = topics
        self._journal = journal
        self._partitions: dict[tuple[str, int], dict[str, Any]] = {}
        self._controller = NOBODY
        self._metadata_index = -1
        self._looked: dict[tuple[int, str, int], int] = {}
        """(node, partition) -> place in the history at which the last look at it began."""
        self.leader_changes = 0

    @property
    def node_ids(self) -> Sequence[int]:
        return self._cluster.node_ids

    def is_running(self, node_id: int) -> bool:
        return self._cluster.is_running(node_id)

    def replicas(self, topic: str, partition: int) -> Sequence[int]:
        found = self._partitions.get((topic, partition))
        return () if found is None else tuple(found["replicas"])

    def leader(self, topic: str, partition: int) -> int | None:
        found = self._partitions.get((topic, partition))
        return None if found is None or found["leader"] < 0 else int(found["leader"])

    def controller(self) -> int | None:
        return None if self._controller < 0 else self._controller

    def partitions(self, topic: str) -> int:
        return sum(1 for name, _ in self._partitions if name == topic)

    def phase(self) -> Phase:
        views = self._partitions.values()
        if any(view["leader"] < 0 for view in views):
            return Phase.LEADERLESS
        whole = all(len(view["isr"]) == len(view["replicas"]) for view in views)
        return Phase.WHOLE if whole else Phase.CATCHING_UP

    def has_members_besides(self, nodes: Sequence[int]) -> bool:
        """Every partition has somebody else in ISR or ELR."""
        return all({*view["isr"], *view["elr"]} - {*nodes} for view in self._partitions.values())

    def is_whole(self) -> bool:
        return bool(self._partitions) and self.phase() is Phase.WHOLE

    def state(self) -> str:
        """For people, when a wait was in vain."""
        return "; ".join(
            f"{topic}-{number} leader {view['leader']} epoch {view['leader_epoch']} "
            f"isr {view['isr']} elr {view['elr']}"
            for (topic, number), view in sorted(self._partitions.items())
        )

    async def watch(self) -> None:
        """Until cancelled. Each node by itself: one that is paused must not hold up the others."""
        await asyncio.gather(*map(self._watch_through, self.node_ids))

    async def _watch_through(self, node_id: int) -> None:
        while True:
            await self._look_through(node_id)
            await asyncio.sleep(LOOK_S)

    async def _look_through(self, node_id: int) -> None:
        if not self._cluster.is_running(node_id):
            return
        overview = await self._ask(node_id, "/api/v1/cluster")
        if overview is not None and overview["metadata_index"] >= self._metadata_index:
            self._metadata_index = overview["metadata_index"]
            self._controller = overview["controller_id"]
        for topic in self._topics:
            began = self._journal.history.events
            document = await self._ask(node_id, f"/api/v1/topics/{topic}")
            for view in () if document is None else document["partitions"]:
                self._take(topic, view)
                self._looked[node_id, topic, int(view["partition"])] = began

    async def _ask(self, node_id: int, path: str) -> Any:
        address = self._cluster.node(node_id).http
        answer = await asyncio.to_thread(ask, address, path, timeout_seconds=ASK_S)
        return None if answer is None or answer.status != 200 else answer.body

    def _take(self, topic: str, view: dict[str, Any]) -> None:
        place = topic, int(view["partition"])
        before = self._partitions.get(place)
        if before is not None and age(view) < age(before):
            return
        self._partitions[place] = view
        key = f"{topic}-{view['partition']}"
        epoch, leader = view["leader_epoch"], view["leader"]
        if before is None or (epoch, leader) != (before["leader_epoch"], before["leader"]):
            self.leader_changes += before is not None
            named = None if leader < 0 else leader
            seen = {"key": key, "epoch": epoch, "leader": named}
            self._journal.observe(OBSERVER, "leader", seen)
        if before is None or age(view) != age(before):
            seen = {name: view[name] for name in ("isr", "elr", "partition_epoch")}
            seen["proposed"] = self._earliest(*place)
            self._journal.observe(OBSERVER, "isr", {"key": key, "epoch": epoch, **seen})

    def _earliest(self, topic: str, partition: int) -> int:
        """The place before which a change that is new here had no effect: no node had applied it
        when the last look at it began, for what is new is newer than all that those looks told."""
        return min(self._looked.get((node_id, topic, partition), 0) for node_id in self.node_ids)


def age(view: dict[str, Any]) -> tuple[int, int]:
    return view["leader_epoch"], view["partition_epoch"]
