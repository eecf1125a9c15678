"""Asking the coordinator of a group, wherever it is, with requests of administrators."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from ...groups import OFFSETS_TOPIC, partition_for
from ...wire import Message
from .errors import ApiError, answer_lost, from_kafka, node_unreachable
from .leaders import Leaders
from .ports import AnswerLost, HttpNode, Unreachable

Response = TypeVar("Response", bound=Message)

ANSWER_SECONDS = 10.0

CLIENT_ID = "http"
"""As the coordinator sees who asks; members show their own."""


async def ask_coordinator(
    node: HttpNode,
    leaders: Leaders,
    group_id: str,
    request: Message,
    kind: type[Response],
    error_of: Callable[[Response], int],
    *,
    client_id: str = CLIENT_ID,
) -> tuple[int, Response]:
    """(the coordinator's node id, its answer without an error).

    Asked again while the coordinator is changing or still loading: what it refuses then did not
    happen. Raises ApiError; 404 when nobody ever used a group here.
    """
    topic = node.image().topics.get(OFFSETS_TOPIC)
    if topic is None:
        raise unknown_group(group_id)

    async def read(leader: int) -> tuple[int, Response]:
        answer = await ask_node(node, leader, request, kind, client_id=client_id)
        error = error_of(answer)
        if error:
            raise from_kafka(error)
        return leader, answer

    partition = partition_for(group_id, len(topic.partitions))
    return await leaders.reading(OFFSETS_TOPIC, partition, read, leaders.give_up_at())


async def ask_node(
    node: HttpNode,
    node_id: int,
    request: Message,
    kind: type[Response],
    *,
    client_id: str = CLIENT_ID,
) -> Response:
    """Raises Unreachable or AnswerLost."""
    deadline = asyncio.get_running_loop().time() + ANSWER_SECONDS
    answer = await node.ask_groups(node_id, request, deadline, client_id=client_id)
    assert isinstance(answer, kind)
    return answer


async def ask_every_node(
    node: HttpNode, request: Message, kind: type[Response]
) -> tuple[dict[int, Response], dict[int, ApiError]]:
    """(answers, problems) of all nodes that should be alive, by node id."""
    living = [broker.node_id for broker in node.image().brokers.values() if not broker.fenced]
    found: dict[int, Response] = {}
    problems: dict[int, ApiError] = {}

    async def ask(node_id: int) -> None:
        try:
            found[node_id] = await ask_node(node, node_id, request, kind)
        except Unreachable:
            problems[node_id] = node_unreachable(node_id)
        except AnswerLost:
            problems[node_id] = answer_lost(node_id, writes=False)

    async with asyncio.TaskGroup() as tasks:
        for node_id in sorted(living):
            tasks.create_task(ask(node_id))
    return found, problems


NO_SUCH_GROUP = 40405


def unknown_group(group_id: str) -> ApiError:
    return ApiError(
        404,
        f"there is no group {group_id[:249]!r}",
        error_code=NO_SUCH_GROUP,
        hint="GET /api/v1/groups lists the groups",
    )
