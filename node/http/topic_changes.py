"""What can be changed about a topic that exists: its settings, its number of partitions, and from
where on its records are kept."""

from __future__ import annotations

import asyncio
from typing import Any

from aiohttp import web

from ...wire import ErrorCode
from ...wire.messages.delete_records import DeleteRecordsRequest
from .asking import of_node
from .bodies import json_object, read_body, refuse_unknown_keys
from .consume import partition_number
from .documents import Setting, TopicSettings, Trimmed
from .errors import ApiError, from_kafka
from .guards import json_response
from .keys import LEADERS, NODE
from .ports import HttpNode
from .records_in import record_integer
from .settings import DELETE, SET, TOPIC, AlterableConfig, alter, described, source_name
from .topics import ADMIN_SECONDS, add_partitions, config_text, existing_topic, topic_response

HIGH_WATERMARK = -1
"""As the offset: everything that is committed (KIP-107)."""
_INT32_MAX, _INT64_MAX = 2**31 - 1, 2**63 - 1


async def describe_settings(request: web.Request) -> web.Response:
    node = request.app[NODE]
    topic = existing_topic(node, request.match_info["topic"])
    return json_response(await _settings(node, topic.name))


async def alter_settings(request: web.Request) -> web.Response:
    """200 with the settings as they are now; what was refused changed none of them."""
    node = request.app[NODE]
    document = await _document(request, "set", "unset", "validate_only")
    topic = existing_topic(node, request.match_info["topic"])
    changes = _changes(document)
    validate_only = document.get("validate_only", False)
    if not isinstance(validate_only, bool):
        raise ApiError(422, '"validate_only" is neither true nor false')
    await alter(node, TOPIC, topic.name, changes, validate_only=validate_only)
    return json_response(await _settings(node, topic.name))


async def _settings(node: HttpNode, topic: str) -> TopicSettings:
    rows = await described(node, node.node_id, TOPIC, topic)
    settings: list[Setting] = [
        {"name": row.name, "value": row.value, "source": source_name(row.config_source)}
        for row in rows
    ]
    return {"topic": topic, "configs": settings}


def _changes(document: dict[str, Any]) -> list[AlterableConfig]:
    wanted, unwanted = document.get("set") or {}, document.get("unset") or []
    if not isinstance(wanted, dict):
        raise ApiError(422, '"set" is no object of names and values')
    if not isinstance(unwanted, list) or not all(isinstance(name, str) for name in unwanted):
        raise ApiError(422, '"unset" is no array of names')
    if not wanted and not unwanted:
        raise ApiError(422, "there is nothing to change", hint='"set" or "unset" says what')
    return [
        *(
            AlterableConfig(name=name, config_operation=SET, value=config_text(name, value))
            for name, value in wanted.items()
        ),
        *(AlterableConfig(name=name, config_operation=DELETE, value=None) for name in unwanted),
    ]


async def add_partitions_to_topic(request: web.Request) -> web.Response:
    """200 with the topic as GET shows it."""
    node = request.app[NODE]
    document = await _document(request, "count")
    topic = existing_topic(node, request.match_info["topic"])
    count = record_integer(document.get("count"), '"count"', _INT32_MAX)
    if count is None:
        raise ApiError(422, '"count" is missing')
    await add_partitions(node, topic.name, count)
    return await topic_response(node, existing_topic(node, topic.name))


async def trim_partition(request: web.Request) -> web.Response:
    """200 when every replica on a living node has deleted them."""
    node, leaders = request.app[NODE], request.app[LEADERS]
    document = await _document(request, "before_offset")
    topic = existing_topic(node, request.match_info["topic"])
    number = partition_number(topic, request.match_info["partition"])
    before = record_integer(document.get("before_offset"), '"before_offset"', _INT64_MAX)
    leader = await leaders.for_writing(topic.name, number, leaders.give_up_at())
    answer: Trimmed = {
        "topic": topic.name,
        "partition": number,
        "log_start_offset": await _deleted(
            node, leader, topic.name, number, HIGH_WATERMARK if before is None else before
        ),
    }
    return json_response(answer)


async def _deleted(node: HttpNode, leader: int, topic: str, number: int, before: int) -> int:
    """The partition's first offset then. Raises ApiError."""
    partition = DeleteRecordsRequest.DeleteRecordsTopic.DeleteRecordsPartition(
        partition_index=number, offset=before
    )
    wanted = DeleteRecordsRequest(
        topics=[DeleteRecordsRequest.DeleteRecordsTopic(name=topic, partitions=[partition])],
        timeout_ms=int(ADMIN_SECONDS * 1000),
    )
    # The leader tells of replicas that are late; it must not be given up before it can.
    deadline = asyncio.get_running_loop().time() + ADMIN_SECONDS + 1.0
    question = node.delete_records(leader, wanted, deadline)
    response = await of_node(leader, question, writes=True)
    verdict = response.topics[0].partitions[0]
    if verdict.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
        raise from_kafka(verdict.error_code, f"{topic}-{number} does not reach to {before}")
    if verdict.error_code:
        raise from_kafka(verdict.error_code, writes=True)
    return int(verdict.low_watermark)


async def _document(request: web.Request, *known: str) -> dict[str, Any]:
    document = json_object(await read_body(request))
    refuse_unknown_keys(document, known)
    return document
