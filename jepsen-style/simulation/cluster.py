"""A whole cluster in the simulation: nodes on hosts `n1`, `n2`, ..., a client host beside them."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from typing import Any, TypeVar

from ...node.config import NodeConfig
from ...node.run import run_node
from .host import Host
from .kafka_client import KafkaClient
from .world import World

T = TypeVar("T")

KAFKA_PORT = 9092
INTERNODE_PORT = 9093
DATA = "data"
SECRET = b"the secret of a simulated cluster"

LOCAL_SETTINGS = {
    "broker.heartbeat.interval.ms": "200",
    "broker.session.timeout.ms": "1000",
    "controller.quorum.election.timeout.ms": "300",
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "offsets.topic.replication.factor": "3",
    "offsets.topic.num.partitions": "4",
    "group.initial.rebalance.delay.ms": "0",
}
"""As `logboat cluster up` starts three nodes on one machine (RULES B4, E5)."""


class Cluster:
    """The first `voters` nodes vote, by default all. Hosts are made at once, processes by
    `start`."""

    def __init__(
        self,
        world: World,
        *,
        nodes: int = 3,
        voters: int | None = None,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self.world = world
        self.hosts = {number: world.host(f"n{number}") for number in range(1, nodes + 1)}
        self._voters = nodes if voters is None else voters
        self._settings = {**LOCAL_SETTINGS, **(settings or {})}
        self.client_host = world.host("client")
        self.client_host.start(_idle)

    def config(self, number: int) -> NodeConfig:
        name = self.hosts[number].name
        voters = (
            f"{n}@{host.name}:{INTERNODE_PORT}"
            for n, host in self.hosts.items()
            if n <= self._voters
        )
        return NodeConfig.of(
            {
                "node.id": str(number),
                "cluster.id": "simulated",
                "log.dirs": DATA,
                "listeners": f"PLAINTEXT://{name}:{KAFKA_PORT},INTERNODE://{name}:{INTERNODE_PORT}",
                "controller.quorum.voters": ",".join(voters),
                **self._settings,
            },
            secret=SECRET,
        )

    def start(self, *numbers: int) -> None:
        """Start these nodes, or all that do not run."""
        for number in numbers or self.hosts:
            host = self.hosts[number]
            if not host.alive:
                host.start(partial(_node, config=self.config(number)))

    @property
    def addresses(self) -> dict[int, tuple[str, int]]:
        """Where clients find the nodes."""
        return {number: (host.name, KAFKA_PORT) for number, host in self.hosts.items()}

    def client(self) -> KafkaClient:
        """To be used inside `run` only."""
        return KafkaClient(self.addresses)

    def run(
        self, work: Callable[[KafkaClient], Coroutine[Any, Any, T]], *, within: float = 60.0
    ) -> T:
        """Run `work` with a client of its own on the client host, and return its result."""
        return self.world.call(self.client_host, self._with_client(work), within=within)

    def spawn(self, work: Callable[[KafkaClient], Coroutine[Any, Any, T]]) -> asyncio.Task[T]:
        """As `run`, without waiting."""
        return self.client_host.spawn(self._with_client(work))

    async def _with_client(self, work: Callable[[KafkaClient], Coroutine[Any, Any, T]]) -> T:
        client = self.client()
        try:
            return await work(client)
        finally:
            client.close()


async def _node(host: Host, config: NodeConfig) -> None:
    """What `node/__main__.py` does: a signal stops, a fatal error ends the process where it is."""
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    await run_node(config, host.disk, host.clock, host.rng, stop=stop, on_fatal=host.exit)


async def _idle(_: Host) -> None:
    await asyncio.get_running_loop().create_future()
