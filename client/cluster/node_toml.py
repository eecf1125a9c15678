"""The settings that `cluster up` writes for each node."""

from __future__ import annotations

import json
from collections.abc import Mapping

from .folder import ClusterFolder
from .state import ClusterState

Value = str | int

HEADER = """\
# Written by `logboat cluster up`. Kafka's names; any broker setting may be added, and the file is
# kept as it is when the cluster starts again. `logboat node --print-config` lists all settings.
"""


def settings_of(folder: ClusterFolder, state: ClusterState, node_id: int) -> dict[str, Value]:
    """All settings of one node, in the order they are written."""
    return {
        "node.id": node_id,
        "cluster.id": state.cluster_id,
        "cluster.secret.file": folder.secret_file,
        "log.dirs": folder.node_data(node_id),
        **addresses_of(state, node_id),
        **replication_of(len(state.nodes)),
        **LOCAL_TIMES,
    }


def addresses_of(state: ClusterState, node_id: int) -> dict[str, Value]:
    """The settings that change when a node listens elsewhere."""
    node = state.node(node_id)
    voters = ",".join(f"{voter.node_id}@{voter.quorum}" for voter in state.voters)
    return {
        "listeners": f"PLAINTEXT://{node.kafka},INTERNODE://{node.quorum}",
        "advertised.listeners": f"PLAINTEXT://{node.kafka},INTERNODE://{node.quorum}",
        "http.listener": node.http,
        "controller.quorum.voters": voters,
    }


def replication_of(nodes: int) -> dict[str, Value]:
    """Three copies, two of them written, as soon as there are three nodes to hold them."""
    factor = min(nodes, 3)
    min_isr = 2 if nodes >= 3 else 1
    return {
        "default.replication.factor": factor,
        "min.insync.replicas": min_isr,
        "offsets.topic.replication.factor": factor,
        # 50 partitions are for clusters with thousands of groups; each costs start-up time here.
        "offsets.topic.num.partitions": 4,
        "transaction.state.log.replication.factor": factor,
        "transaction.state.log.min.isr": min_isr,
    }


LOCAL_TIMES: Mapping[str, Value] = {
    # Loopback answers in microseconds: notice death sooner than across machines (RULES B4, E5).
    "broker.heartbeat.interval.ms": 200,
    "broker.session.timeout.ms": 1000,
    "controller.quorum.election.timeout.ms": 300,
    # Nobody starts a hundred members at once here: the first one need not wait for the others.
    "group.initial.rebalance.delay.ms": 0,
    "group.consumer.heartbeat.interval.ms": 2_000,
    "group.consumer.session.timeout.ms": 10_000,
    # What single groups may ask for, too.
    "group.consumer.min.heartbeat.interval.ms": 100,
    "group.consumer.min.session.timeout.ms": 1_000,
}


def render(settings: Mapping[str, Value]) -> str:
    lines = [f"{name} = {_toml(value)}" for name, value in settings.items()]
    return HEADER + "\n" + "\n".join(lines) + "\n"


def replaced(text: str, settings: Mapping[str, Value]) -> str:
    """`text` with the lines of these settings renewed and every other line as it was."""
    left = dict(settings)
    lines = []
    for line in text.splitlines():
        name = line.partition("=")[0].strip().replace('"', "")
        lines.append(f"{name} = {_toml(left.pop(name))}" if name in left else line)
    lines += [f"{name} = {_toml(value)}" for name, value in left.items()]
    return "\n".join(lines) + "\n"


def _toml(value: Value) -> str:
    # A JSON string is a TOML basic string: both escape quotes, backslashes and controls alike.
    return str(value) if isinstance(value, int) else json.dumps(value, ensure_ascii=False)
