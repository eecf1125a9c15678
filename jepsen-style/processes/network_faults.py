"""Links between nodes and clients: cut in every shape, slow, tearing frames, losing answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ..schedule import CUTS, Direction, Fault, between, outside
from .links import CLIENTS, Link, Links, Party, party
from .namespaces import Cutter
from .process_faults import Do, Heal, nothing


class Held:
    """A `Cutter` that has the proxies hold what comes."""

    def __init__(self, links: Links) -> None:
        self._links = links

    async def cut(self, directions: Sequence[Direction]) -> None:
        for link in links_of(self._links, directions):
            link.cut()

    async def join(self, directions: Sequence[Direction]) -> None:
        for link in links_of(self._links, directions):
            link.join()


class NetworkFaults:
    def __init__(
        self,
        links: Links,
        node_ids: Sequence[int],
        reset: Callable[[int], None],
        cutter: Cutter | None = None,
    ) -> None:
        """`reset` ends all connections to a node at once; `cutter`: without, the proxies cut."""
        self._links = links
        self._cutter = Held(links) if cutter is None else cutter
        self._node_ids = node_ids
        self._reset_node = reset
        self.kinds: Mapping[str, Do] = {
            **dict.fromkeys(CUTS, self._cut),
            "reset": self._reset,
            "delay": self._delay,
            "reorder": self._delay,
            "loss": self._loss,
            "lost-responses": self._lost_responses,
            "lost-requests": self._lost_requests,
        }

    async def _cut(self, fault: Fault, nodes: Sequence[int]) -> Heal:
        directions = CUTS[fault.kind](fault, nodes, self._node_ids)
        await self._cutter.cut(directions)

        async def heal() -> None:
            await self._cutter.join(directions)

        return heal

    async def _reset(self, fault: Fault, nodes: Sequence[int]) -> Heal:
        for node_id in nodes:
            self._reset_node(node_id)
        return nothing

    def _around(self, nodes: Sequence[int]) -> list[Link]:
        ways = between(nodes, outside(nodes, self._node_ids, clients=True))
        return links_of(self._links, ways)

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
        others = outside(nodes, self._node_ids, clients=True)
        ways = [(node_id, other) for node_id in nodes for other in others]
        return self._lose(fault, links_of(self._links, ways))

    async def _lost_requests(self, fault: Fault, nodes: Sequence[int]) -> Heal:
        others = outside(nodes, self._node_ids, clients=True)
        ways = [(other, node_id) for node_id in nodes for other in others]
        return self._lose(fault, links_of(self._links, ways))

    def _lose(self, fault: Fault, links: Sequence[Link]) -> Heal:
        api = int(fault.option("api"))
        for link in links:
            link.lost_apis[api] = bool(fault.option("silently"))

        async def heal() -> None:
            for link in links:
                link.lost_apis.pop(api, None)

        return heal


def links_of(links: Links, directions: Sequence[Direction]) -> list[Link]:
    return [links.link(_name(one), _name(other)) for one, other in directions]


def _name(one: int | None) -> Party:
    """As `links` names whom `schedule.cuts` numbers."""
    return CLIENTS if one is None else party(one)
