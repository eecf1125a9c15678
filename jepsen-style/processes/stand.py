"""A cluster whose every connection goes through a proxy of ours."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from typing import Self

from ...client.cluster.node_toml import Value, replaced
from ...testing import LocalCluster
from ..simulation.dice import stream
from .links import Links
from .proxy import Proxy


class Stand:
    """An async context manager: entered, the nodes run behind proxies and are ready."""

    def __init__(self, cluster: LocalCluster, seed: int) -> None:
        self.links = Links()
        self.addresses: dict[int, tuple[str, int]] = {}
        """Of the proxies that clients go through, by node id."""
        self._cluster = cluster
        self._to_clients: dict[int, Proxy] = {}
        self._to_nodes: dict[int, Proxy] = {}
        for node_id in cluster.node_ids:
            node = cluster.node(node_id)
            for proxies, address, between_nodes in (
                (self._to_clients, node.kafka, False),
                (self._to_nodes, node.quorum, True),
            ):
                host, _, port = address.rpartition(":")
                dice = stream(seed, f"proxy:{node_id}:{between_nodes}")
                proxies[node_id] = Proxy(
                    self.links,
                    node_id,
                    (host, int(port)),
                    dice,
                    between_nodes=between_nodes,
                )

    @property
    def proxies(self) -> Sequence[Proxy]:
        return [*self._to_clients.values(), *self._to_nodes.values()]

    async def __aenter__(self) -> Self:
        internode = {}
        for node_id in self._cluster.node_ids:
            self.addresses[node_id] = await self._to_clients[node_id].start()
            internode[node_id] = await self._to_nodes[node_id].start()
        # The ports are known only when the cluster was made, so it starts once more.
        for node_id in self._cluster.node_ids:
            self._cluster.kill(node_id)
            self._reroute(node_id, internode)
        for node_id in self._cluster.node_ids:
            self._cluster.start(node_id, wait=False)
        await asyncio.to_thread(self._cluster.wait_ready)
        return self

    async def __aexit__(self, *_: object) -> None:
        for proxy in self.proxies:
            await proxy.close()

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
