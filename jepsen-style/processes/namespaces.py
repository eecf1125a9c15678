"""A network namespace for each node, joined by a bridge; iptables drops what is cut. Needs root.

Nodes still reach each other, and clients reach them, through the proxies, which listen on the
bridge: delays and lost answers need frames. What is cut here is cut below TCP: nothing is
acknowledged, new connections get no answer, and retransmissions go on after the heal.
"""

from __future__ import annotations

import os
import subprocess
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Protocol

from ...client.cluster.processes import Around
from ...testing import LocalCluster
from ..schedule import Direction
from .volumes import run_command

SUBNETS = 250
"""`10.213.S.0/24`: one for each run on this machine."""


class Cutter(Protocol):
    """Cuts one way at a time, and counts: a way is open when its last cut is healed."""

    async def cut(self, directions: Sequence[Direction]) -> None: ...

    async def join(self, directions: Sequence[Direction]) -> None: ...


class Namespaces:
    """Nodes of a cluster that does not run are moved into one each."""

    def __init__(self, cluster: LocalCluster) -> None:
        self._subnet = _free_subnet()
        self._bridge = f"logboat{self._subnet}"
        self._names = {n: f"{self._bridge}-{n}" for n in cluster.node_ids}
        cluster.undo_if_killed("ip", "link", "del", self._bridge)
        _ip("link", "add", self._bridge, "type", "bridge")
        _ip("address", "add", f"{self.gateway}/24", "dev", self._bridge)
        _ip("link", "set", self._bridge, "up")
        for node_id, name in self._names.items():
            cluster.undo_if_killed("ip", "netns", "del", name)
            self._add(node_id, name)
        cluster.move({node_id: self.host(node_id) for node_id in cluster.node_ids})

    @property
    def gateway(self) -> str:
        """Where proxies listen."""
        return f"10.213.{self._subnet}.1"

    def host(self, node_id: int) -> str:
        return f"10.213.{self._subnet}.{10 + node_id}"

    def enter(self, node_id: int) -> list[str]:
        """Words before a command that runs in there; it execs."""
        return ["nsenter", f"--net=/run/netns/{self._names[node_id]}", "--"]

    def around(self, node_id: int, inner: Around) -> Around:
        return Around([*self.enter(node_id), *inner.command], inner.environment)

    def close(self) -> None:
        for name in self._names.values():
            _ip("netns", "del", name)
        _ip("link", "del", self._bridge)

    def _add(self, node_id: int, name: str) -> None:
        outside = f"lb{self._subnet}-{node_id}"
        _ip("netns", "add", name)
        _ip("link", "add", outside, "type", "veth", "peer", "name", "eth0", "netns", name)
        _ip("link", "set", outside, "master", self._bridge, "up")
        _ip("-n", name, "address", "add", f"{self.host(node_id)}/24", "dev", "eth0")
        for device in ("eth0", "lo"):
            _ip("-n", name, "link", "set", device, "up")


class Walls:
    """A `Cutter` of packets in the nodes' namespaces."""

    def __init__(
        self,
        namespaces: Namespaces,
        *,
        client_ports: Mapping[int, int],
        internode_proxies: Mapping[int, int],
    ) -> None:
        """`client_ports`: where each node listens for clients; `internode_proxies`: where the proxy
        in front of its other listener does."""
        self._namespaces = namespaces
        self._client_ports = client_ports
        self._internode_proxies = internode_proxies
        self._cuts: Counter[Direction] = Counter()

    async def cut(self, directions: Sequence[Direction]) -> None:
        new = [way for way in directions if not self._cuts[way]]
        self._cuts.update(directions)
        self._change("-A", new)

    async def join(self, directions: Sequence[Direction]) -> None:
        self._cuts.subtract(directions)
        self._change("-D", [way for way in directions if not self._cuts[way]])

    def _change(self, action: str, directions: Sequence[Direction]) -> None:
        by_node: dict[int, list[str]] = {}
        for way in directions:
            for node_id, rule in self.rules(way):
                by_node.setdefault(node_id, []).append(f"{action} {rule} -j DROP")
        for node_id, rules in by_node.items():
            text = "\n".join(["*filter", *rules, "COMMIT", ""])
            command = [*self._namespaces.enter(node_id), "iptables-restore", "--noflush"]
            run_command(*command, given=text)

    def rules(self, way: Direction) -> list[tuple[int, str]]:
        """(node in whose namespace, what is dropped there)."""
        source, target = way
        here, there = f"-s {self._namespaces.gateway}", f"-d {self._namespaces.gateway}"
        if source is None:
            assert target is not None
            return [(target, f"INPUT -p tcp {here} --dport {self._client_ports[target]}")]
        if target is None:
            return [(source, f"OUTPUT -p tcp {there} --sport {self._client_ports[source]}")]
        # Once on connections that the source has opened, once on those that the target has.
        return [
            (source, f"OUTPUT -p tcp {there} --dport {self._internode_proxies[target]}"),
            (target, f"INPUT -p tcp {here} --sport {self._internode_proxies[source]}"),
        ]


def why_no_namespaces() -> str | None:
    """What keeps this machine from it; None when it can."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    name = f"logboat-probe-{os.getpid()}"
    try:
        _ip("netns", "add", name)
        try:
            enter = ("nsenter", f"--net=/run/netns/{name}", "--")
            rule = "*filter\n-A INPUT -p tcp -s 10.213.0.1 --sport 1 -j DROP\nCOMMIT\n"
            run_command(*enter, "iptables-restore", "--noflush", given=rule)
            _ip("link", "add", name[:15], "type", "bridge")
            _ip("link", "del", name[:15])
        finally:
            _ip("netns", "del", name)
    except OSError as error:
        return str(error)
    return None


def _free_subnet() -> int:
    told = subprocess.run(["ip", "-o", "link"], capture_output=True, text=True, check=False).stdout
    start = os.getpid() % SUBNETS
    for number in range(SUBNETS):
        subnet = (start + number) % SUBNETS
        if f"logboat{subnet}:" not in told:
            return subnet
    raise OSError("every subnet is taken")


def _ip(*words: str) -> None:
    run_command("ip", *words)
