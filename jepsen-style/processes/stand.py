"""A cluster whose every connection goes through a proxy of ours, on disks, networks and clocks that
can be hurt as far as there are means."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from ...client.cluster.node_toml import Value, replaced
from ...testing import LocalCluster
from ..simulation.dice import stream
from .clocks import Clocks
from .links import Links
from .means import NAMESPACES, Means
from .namespaces import Namespaces, Walls
from .proxy import LOOPBACK, Proxy
from .volumes import Volumes

VOLUMES, CLOCKS = "volumes", "clocks"
"""Folders of a run."""


class Stand:
    """An async context manager: entered, the nodes run behind proxies and are ready."""

    def __init__(self, cluster: LocalCluster, seed: int, means: Means, folder: Path) -> None:
        """`folder`: where volumes and clocks may lie."""
        self.links = Links()
        self.addresses: dict[int, tuple[str, int]] = {}
        """Of the proxies that clients go through, by node id."""
        self.volumes: Volumes | None = None
        self.clocks: Clocks | None = None
        self.walls: Walls | None = None
        self._namespaces: Namespaces | None = None
        self._cluster = cluster
        self._seed = seed
        self._means = means
        self._folder = folder
        self._to_clients: dict[int, Proxy] = {}
        self._to_nodes: dict[int, Proxy] = {}

    @property
    def proxies(self) -> Sequence[Proxy]:
        return [*self._to_clients.values(), *self._to_nodes.values()]

    async def __aenter__(self) -> Self:
        # The ports are known only when the cluster was made, so it starts once more.
        for node_id in self._cluster.node_ids:
            self._cluster.kill(node_id)
        try:
            await asyncio.to_thread(self._make_surroundings)
            internode = await self._start_proxies()
            for node_id in self._cluster.node_ids:
                self._reroute(node_id, internode)
                self._surround(node_id)
            for node_id in self._cluster.node_ids:
                self._cluster.start(node_id, wait=False)
            await asyncio.to_thread(self._cluster.wait_ready)
        except BaseException:
            await self._take_down()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._take_down()

    async def _take_down(self) -> None:
        for proxy in self.proxies:
            await proxy.close()
        if self.volumes is not None or self._namespaces is not None:
            for node_id in self._cluster.node_ids:
                self._cluster.kill(node_id)
        if self.volumes is not None:
            await asyncio.to_thread(self.volumes.give_back)
        if self._namespaces is not None:
            self._namespaces.close()

    def _make_surroundings(self) -> None:
        if self._means.has(NAMESPACES):
            self._namespaces = Namespaces(self._cluster)
        if self._means.volumes is not None:
            folder = self._folder / VOLUMES
            self.volumes = Volumes(self._cluster, self._means.volumes, folder)
        folder = self._folder / CLOCKS
        self.clocks = Clocks(self._cluster.node_ids, folder, self._means.faketime_library)

    def _surround(self, node_id: int) -> None:
        assert self.clocks is not None
        around = self.clocks.around(node_id)
        if self._namespaces is not None:
            around = self._namespaces.around(node_id, around)
        self._cluster.start_within(node_id, around)

    async def _start_proxies(self) -> dict[int, tuple[str, int]]:
        """Where those before the inter-node listeners listen."""
        host = LOOPBACK if self._namespaces is None else self._namespaces.gateway
        internode = {}
        for node_id in self._cluster.node_ids:
            node = self._cluster.node(node_id)
            self._to_clients[node_id] = self._proxy(node_id, node.kafka, between_nodes=False)
            self._to_nodes[node_id] = self._proxy(node_id, node.quorum, between_nodes=True)
            self.addresses[node_id] = await self._to_clients[node_id].start(host)
            internode[node_id] = await self._to_nodes[node_id].start(host)
        if self._namespaces is not None:
            self.walls = Walls(
                self._namespaces,
                client_ports={n: self._cluster.node(n).ports[0] for n in self._cluster.node_ids},
                internode_proxies={n: port for n, (_, port) in internode.items()},
            )
        return internode

    def _proxy(self, node_id: int, address: str, *, between_nodes: bool) -> Proxy:
        host, _, port = address.rpartition(":")
        dice = stream(self._seed, f"proxy:{node_id}:{between_nodes}")
        return Proxy(self.links, node_id, (host, int(port)), dice, between_nodes=between_nodes)

    def reset(self, node_id: int) -> None:
        self._to_clients[node_id].reset()
        self._to_nodes[node_id].reset()

    def _reroute(self, node_id: int, internode: Mapping[int, tuple[str, int]]) -> None:
        names = {number: f"{host}:{port}" for number, (host, port) in internode.items()}
        host, port = self.addresses[node_id]
        settings: dict[str, Value] = {
            "advertised.listeners": f"PLAINTEXT://{host}:{port},INTERNODE://{names[node_id]}",
            "controller.quorum.voters": ",".join(
                f"{number}@{name}"
                for number, name in names.items()
                if self._cluster.node(number).votes
            ),
        }
        path = self._cluster.folder.node_config(node_id)
        with open(path, encoding="utf-8") as file:
            text = replaced(file.read(), settings)
        with open(f"{path}.tmp", "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(f"{path}.tmp", path)
