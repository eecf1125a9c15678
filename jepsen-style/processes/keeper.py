"""Who keeps nodes running: every stop has an end, and nobody may end by itself."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence

from ...client.cluster.launch import last_words
from ...testing import LocalCluster
from ..schedule import Fault

STARTS_IN_S = 15.0
"""A process younger than this may, on a busy machine, not handle SIGTERM yet, which then ends it:
no fault of the node's."""


class Keeper:
    """Faults may overlap: a node runs again when the last one that stopped it is over."""

    def __init__(self, cluster: LocalCluster) -> None:
        self._cluster = cluster
        self._stops: Counter[int] = Counter()
        self._excuses: Counter[int] = Counter()
        self._started_at: dict[int, float] = {}
        self.failures: list[str] = []
        """What no node may do: end by itself, or with an error when told to end."""
        self.leaders_killed = 0

    def dead(self) -> list[str]:
        """Nodes that do not run though no fault stopped them: each ended by itself."""
        return [
            f"failed: node {node_id} ended by itself: {last_words(self._cluster.folder, node_id)}"
            for node_id in self._cluster.node_ids
            if not self._stops[node_id]
            and not self._excuses[node_id]
            and not self._cluster.is_running(node_id)
        ]

    def stop(self, nodes: Sequence[int]) -> list[int]:
        """Keep them down from now on; those that no other fault stops already are returned. Whoever
        died by itself would go unnoticed when it is started again, so that is noted here."""
        self.failures += self.dead()
        free = [node_id for node_id in nodes if not self._stops[node_id]]
        self._stops.update(nodes)
        return free

    def kill(self, fault: Fault, nodes: Sequence[int]) -> None:
        """SIGKILL for those that live, and keep them down."""
        for node_id in self.stop(nodes):
            self._cluster.kill(node_id)
            self.leaders_killed += fault.target.role == "leader"

    def let_up(self, nodes: Sequence[int]) -> None:
        for node_id in nodes:
            self._stops[node_id] -= 1
        self.start(nodes)

    def holds_down(self, node_id: int) -> bool:
        """Some fault has stopped it and is not over."""
        return self._stops[node_id] > 0

    def excuse(self, nodes: Sequence[int]) -> None:
        """Their disks fail them: they may end, and stay so until `expect` takes them back."""
        self.failures += self.dead()
        self._excuses.update(nodes)

    def expect(self, nodes: Sequence[int]) -> None:
        for node_id in nodes:
            self._excuses[node_id] -= 1
        self.start(nodes)

    def has_excuse(self, node_id: int) -> bool:
        """For ending with an error when it is told to end."""
        age_s = time.monotonic() - self._started_at.get(node_id, 0.0)
        return self._excuses[node_id] > 0 or age_s <= STARTS_IN_S

    def start(self, nodes: Sequence[int]) -> None:
        """Those that neither run nor are held down."""
        for node_id in nodes:
            if self._stops[node_id] or self._cluster.is_running(node_id):
                continue
            self._started_at[node_id] = time.monotonic()
            self._cluster.start(node_id, wait=False)
