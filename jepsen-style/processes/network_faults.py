"""Links between nodes and clients: cut in every shape, slow, tearing frames, losing answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ..schedule import CUTS, Direction, Fault, between, outside
from .links import CLIENTS, Link, Links, Party, party
from .process_faults import Do, Heal, nothing


class NetworkFaults:
    def __init__(self, links: Links, node_ids: Sequence[int], reset: Callable[[int], None]) -> None:
        """`reset` ends all connections to a node at once."""
        self._links = links
        self._node_ids = node_ids
        self._reset_node = reset
        self.kinds: Mapping[str, Do] = {
            **dict.fromkeys(CUTS, self._cut),
            "reset": self._reset,
            "delay": self._delay,
            "reorder": self._delay,
            "loss": self._loss,
            "lost-responses": self._lost_responses,
        }

    async def _cut(self, fault: Fault, nodes: Sequence[int]) -> Heal:
        chosen = self._chosen(CUTS[fault.kind](fault, nodes, self._node_ids))
        for link in chosen:
            link.cut()

        async def heal() -> None:
            for link in chosen:
                link.join()

        return heal

    def _chosen(self, directions: Sequence[Direction]) -> list[Link]:
        return [self._links.link(_name(one), _name(other)) for one, other in directions]

    async def _reset(self, fault: Fault, nodes: Sequence[int]) -> Heal:
        for node_id in nodes:
            self._reset_node(node_id)
        return nothing

    def _around(self, nodes: Sequence[int]) -> list[Link]:
        return self._chosen(between(nodes, outside(nodes, self._node_ids, clients=True)))

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


def _name(one: int | None) -> Party:
    """As `links` names whom `schedule.cuts` numbers."""
    return CLIENTS if one is None else party(one)
