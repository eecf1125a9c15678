"""How a cluster is, as `status` prints it: a table for people, JSON for scripts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..terminal import Output, table
from .folder import ClusterFolder
from .launch import running_nodes
from .probe import Answer, ask_all
from .state import ClusterState

ANSWER_SECONDS = 2.0
"""In which a node that is well answers."""


@dataclass(frozen=True, slots=True)
class NodeReport:
    node_id: int
    pid: int | None
    ready: bool
    role: str | None
    """leader, follower or observer of the quorum; None when the node does not say."""
    kafka: str
    http: str
    quorum: str
    data_dir: str

    @property
    def state(self) -> str:
        return "dead" if self.pid is None else "running"


@dataclass(frozen=True, slots=True)
class ClusterReport:
    cluster_id: str
    data_dir: str
    nodes: tuple[NodeReport, ...]

    @property
    def state(self) -> str:
        """ready: every node answers that it is; down: none runs; degraded: between the two."""
        if all(node.ready for node in self.nodes):
            return "ready"
        return "degraded" if any(node.pid is not None for node in self.nodes) else "down"


def look_at(
    folder: ClusterFolder, state: ClusterState, answer_seconds: float = ANSWER_SECONDS
) -> ClusterReport:
    """Ask the processes table and every node that runs."""
    running = running_nodes(folder, state)
    nodes = [node for node in state.nodes if node.node_id in running]
    addresses = [node.http for node in nodes]
    readiness = ask_all(addresses, "/readyz", answer_seconds)
    overviews = ask_all(addresses, "/api/v1/cluster", answer_seconds)
    answers = {
        node.node_id: pair
        for node, pair in zip(nodes, zip(readiness, overviews, strict=True), strict=True)
    }
    return ClusterReport(
        state.cluster_id,
        folder.path,
        tuple(
            NodeReport(
                node.node_id,
                running.get(node.node_id),
                _is_good(answers.get(node.node_id, (None, None))[0]),
                _role(answers.get(node.node_id, (None, None))[1]),
                kafka=node.kafka,
                http=node.http,
                quorum=node.quorum,
                data_dir=folder.node_data(node.node_id),
            )
            for node in state.nodes
        ),
    )


def as_document(report: ClusterReport) -> dict[str, Any]:
    """The shape of `status -o json`, which outside scripts rely on."""
    return {
        "cluster_id": report.cluster_id,
        "state": report.state,
        "data_dir": report.data_dir,
        "nodes": [
            {
                "id": node.node_id,
                "pid": node.pid,
                "state": node.state,
                "role": node.role,
                "kafka": node.kafka,
                "http": node.http,
                "quorum": node.quorum,
                "data_dir": node.data_dir,
            }
            for node in report.nodes
        ],
    }


def as_table(report: ClusterReport, output: Output = Output.TABLE) -> str:
    return table(
        ("NODE", "PID", "STATE", "KAFKA", "HTTP", "ROLE"),
        [
            (
                str(node.node_id),
                "-" if node.pid is None else str(node.pid),
                _state_in_words(node),
                node.kafka,
                f"http://{node.http}",
                node.role or "-",
            )
            for node in report.nodes
        ],
        output,
    )


def _state_in_words(node: NodeReport) -> str:
    if node.pid is None:
        return "dead"
    return "ready" if node.ready else "not ready"


def _is_good(answer: Answer | None) -> bool:
    return answer is not None and answer.status == 200


def _role(answer: Answer | None) -> str | None:
    if answer is None or not isinstance(answer.body, dict):
        return None
    role = answer.body.get("role")
    return str(role) if role else None
