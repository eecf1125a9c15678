"""A whole node in the test's own loop: real disk and sockets, a quorum of one."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random

from logboat.node.config import NodeConfig
from logboat.node.run import Node
from logboat.seam import SystemClock
from logboat.seam.real_disk import RealDisk
from tests.node.listening import fail


def node_config(directory: Path, **settings: str) -> NodeConfig:
    given = {
        "node.id": "1",
        "cluster.id": "test-cluster",
        "log.dirs": str(directory),
        "listeners": "PLAINTEXT://127.0.0.1:0,INTERNODE://127.0.0.1:0",
        "broker.heartbeat.interval.ms": "50",
        "broker.session.timeout.ms": "30000",
        "offsets.topic.num.partitions": "1",
    }
    given.update({name.replace("_", "."): value for name, value in settings.items()})
    return NodeConfig.of(given)


@contextlib.asynccontextmanager
async def running_node(directory: Path, **settings: str) -> AsyncIterator[Node]:
    """An unfenced node, stopped in order at the end."""
    disk = RealDisk()
    node = Node(node_config(directory, **settings), disk, SystemClock(), Random(1), fail)
    try:
        await node.start()
        assert node.lifecycle is not None
        await node.lifecycle.running()
        yield node
    finally:
        await node.stop()
        disk.close()


def port(node: Node) -> int:
    return node.addresses.kafka.port
