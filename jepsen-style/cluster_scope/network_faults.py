"""Networks: cut in every shape, slow, lossy, and forgetful of answers, or late with one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Protocol

from ..schedule import CUTS, Direction, Fault, between, outside
from ..simulation import Host, Link
from .frame_faults import FrameFaults
from .stage import Do, Heal, Stage, nothing


class Lose(Protocol):
    def __call__(self, node: Host, api: int, *, silently: bool) -> Heal: ...


class Delay(Protocol):
    def __call__(self, node: Host, api: int, *, by_s: float) -> Heal: ...


class NetworkFaults:
    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._world = stage.world
        self._frames = FrameFaults(stage.world)
        self._cuts: Counter[tuple[str, str]] = Counter()
        """How many cuts go through each link: it is open again when the last one is healed."""
        self.kinds: Mapping[str, Do] = {
            **dict.fromkeys(CUTS, self._cut),
            "reset": self._reset,
            "delay": self._delay,
            "reorder": self._delay,
            "loss": self._loss,
            "lost-responses": partial(self._lose, self._frames.lose_answers),
            "lost-requests": partial(self._lose, self._frames.lose_requests),
            "late-responses": partial(self._hold_back, self._frames.delay_answers),
            "late-requests": partial(self._hold_back, self._frames.delay_requests),
        }

    # Cuts

    def _cut(self, fault: Fault, nodes: Sequence[int]) -> Heal:
        pairs = self._pairs(CUTS[fault.kind](fault, nodes, self._stage.node_ids))
        for source, target in pairs:
            self._cuts[source.name, target.name] += 1
            self._world.network.block(source, target)
        return partial(self._join, pairs)

    def _join(self, pairs: Sequence[tuple[Host, Host]]) -> None:
        for source, target in pairs:
            self._cuts[source.name, target.name] -= 1
            if not self._cuts[source.name, target.name]:
                self._world.network.link(source, target).heal()

    def _pairs(self, directions: Sequence[Direction]) -> list[tuple[Host, Host]]:
        host = self._stage.host
        return [(host(source), host(target)) for source, target in directions]

    def _around(self, nodes: Sequence[int]) -> list[Link]:
        """All links of these nodes, with clients too."""
        others = outside(nodes, self._stage.node_ids, clients=True)
        pairs = self._pairs(between(nodes, others))
        return [self._world.network.link(source, target) for source, target in pairs]

    # The rest

    def _reset(self, fault: Fault, nodes: Sequence[int]) -> Heal:
        others = outside(nodes, self._stage.node_ids, clients=True)
        for host in self._stage.hosts(nodes):
            for other in others:
                self._world.network.reset(host, self._stage.host(other))
        return nothing

    def _delay(self, fault: Fault, nodes: Sequence[int]) -> Heal:
        usual = self._world.network.defaults
        links = self._around(nodes)
        for link in links:
            link.latency_s = float(fault.options.get("latency_ms", 0)) / 1000
            link.jitter_s = float(fault.option("jitter_ms")) / 1000

        def heal() -> None:
            for link in links:
                link.latency_s, link.jitter_s = usual.latency_s, usual.jitter_s

        return heal

    def _loss(self, fault: Fault, nodes: Sequence[int]) -> Heal:
        links = self._around(nodes)
        for link in links:
            link.loss = float(fault.option("chance"))

        def heal() -> None:
            for link in links:
                link.loss = self._world.network.defaults.loss

        return heal

    def _lose(self, lose: Lose, fault: Fault, nodes: Sequence[int]) -> Heal:
        api, silently = int(fault.option("api")), bool(fault.option("silently"))
        return _all([lose(host, api, silently=silently) for host in self._stage.hosts(nodes)])

    def _hold_back(self, delay: Delay, fault: Fault, nodes: Sequence[int]) -> Heal:
        api, by_s = int(fault.option("api")), float(fault.option("by_ms")) / 1000
        return _all([delay(host, api, by_s=by_s) for host in self._stage.hosts(nodes)])


def _all(ends: Sequence[Heal]) -> Heal:
    def heal() -> None:
        for end in ends:
            end()

    return heal
