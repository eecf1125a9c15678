"""GET /api/v1/quorum/log: the committed log of the metadata, as one voter keeps it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any
from uuid import UUID

from aiohttp import web

from ...metadata.codec import decode_command
from ...raftlog import CommittedEntry, LogPage
from ...seam import offload
from . import query
from .errors import ApiError, no_controller
from .guards import json_response
from .keys import NODE
from .ports import HttpNode
from .quorum_calls import Question, ask

DEFAULT_LIMIT = 100
LARGEST_LIMIT = 1_000
LARGEST_INDEX = 2**63 - 1
SECONDS = 10.0

BARRIER = "Barrier"
"""An entry without content, by which somebody made sure to have read all before it."""
NEW_TERM = "NewTerm"
"""The entry with which a leader begins."""


async def quorum_log(request: web.Request) -> web.Response:
    """Of this node, or of a voter when this is none."""
    node = request.app[NODE]
    start = query.whole_number(request.query, "from", largest=LARGEST_INDEX)
    limit = query.whole_number(request.query, "limit", largest=LARGEST_LIMIT)
    question = {"kind": "page", "from": start, "limit": limit or DEFAULT_LIMIT}
    voter = node.node_id if node.quorum_log() is not None else _a_voter(node)
    return json_response(await ask(node, {"page": answer_page}, voter, question, SECONDS))


async def answer_page(node: HttpNode, question: Question) -> dict[str, Any]:
    """By a voter. Raises ApiError."""
    quorum_log = node.quorum_log()
    if quorum_log is None:
        raise ApiError(409, f"node {node.node_id} is no voter", retriable=True)
    page = quorum_log.page(question["from"], question["limit"])
    start = question["from"]
    if start is not None and start < page.first_index:
        raise ApiError(
            416,
            f"what came before {page.first_index} is no longer in the log",
            hint=f"a snapshot covers it; ask from {page.first_index} on",
        )
    # A command may name thousands of partitions: reading it is nothing for the loop (F1).
    return await offload(lambda: _document(node.node_id, page))


def _a_voter(node: HttpNode) -> int:
    """The leader, or one that this observer knows."""
    status = node.quorum_status()
    known = [status.leader_id, *status.peers]
    found = next((one for one in known if one is not None and one != node.node_id), None)
    if found is None:
        raise no_controller()
    return found


def _document(node_id: int, page: LogPage) -> dict[str, Any]:
    return {
        "node_id": node_id,
        "first_index": page.first_index,
        "snapshot_index": page.snapshot_index,
        "commit_index": page.commit_index,
        "entries": [_entry(one) for one in page.entries],
    }


def _entry(entry: CommittedEntry) -> dict[str, Any]:
    kind, content = NEW_TERM if entry.command is None else BARRIER, {}
    if entry.command:
        command = decode_command(entry.command)
        kind, content = type(command).__name__, as_json(command)
    return {"index": entry.index, "term": entry.term, "kind": kind, "content": content}


def as_json(value: Any) -> Any:
    """A command's values by the names of their fields."""
    if is_dataclass(value):
        return {one.name: as_json(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Mapping):
        return {str(key): as_json(one) for key, one in value.items()}
    if isinstance(value, tuple | list | frozenset):
        return [as_json(one) for one in value]
    return value
