"""On which node an instance lives, and asking it there.

A made-up name begins with its node's id. A name that a client chose says nothing: it is looked for
here, where it was found last, and then on every living node at once.
"""

from __future__ import annotations

import asyncio
import re

from ..errors import ApiError
from ..ports import AnswerLost, HttpNode, Unreachable
from .calls import PART, Answer, Call, Operation, decode_answer, encode_call
from .instances import Instances, Key, name_is_taken, no_instance
from .performing import perform

ANSWER_S = 30.0
"""Beyond the time that a poll may wait: commits may wait for a coordinator's election."""

ASK_S = 2.0
"""For the question whether an instance is there."""

MAX_KNOWN = 10_000

_MADE_UP = re.compile(r"(\d{1,9})-[0-9a-f]{24}")


class Finding:
    """Calls on instances, wherever they are."""

    def __init__(self, node: HttpNode, instances: Instances) -> None:
        self._node = node
        self._instances = instances
        self._known: dict[Key, int] = {}

    async def ask(self, call: Call, *, patience_s: float = 0.0) -> Answer:
        """`patience_s`: how long the call itself may wait. Raises ApiError."""
        key = (call.group_id, call.name)
        if self._instances.holds(*key):
            return await perform(self._instances, call)
        owner = self._named_owner(call.name)
        if owner is None:
            owner = self._known.get(key)
        if owner is not None and owner != self._node.node_id:
            try:
                return await self._ask_there(owner, call, patience_s)
            except ApiError as error:
                if error.error_code != 40403 or key not in self._known:
                    raise
                del self._known[key]
        elif owner == self._node.node_id:
            raise self._instances.gone(*key)
        return await self._ask_there(await self._look_for(*key), call, patience_s)

    async def nobody_has(self, group_id: str, name: str) -> None:
        """Raises ApiError 409 when another node has such an instance, or gives it its name now."""
        try:
            await self._look_for(group_id, name)
        except ApiError:
            return
        raise name_is_taken(group_id, name)

    def _named_owner(self, name: str) -> int | None:
        match = _MADE_UP.fullmatch(name)
        if match is None:
            return None
        owner = int(match[1])
        return owner if owner in self._node.image().brokers else None

    async def _look_for(self, group_id: str, name: str) -> int:
        """Raises ApiError: 404 when nobody has it, 503 when who may have it cannot be asked."""
        others = self._others()
        question = Call(Operation.HOLDS, group_id, name)
        answers = await asyncio.gather(
            *(self._ask_there(node_id, question, ASK_S - ANSWER_S) for node_id in others),
            return_exceptions=True,
        )
        problems: list[ApiError] = []
        for node_id, answer in zip(others, answers, strict=True):
            if isinstance(answer, Answer):
                self._remember((group_id, name), node_id)
                return node_id
            if not isinstance(answer, ApiError):
                raise answer
            problems.append(answer)
        expired = [one for one in problems if "expired" in one.message]
        lost = [one for one in problems if one.error_code != 40403]
        raise next(iter(expired + lost), self._instances.gone(group_id, name))

    def _others(self) -> list[int]:
        brokers = self._node.image().brokers
        return [n for n in sorted(brokers) if n != self._node.node_id and not brokers[n].fenced]

    def _remember(self, key: Key, node_id: int) -> None:
        if len(self._known) >= MAX_KNOWN:
            self._known.clear()
        self._known[key] = node_id

    async def _ask_there(self, node_id: int, call: Call, patience_s: float) -> Answer:
        deadline = asyncio.get_running_loop().time() + ANSWER_S + patience_s
        try:
            answer = decode_answer(
                await self._node.call(node_id, PART, encode_call(call), deadline)
            )
        except Unreachable:
            raise self._cannot_ask(node_id, call.name) from None
        except AnswerLost:
            raise _lost(node_id, call.name) from None
        if isinstance(answer, ApiError):
            raise answer
        return answer

    def _cannot_ask(self, node_id: int, name: str) -> ApiError:
        broker = self._node.image().brokers.get(node_id)
        if broker is None or broker.fenced:
            return no_instance(
                f"consumer instance {name[:249]!r} lived on node {node_id}, which is down: "
                "an instance ends with its node"
            )
        return ApiError(
            503,
            f"node {node_id}, where consumer instance {name[:249]!r} lives, cannot be reached",
            error_code=50302,
            retriable=True,
            hint="the instance ends with its node",
        )


def _lost(node_id: int, name: str) -> ApiError:
    return ApiError(
        503,
        f"node {node_id}, where consumer instance {name[:249]!r} lives, was lost in the middle",
        error_code=50302,
        retriable=True,
        hint="what a poll did not bring was not committed; the instance ends with its node",
    )
