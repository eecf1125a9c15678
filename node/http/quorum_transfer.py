"""POST /api/v1/quorum:transfer-leadership: another voter leads the quorum, and is the active
controller with it."""

from __future__ import annotations

from typing import Any

from aiohttp import web

from ...raftlog import NotTransferred
from .bodies import json_object, node_id_in, read_body, refuse_unknown_keys, require_type
from .documents import QuorumLeadership
from .errors import ApiError, no_controller
from .guards import JSON_TYPE, json_response
from .keys import NODE
from .ports import HttpNode
from .quorum_calls import Question, ask

SECONDS = 10.0
"""Longer than the longest election timeout that is usual."""


async def transfer_quorum(request: web.Request) -> web.Response:
    """200 with the leader, who may have been that before."""
    require_type(request, JSON_TYPE)
    node = request.app[NODE]
    document = json_object(await read_body(request))
    refuse_unknown_keys(document, ["to"])
    to = _voter(node, node_id_in(document, "to"))
    status = node.quorum_status()
    if status.leader_id is None:
        raise no_controller()
    if status.leader_id == to:
        there: QuorumLeadership = {"leader_id": to, "leader_epoch": status.term, "changed": False}
        return json_response(there)
    question = {"kind": "transfer", "to": to}
    kinds = {"transfer": answer_transfer}
    return json_response(await ask(node, kinds, status.leader_id, question, SECONDS))


async def answer_transfer(node: HttpNode, question: Question) -> dict[str, Any]:
    """By the leader. Raises ApiError."""
    quorum_log = node.quorum_log()
    if quorum_log is None:
        raise ApiError(409, f"node {node.node_id} is no voter", retriable=True)
    outcome = await quorum_log.transfer(question["to"])
    if isinstance(outcome, NotTransferred):
        # Whoever leads now leads rightly, and nothing is lost: it may be tried again.
        raise ApiError(409, outcome.reason, retriable=True)
    return {
        "leader_id": outcome.leader_id,
        "leader_epoch": node.quorum_status().term,
        "changed": True,
    }


def _voter(node: HttpNode, to: int) -> int:
    voters = set(node.quorum_status().peers)
    if node.quorum_log() is not None:
        voters.add(node.node_id)
    if to not in voters:
        listed = ", ".join(map(str, sorted(voters)))
        raise ApiError(422, f"node {to} is no voter", hint=f"the voters are {listed}")
    return to
