"""Links between nodes and clients: cut in every shape, slow, tearing frames, losing answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from ..schedule import Fault
from .links import CLIENTS, Link, Links, Party, party
from .process_faults import Do, Heal, nothing


class NetworkFaults:
    def __init__(self, links: Links, node_ids: Sequence[int], reset: Callable[[int], None]) -> None:
        """`reset` ends all connections to a node at once."""
        self._links = links
        self._all = [party(node_id) for node_id in node_ids]
        self._reset_node = reset
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

    def _outside(self, inside: Sequence[Party], *, clients: bool) -> list[Party]:
        others = [name for name in self._all if name not in inside]
        return [*others, CLIENTS] if clients else others

    def _cut(self, links: Iterable[Link]) -> Heal:
        chosen = list(links)
        for link in chosen:
            link.cut()

        async def heal() -> None:
            for link in chosen:
                link.join()

        return heal

    async def _isolate(self, fault: Fault, nodes: Sequence[int]) -> Heal:
        inside = [party(node_id) for node_id in nodes]
        outside = self._outside(inside, clients=bool(fault.option("clients")))
        direction = fault.option("direction")
        links = []
        for one in inside:
            for other in outside:
                if direction in ("both", "in"):
                    links.append(self._links.link(other, one))
                if direction in ("both", "out"):
                    links.append(self._links.link(one, other))
        return self._cut(links)

    async def _halves(self, fault: Fault, nodes: Sequence[int]) -> Heal:
        """The target is among the fewer; clients, when cut at all, are with the others."""
        start = self._all.index(party(nodes[0]))
        few = (self._all[start:] + self._all[:start])[: len(self._all) // 2]
        outside = self._outside(few, clients=bool(fault.option("clients")))
        return self._cut(self._links.between(few, outside))

    async def _ring(self, fault: Fault, nodes: Sequence[int]) -> Heal:
        following = [*self._all[1:], self._all[0]]
        pairs = zip(self._all, following, strict=True)
        return self._cut(self._links.link(one, other) for one, other in pairs)

    async def _bridge(self, fault: Fault, nodes: Sequence[int]) -> Heal:
        others = self._outside([party(nodes[0])], clients=False)
        middle = len(others) // 2
        return self._cut(self._links.between(others[:middle], others[middle:]))

    async def _clients_cut(self, fault: Fault, nodes: Sequence[int]) -> Heal:
        return self._cut(self._links.between([party(node_id) for node_id in nodes], [CLIENTS]))

    async def _reset(self, fault: Fault, nodes: Sequence[int]) -> Heal:
        for node_id in nodes:
            self._reset_node(node_id)
        return nothing

    def _around(self, nodes: Sequence[int]) -> list[Link]:
        inside = [party(node_id) for node_id in nodes]
        return self._links.between(inside, self._outside(inside, clients=True))

    async def _delay(self, fault: Fault, nodes: Sequence[int]) -> Heal:
        links = self._around(nodes)
        latency_s = float(fault.options.get("latency_ms", 0)) / 1000
        jitter_s = float(fault.option("jitter_ms")) / 1000
        for link in links:
            link.latency_s += latency_s
            link.jitter_s += jitter_s

        async def heal() -> None:
            for link in links:
                # Never below nothing, whatever the rounding of overlapping delays.
                link.latency_s = max(0.0, link.latency_s - latency_s)
                link.jitter_s = max(0.0, link.jitter_s - jitter_s)

        return heal

    async def _loss(self, fault: Fault, nodes: Sequence[int]) -> Heal:
        links = self._around(nodes)
        for link in links:
            link.loss = float(fault.option("chance"))

        async def heal() -> None:
            for link in links:
                link.loss = 0.0

        return heal

    async def _lost_responses(self, fault: Fault, nodes: Sequence[int]) -> Heal:
        links = [self._links.link(party(node_id), CLIENTS) for node_id in nodes]
        api = int(fault.option("api"))
        for link in links:
            link.lost_apis[api] = bool(fault.option("silently"))

        async def heal() -> None:
            for link in links:
                link.lost_apis.pop(api, None)

        return heal
