"""What a node that took a consumer's request asks of the node where the instance lives.

A call travels inside an Envelope (`ports.HttpNode.call`), as msgpack. It has been checked as far as
the path and the body go; the answer is what the client gets, or the error that it gets.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum
from typing import Any

import msgpack

from ....seam import frozen
from ..errors import ApiError

PART = "v2"
"""Name of this part of HTTP among those that other nodes ask."""


class Operation(StrEnum):
    HOLDS = "holds"
    """Is the instance here? An error 40403 says why not."""
    DELETE = "delete"
    SUBSCRIBE = "subscribe"
    SUBSCRIPTION = "subscription"
    UNSUBSCRIBE = "unsubscribe"
    ASSIGN = "assign"
    ASSIGNMENT = "assignment"
    POLL = "poll"
    TAKE_BACK = "take_back"
    COMMIT = "commit"
    COMMITTED = "committed"
    SEEK = "seek"
    SEEK_TO_BEGINNING = "seek_to_beginning"
    SEEK_TO_END = "seek_to_end"


@frozen
class Call:
    operation: Operation
    group_id: str
    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """Plain values only."""


@frozen
class Answer:
    """`document` None: there is nothing to say (204)."""

    document: Any = None
    records: bytes | None = None
    """Of a poll: a JSON array."""
    delivery: int = 0
    """Of a poll: the number by which it is taken back."""


def encode_call(call: Call) -> bytes:
    packed: bytes = msgpack.packb(
        [str(call.operation), call.group_id, call.name, dict(call.arguments)]
    )
    return packed


def decode_call(data: bytes) -> Call:
    """Only nodes of the same cluster send these; what is malformed raises ValueError."""
    operation, group_id, name, arguments = msgpack.unpackb(data)
    return Call(Operation(operation), group_id, name, arguments)


def encode_answer(answer: Answer | ApiError) -> bytes:
    if isinstance(answer, ApiError):
        parts = answer.as_parts()
    else:
        parts = [answer.document, answer.records, answer.delivery]
    packed: bytes = msgpack.packb(parts)
    return packed


def decode_answer(data: bytes) -> Answer | ApiError:
    parts = msgpack.unpackb(data)
    if len(parts) == 3:
        return Answer(*parts)
    return ApiError.of_parts(parts)
