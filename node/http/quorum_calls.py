"""What only a voter, or only the quorum's leader, can answer: asked of it by any node."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

import orjson
from aiohttp import web

from .asking import of_node
from .errors import ApiError
from .keys import NODE
from .ports import HttpNode

log = logging.getLogger(__name__)

PART = "quorum"

Question = Mapping[str, Any]
Perform = Callable[[HttpNode, Question], Awaitable[Any]]


def install(app: web.Application, kinds: Mapping[str, Perform]) -> None:
    """`kinds`: how each kind of question is answered by the node that it is for."""
    app[NODE].serve_calls(PART, partial(_answer, app[NODE], kinds))


async def ask(
    node: HttpNode, kinds: Mapping[str, Perform], node_id: int, question: Question, seconds: float
) -> Any:
    """The answer of that node, which may be this one. Raises ApiError."""
    if node_id == node.node_id:
        return await kinds[question["kind"]](node, question)
    deadline = asyncio.get_running_loop().time() + seconds
    asked = node.call(node_id, PART, orjson.dumps(question), deadline)
    answer = orjson.loads(await of_node(node_id, asked, writes=question["kind"] != "page"))
    if "error" in answer:
        raise ApiError.of_parts(answer["error"])
    return answer["document"]


async def _answer(node: HttpNode, kinds: Mapping[str, Perform], question: bytes) -> bytes:
    """For another node."""
    try:
        asked = orjson.loads(question)
        return orjson.dumps({"document": await kinds[asked["kind"]](node, asked)})
    except ApiError as error:
        told = error.as_parts()
    except Exception:
        log.exception("a question of another node failed")
        told = ApiError(500, "internal error; the log of the other node says more").as_parts()
    return orjson.dumps({"error": told})
