"""Which ports a cluster on this machine uses."""

from __future__ import annotations

import random
import socket
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass

from ..failure import Failure

HOST = "127.0.0.1"
"""Bound and advertised alike: on one machine no client can be sent to a wrong address."""

FIRST_PORTS = (9092, 9093, 8082)
"""Kafka, quorum and inter-node, HTTP of node 1."""

PORT_STEP = 1000
"""Each further node listens this much higher."""

FREE_RANGE = (20_000, 32_000)
"""Below the ephemeral range, where the kernel would give our port to somebody's outgoing
connection between choosing it and binding it."""


@dataclass(frozen=True, slots=True)
class NodePorts:
    kafka: int
    quorum: int
    http: int

    def named(self) -> Iterator[tuple[str, int]]:
        yield "Kafka", self.kafka
        yield "quorum", self.quorum
        yield "HTTP", self.http


def usual_ports(node_id: int) -> NodePorts:
    """The fixed ports of the `node_id`-th node, counted from 1."""
    return NodePorts(*(first + PORT_STEP * (node_id - 1) for first in FIRST_PORTS))


def free_ports(nodes: int) -> list[NodePorts]:
    """Ports that nothing listens on now, different for every node; another process may still be
    quicker, which `up` answers by choosing again."""
    with ExitStack() as held:
        ports = _take_free_ports(3 * nodes, held)
    return [NodePorts(*ports[first : first + 3]) for first in range(0, len(ports), 3)]


def _take_free_ports(count: int, held: ExitStack) -> list[int]:
    # Held open until all are chosen; from a random start, so that clusters started side by side
    # do not run after each other through the range.
    first, end = FREE_RANGE
    start = random.SystemRandom().randrange(first, end)
    found: list[int] = []
    for candidate in (*range(start, end), *range(first, start)):
        try:
            # Where connections are in TIME_WAIT a node listened a moment ago: one that is only
            # being restarted gets its port again.
            held.enter_context(_bound(candidate, past_connections=False))
        except OSError:
            continue
        found.append(candidate)
        if len(found) == count:
            return found
    raise Failure(f"fewer than {count} free ports between {first} and {end}")


def is_free(port: int) -> bool:
    """Whether a node could listen on `port` now."""
    try:
        with _bound(port):
            return True
    except OSError:
        return False


@contextmanager
def _bound(port: int, *, past_connections: bool = True) -> Iterator[None]:
    """Raises OSError. `past_connections`: as for the node's own listener they are no obstacle."""
    with closing(socket.socket(socket.AF_INET, socket.SOCK_STREAM)) as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, past_connections)
        trial.bind((HOST, port))
        yield


def first_taken(ports: list[tuple[int, NodePorts]]) -> tuple[int, str, int] | None:
    """The first (node id, listener, port) that something listens on already."""
    for node_id, of_node in ports:
        for listener, port in of_node.named():
            if not is_free(port):
                return node_id, listener, port
    return None
