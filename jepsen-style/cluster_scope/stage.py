"""The hosts of a run by their roles, for faults and for judging."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..schedule import Fault, Phase, Target, role_of
from ..simulation import Host, World
from ..simulation.cluster import Cluster
from .watched import Watch

Heal = Callable[[], None]
Do = Callable[[Fault, Sequence[int]], Heal]
"""Strikes these nodes; what it returns is called when the fault's time is over."""


def nothing() -> None:
    """Nothing has to be undone."""


@dataclass(frozen=True)
class Stage:
    """`schedule.ClusterView`, too: over the newest image that any node has applied."""

    world: World
    cluster: Cluster
    watch: Watch
    groups: Sequence[str] = ()

    @property
    def node_ids(self) -> Sequence[int]:
        return tuple(self.cluster.hosts)

    def host(self, party: int | None) -> Host:
        """A node's, or the clients' for None, as `schedule.cuts` names them."""
        return self.cluster.client_host if party is None else self.cluster.hosts[party]

    def hosts(self, numbers: Sequence[int]) -> list[Host]:
        return [self.cluster.hosts[number] for number in numbers]

    def phase(self) -> Phase:
        """Judged by who runs, not by what the image has noticed yet."""
        partitions = [partition for _, partition in self.watch.ledger.partitions()]
        alive = {number for number, host in self.cluster.hosts.items() if host.alive}
        if any(partition.leader not in alive for partition in partitions):
            return Phase.LEADERLESS
        whole = all(len(partition.isr) == len(partition.replicas) for partition in partitions)
        return Phase.WHOLE if whole else Phase.CATCHING_UP

    def role(self, target: Target) -> str:
        keys = (key.rpartition("-") for key, _ in self.watch.ledger.partitions())
        partitions = [(topic, int(number)) for topic, _, number in keys]
        return role_of(target, self, self.groups, partitions)

    def replicas(self, topic: str, partition: int) -> Sequence[int]:
        image = self.watch.ledger.image
        found = None if image is None else image.partition(topic, partition)
        return () if found is None else found.replicas

    def leader(self, topic: str, partition: int) -> int | None:
        image = self.watch.ledger.image
        found = None if image is None else image.partition(topic, partition)
        return None if found is None or found.leader < 0 else found.leader

    def controller(self) -> int | None:
        return self.watch.active_controller()

    def partitions(self, topic: str) -> int:
        image = self.watch.ledger.image
        found = None if image is None else image.topics.get(topic)
        return 0 if found is None else len(found.partitions)
