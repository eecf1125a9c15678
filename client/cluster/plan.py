"""What `up` is about to start: a new cluster, or the one that the folder already holds."""

from __future__ import annotations

import base64
import os
import secrets
import uuid
from collections.abc import Mapping

from ..failure import ExitStatus, Failure
from .folder import ClusterFolder
from .node_toml import Value, addresses_of, render, replaced, settings_of
from .ports import HOST, NodePorts, first_taken, free_ports, usual_ports
from .state import ClusterState, NodeState, load_state, save_state

DEFAULT_NODES = 3
MAX_VOTERS = 5
"""More make every decision slower and outlive no more than two deaths in practice."""


def new_cluster(
    nodes: int, voters: int | None = None, *, any_port: bool, ephemeral: bool
) -> ClusterState:
    """A cluster that exists on paper only; its first nodes vote, without `voters` at most 5."""
    if voters is None:
        voters = min(nodes, MAX_VOTERS)
    if voters > nodes:
        raise Failure(f"{voters} of {nodes} nodes cannot vote", ExitStatus.USAGE)
    ports = free_ports(nodes) if any_port else [usual_ports(n + 1) for n in range(nodes)]
    return ClusterState(
        _new_cluster_id(),
        tuple(_at(NodeState(n + 1, "", "", "", n < voters), ports[n]) for n in range(nodes)),
        ephemeral,
    )


def existing_cluster(
    folder: ClusterFolder, nodes: int | None, voters: int | None = None
) -> ClusterState | None:
    """The cluster in the folder; None when a new one may be made there."""
    if folder.exists():
        state = load_state(folder)
        if nodes is not None and nodes != len(state.nodes):
            raise Failure(
                f"{folder.path} holds a cluster of {len(state.nodes)} nodes, not {nodes}; "
                "leave --nodes away to start it, or choose another --data-dir"
            )
        if voters is not None and voters != len(state.voters):
            raise Failure(
                f"{folder.path} holds a cluster with {len(state.voters)} voters, not {voters}: "
                "the voters of a cluster are fixed; leave --voters away, or choose another "
                "--data-dir"
            )
        return state
    try:
        names = os.listdir(folder.path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Failure(f"cannot use {folder.path}: {error.strerror}") from error
    if not all(map(folder.is_left_by_a_crash, names)):
        raise Failure(f"{folder.path} is not empty and holds no cluster; choose another --data-dir")
    return None


def with_usable_ports(state: ClusterState, to_start: list[int], any_port: bool) -> ClusterState:
    """The cluster with ports that its stopped nodes can bind.

    With `any_port` a node whose port was taken meanwhile moves; without, that is a Failure.
    """
    for node_id in to_start:
        taken = first_taken([(node_id, NodePorts(*state.node(node_id).ports))])
        if taken is None:
            continue
        if not any_port:
            raise Failure(
                f"port {taken[2]} is in use, which node {node_id} needs ({taken[1]} listener); "
                "stop what listens there, or pass --any-port"
            )
        state = state.with_node(_at(state.node(node_id), free_ports(1)[0]))
    return state


def moved_to(folder: ClusterFolder, state: ClusterState, hosts: Mapping[int, str]) -> ClusterState:
    """The cluster with nodes on other hosts, by node id, and the same ports; also on disk."""
    for node_id, host in hosts.items():
        node = state.node(node_id)
        state = state.with_node(_at(node, NodePorts(*node.ports), host))
    write_files(folder, state)
    return state


def write_files(
    folder: ClusterFolder, state: ClusterState, settings: Mapping[str, Value] | None = None
) -> None:
    """Put the plan on disk. What is there already is kept: a secret, a user's own settings.

    `settings` go into every new node's config, over what it would hold by default.
    """
    try:
        os.makedirs(folder.path, mode=0o700, exist_ok=True)
        # First, so that a crash half-way leaves a folder that the next `up` completes.
        save_state(folder, state)
        _write_secret(folder)
        for node in state.nodes:
            _write_node_config(folder, state, node.node_id, settings or {})
    except OSError as error:
        raise Failure(f"cannot write to {folder.path}: {error.strerror}") from error


def _write_secret(folder: ClusterFolder) -> None:
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        descriptor = os.open(folder.secret_file, flags, 0o600)
    except FileExistsError:
        return
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(secrets.token_hex(32) + "\n")


def _write_node_config(
    folder: ClusterFolder, state: ClusterState, node_id: int, settings: Mapping[str, Value]
) -> None:
    os.makedirs(folder.node_dir(node_id), exist_ok=True)
    path = folder.node_config(node_id)
    try:
        with open(path, encoding="utf-8") as file:
            text = replaced(file.read(), addresses_of(state, node_id))
    except UnicodeDecodeError:
        raise Failure(f"{path} is no text in UTF-8") from None
    except FileNotFoundError:
        text = render({**settings_of(folder, state, node_id), **settings})
    temporary = f"{path}.tmp"
    with open(temporary, "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(temporary, path)


def _at(node: NodeState, ports: NodePorts, host: str = HOST) -> NodeState:
    return NodeState(
        node.node_id,
        kafka=f"{host}:{ports.kafka}",
        quorum=f"{host}:{ports.quorum}",
        http=f"{host}:{ports.http}",
        votes=node.votes,
        pid=node.pid,
    )


def _new_cluster_id() -> str:
    # Kafka's form: a UUID as 22 characters of URL-safe base64. A leading dash would look like an
    # option to the tools that take the id as an argument.
    while True:
        text = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode("ascii").rstrip("=")
        if not text.startswith("-"):
            return text
