"""Networks: cut in every shape, slow, lossy, and forgetful of answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from ..schedule import Fault
from ..simulation import Host, Link
from .lost_responses import LostResponses
from .stage import Do, Heal, Stage, nothing

Pair = tuple[Host, Host]
"""From whom, to whom."""


def between(one: Iterable[Host], other: Iterable[Host]) -> list[Pair]:
    """Both ways between two sides."""
    others = list(other)
    return [pair for a in one for b in others for pair in ((a, b), (b, a))]


class NetworkFaults:
    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._world = stage.world
        self._losses = LostResponses(stage.world)
        self._cuts: Counter[tuple[str, str]] = Counter()
        """How many cuts go through each link: it is open again when the last one is healed."""
        self.kinds: Mapping[str, Do] = {
            "isolate": self._isolate,
            "halves": self._halves,
            "ring": self._ring,
            "bridge": self._bridge,
            "clients-cut": self._clients_cut,
            "reset": self._reset,
            "delay": self._delay,
            "reorder": self._delay,
            "loss": self._loss,
            "lost-responses": self._lost_responses,
        }

    # Cuts

    def _cut(self, pairs: Sequence[Pair]) -> Heal:
        for source, target in pairs:
            self._cuts[source.name, target.name] += 1
            self._world.network.block(source, target)
        return partial(self._join, pairs)

    def _join(self, pairs: Sequence[Pair]) -> None:
        for source, target in pairs:
            self._cuts[source.name, target.name] -= 1
            if not self._cuts[source.name, target.name]:
                self._world.network.link(source, target).heal()

    def _isolate(self, fault: Fault, nodes: Sequence[int]) -> Heal:
        inside = self._stage.hosts(nodes)
        outside = self._stage.others(nodes, clients=bool(fault.option("clients")))
        pairs = between(inside, outside)
        direction = fault.option("direction")
        if direction == "in":
            pairs = [pair for pair in pairs if pair[1] in inside]
        elif direction == "out":
            pairs = [pair for pair in pairs if pair[0] in inside]
        return self._cut(pairs)

    def _halves(self, fault: Fault, nodes: Sequence[int]) -> Heal:
        """The target is among the fewer; clients, when cut at all, are with the others."""
        numbers = list(self._stage.node_ids)
        start = numbers.index(nodes[0])
        few = (numbers[start:] + numbers[:start])[: len(numbers) // 2]
        outside = self._stage.others(few, clients=bool(fault.option("clients")))
        return self._cut(between(self._stage.hosts(few), outside))

    def _ring(self, fault: Fault, nodes: Sequence[int]) -> Heal:
        hosts = self._stage.hosts(self._stage.node_ids)
        return self._cut(list(zip(hosts, [*hosts[1:], hosts[0]], strict=True)))

    def _bridge(self, fault: Fault, nodes: Sequence[int]) -> Heal:
        others = self._stage.others(nodes[:1])
        middle = len(others) // 2
        return self._cut(between(others[:middle], others[middle:]))

    def _clients_cut(self, fault: Fault, nodes: Sequence[int]) -> Heal:
        clients = [self._stage.cluster.client_host]
        return self._cut(between(self._stage.hosts(nodes), clients))

    # The rest

    def _reset(self, fault: Fault, nodes: Sequence[int]) -> Heal:
        for host in self._stage.hosts(nodes):
            for other in self._stage.others(nodes, clients=True):
                self._world.network.reset(host, other)
        return nothing

    def _links(self, nodes: Sequence[int]) -> list[Link]:
        around = self._stage.others(nodes, clients=True)
        return [
            self._world.network.link(source, target)
            for source, target in between(self._stage.hosts(nodes), around)
        ]

    def _delay(self, fault: Fault, nodes: Sequence[int]) -> Heal:
        usual = self._world.network.defaults
        links = self._links(nodes)
        for link in links:
            link.latency_s = float(fault.options.get("latency_ms", 0)) / 1000
            link.jitter_s = float(fault.option("jitter_ms")) / 1000

        def heal() -> None:
            for link in links:
                link.latency_s, link.jitter_s = usual.latency_s, usual.jitter_s

        return heal

    def _loss(self, fault: Fault, nodes: Sequence[int]) -> Heal:
        links = self._links(nodes)
        for link in links:
            link.loss = float(fault.option("chance"))

        def heal() -> None:
            for link in links:
                link.loss = self._world.network.defaults.loss

        return heal

    def _lost_responses(self, fault: Fault, nodes: Sequence[int]) -> Heal:
        hosts = self._stage.hosts(nodes)
        api = int(fault.option("api"))
        for host in hosts:
            self._losses.lose(host, api, silently=bool(fault.option("silently")))

        def heal() -> None:
            for host in hosts:
                self._losses.stop(host, api)

        return heal
