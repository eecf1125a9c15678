"""Questions to other nodes: their answer, or the error that tells a client whether what it wanted
may have been done."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TypeVar

from .errors import answer_lost, controller_answer_lost, no_controller, node_unreachable
from .ports import AnswerLost, Unreachable

Answer = TypeVar("Answer")


async def of_node(node_id: int, question: Awaitable[Answer], *, writes: bool) -> Answer:
    """`writes`: the answer is about a change. Raises ApiError."""
    try:
        return await question
    except Unreachable:
        raise node_unreachable(node_id) from None
    except AnswerLost:
        raise answer_lost(node_id, writes=writes) from None


async def of_controller(question: Awaitable[Answer]) -> Answer:
    """About a change of metadata. Raises ApiError."""
    try:
        return await question
    except Unreachable:
        raise no_controller() from None
    except AnswerLost:
        raise controller_answer_lost() from None
