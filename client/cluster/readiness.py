"""When a cluster counts as up: every node says so, and a new topic would take a record."""

from __future__ import annotations

import time

from .probe import Answer, ask
from .state import ClusterState, NodeState

POLL_SECONDS = 0.03
PROBE_TOPIC = "logboat-readiness-probe"
"""Named in a dry run only; it is never created."""


def why_not_ready(state: ClusterState) -> str | None:
    """One sentence, or None when the cluster takes an acks=all record to a new topic.

    `/readyz` is 200 only once the node is registered, unfenced and follows the controller; the dry
    run then asks the controller itself whether the default replication factor can be placed.
    """
    for node in state.nodes:
        # One after the other, and no further than the first objection: asking costs processor
        # time, which the nodes need to start.
        answer = ask(node.http, "/readyz")
        if answer is None:
            return f"node {node.node_id} does not answer on http://{node.http}"
        if answer.status != 200:
            return f"node {node.node_id} is not ready: {_reasons(answer)}"
    return _why_no_topic(state.nodes[0].http)


def _why_no_topic(address: str) -> str | None:
    body = {"name": PROBE_TOPIC, "validate_only": True}
    answer = ask(address, "/api/v1/topics", method="POST", body=body, timeout_seconds=5.0)
    if answer is None:
        return f"http://{address} does not answer"
    return None if answer.status == 200 else f"a new topic is refused: {_reasons(answer)}"


def _reasons(answer: Answer) -> str:
    if not isinstance(answer.body, dict):
        return str(answer.body)
    reasons = answer.body.get("reasons") or [answer.body.get("message", f"HTTP {answer.status}")]
    return "; ".join(str(reason) for reason in reasons)


def node_is_ready(node: NodeState) -> bool:
    answer = ask(node.http, "/readyz")
    return answer is not None and answer.status == 200


def pause() -> None:
    """Between two looks: short, because three nodes stand in about a second."""
    time.sleep(POLL_SECONDS)
