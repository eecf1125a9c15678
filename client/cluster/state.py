"""`cluster.json`: which nodes the cluster has, where they listen, and the pids last seen."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from ..failure import Failure
from .folder import ClusterFolder

FORMAT_VERSION = 1


@dataclass(frozen=True, slots=True)
class NodeState:
    """One node. Addresses are `host:port`."""

    node_id: int
    kafka: str
    quorum: str
    http: str
    votes: bool = True
    """Whether it is a voter of the quorum, or a broker that observes it."""
    pid: int | None = None
    """Of the last process started; None once it was stopped. It may be stale after a crash."""

    @property
    def ports(self) -> tuple[int, int, int]:
        """Kafka, quorum, HTTP."""
        kafka, quorum, http = (
            int(address.rpartition(":")[2]) for address in (self.kafka, self.quorum, self.http)
        )
        return kafka, quorum, http


@dataclass(frozen=True, slots=True)
class ClusterState:
    """The cluster as its folder knows it. Nodes are in order of their ids."""

    cluster_id: str
    nodes: tuple[NodeState, ...]
    ephemeral: bool = False
    """The folder goes away when the cluster goes down."""
    with_faults: bool = False
    """As the last `up` said: nodes that are started let themselves be cut off and paused."""

    def node(self, node_id: int) -> NodeState:
        for node in self.nodes:
            if node.node_id == node_id:
                return node
        raise KeyError(node_id)

    def with_node(self, changed: NodeState) -> ClusterState:
        nodes = (changed if node.node_id == changed.node_id else node for node in self.nodes)
        return replace(self, nodes=tuple(nodes))

    def with_pid(self, node_id: int, pid: int | None) -> ClusterState:
        return self.with_node(replace(self.node(node_id), pid=pid))

    @property
    def voters(self) -> tuple[NodeState, ...]:
        return tuple(node for node in self.nodes if node.votes)

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(node.kafka for node in self.nodes)

    @property
    def http_urls(self) -> str:
        """As `--url` and LOGBOAT_HTTP take them."""
        return ",".join(f"http://{node.http}" for node in self.nodes)


def load_state(folder: ClusterFolder) -> ClusterState:
    """Raises Failure when there is no cluster, or a file that this version cannot read."""
    try:
        with open(folder.state_file, encoding="utf-8") as file:
            document = json.load(file)
        return _decode(document)
    except FileNotFoundError:
        raise Failure(
            f"there is no cluster in {folder.path}; `logboat cluster up` makes one"
        ) from None
    except (NotADirectoryError, PermissionError) as error:
        raise Failure(f"cannot read {folder.state_file}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise Failure(f"{folder.state_file} is damaged or of another version: {error}") from error


def save_state(folder: ClusterFolder, state: ClusterState) -> None:
    """Replace the file whole: a reader sees the old or the new one. Raises Failure."""
    temporary = f"{folder.state_file}.{os.getpid()}.tmp"
    try:
        with open(temporary, "w", encoding="utf-8") as file:
            json.dump(_encode(state), file, indent=2)
            file.write("\n")
        os.replace(temporary, folder.state_file)
    except OSError as error:
        with suppress(OSError):
            os.unlink(temporary)
        raise Failure(f"cannot write {folder.state_file}: {error.strerror}") from error


def _encode(state: ClusterState) -> dict[str, Any]:
    return {
        "version": FORMAT_VERSION,
        "cluster_id": state.cluster_id,
        "ephemeral": state.ephemeral,
        "with_faults": state.with_faults,
        "nodes": [
            {
                "id": node.node_id,
                "pid": node.pid,
                "kafka": node.kafka,
                "http": node.http,
                "quorum": node.quorum,
                "votes": node.votes,
            }
            for node in state.nodes
        ],
    }


def _decode(document: dict[str, Any]) -> ClusterState:
    if document["version"] != FORMAT_VERSION:
        raise ValueError(f"version {document['version']}, expected {FORMAT_VERSION}")
    nodes = tuple(
        NodeState(
            node_id=int(node["id"]),
            kafka=str(node["kafka"]),
            quorum=str(node["quorum"]),
            # Absent in files from before there were observers.
            votes=bool(node.get("votes", True)),
            http=str(node["http"]),
            pid=None if node["pid"] is None else int(node["pid"]),
        )
        for node in document["nodes"]
    )
    if not nodes:
        raise ValueError("it names no node")
    for node in nodes:
        if not all(0 < port < 1 << 16 for port in node.ports):
            raise ValueError(f"node {node.node_id} has no ports")
    return ClusterState(
        str(document["cluster_id"]),
        nodes,
        bool(document["ephemeral"]),
        # Absent in files of earlier versions.
        bool(document.get("with_faults", False)),
    )
