"""The cluster, and topics: GET /api/v1/cluster, GET and POST /api/v1/topics, GET and DELETE
/api/v1/topics/{topic}. Reads come from this node's image; changes are the controller's."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeVar

from aiohttp import web

from ...metadata.image import TopicImage
from ...wire import ErrorCode
from ...wire.messages.create_partitions import CreatePartitionsRequest
from ...wire.messages.create_topics import CreateTopicsRequest
from ...wire.messages.delete_topics import DeleteTopicsRequest
from . import query
from .asking import of_controller
from .bodies import json_object, read_body, refuse_unknown_keys, require_type, worked
from .errors import ApiError, from_kafka
from .guards import JSON_TYPE, json_response
from .keys import NODE
from .ports import HttpNode
from .views import cluster_overview, partition_count, topic_document, topic_list

ADMIN_SECONDS = 15.0
LOOKED_AT_ONCE = 500
"""Replicas, in one turn of the loop."""

PARTITION_BYTES = 100
"""How much work a partition is in an overview, in bytes of JSON (RULES F1)."""

_TOPIC_KEYS = ("configs", "name", "partitions", "replication_factor", "validate_only")
_BROKER_DEFAULT = -1

Answer = TypeVar("Answer")


async def cluster(request: web.Request) -> web.Response:
    query.refuse_unknown(request.query)
    node = request.app[NODE]
    image, role = node.image(), node.quorum_role()
    return await worked(
        PARTITION_BYTES * partition_count(image),
        lambda: json_response(cluster_overview(image, node_id=node.node_id, role=role)),
    )


async def list_topics(request: web.Request) -> web.Response:
    query.refuse_unknown(request.query)
    image = request.app[NODE].image()
    return await worked(
        PARTITION_BYTES * partition_count(image), lambda: json_response(topic_list(image))
    )


async def describe_topic(request: web.Request) -> web.Response:
    query.refuse_unknown(request.query)
    node = request.app[NODE]
    topic = existing_topic(node, request.match_info["topic"])
    return await topic_response(node, topic)


async def topic_response(
    node: HttpNode, topic: TopicImage, *, status: int = 200, headers: dict[str, str] | None = None
) -> web.Response:
    held = {}
    for partition in topic.partitions:
        if partition.partition % LOOKED_AT_ONCE == LOOKED_AT_ONCE - 1:
            await asyncio.sleep(0)
        held[partition.partition] = node.local_replica(topic.name, partition.partition)
    return await worked(
        PARTITION_BYTES * len(held),
        lambda: json_response(
            topic_document(topic, lambda _, number: held[number]), status=status, headers=headers
        ),
    )


async def create_topic(request: web.Request) -> web.Response:
    """201 with the topic as GET shows it; 200 when `validate_only`, and nothing was created."""
    query.refuse_unknown(request.query)
    require_type(request, JSON_TYPE)
    wanted = _creation(await read_body(request))
    node = request.app[NODE]
    response = await decided(partial(node.create_topics, wanted))
    result = response.topics[0]
    if result.error_code:
        raise from_kafka(result.error_code, result.error_message)
    if wanted.validate_only:
        return json_response({"valid": True, "name": result.name})
    topic = existing_topic(node, result.name)
    return await topic_response(
        node, topic, status=201, headers={"Location": f"/api/v1/topics/{topic.name}"}
    )


async def delete_topic(request: web.Request) -> web.Response:
    """204; the records are gone on every node as soon as it has followed the image."""
    query.refuse_unknown(request.query)
    name = request.match_info["topic"]
    state = DeleteTopicsRequest.DeleteTopicState(name=name)
    wanted = DeleteTopicsRequest(topics=[state], timeout_ms=int(ADMIN_SECONDS * 1000))
    response = await decided(partial(request.app[NODE].delete_topics, wanted))
    result = response.responses[0]
    if result.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        raise _no_topic(name)
    if result.error_code:
        raise from_kafka(result.error_code, result.error_message)
    return web.Response(status=204)


async def add_partitions(node: HttpNode, topic: str, count: int) -> None:
    """Up to `count`: their number never shrinks. Raises ApiError."""
    wanted = CreatePartitionsRequest(
        topics=[
            CreatePartitionsRequest.CreatePartitionsTopic(name=topic, count=count, assignments=None)
        ],
        timeout_ms=int(ADMIN_SECONDS * 1000),
    )
    response = await decided(partial(node.create_partitions, wanted))
    result = response.results[0]
    if result.error_code:
        raise from_kafka(result.error_code, result.error_message)


async def decided(ask: Callable[[float], Awaitable[Answer]]) -> Answer:
    """What the controller answers to `ask(deadline)`. Raises ApiError."""
    return await of_controller(ask(asyncio.get_running_loop().time() + ADMIN_SECONDS))


def existing_topic(node: HttpNode, name: str) -> TopicImage:
    topic = node.image().topics.get(name)
    if topic is None:
        raise _no_topic(name)
    return topic


def _no_topic(name: str) -> ApiError:
    return from_kafka(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name[:249]!r}")


def _creation(body: bytes) -> CreateTopicsRequest:
    document = json_object(body)
    refuse_unknown_keys(document, _TOPIC_KEYS)
    name = document.get("name")
    if not isinstance(name, str):
        raise ApiError(422, '"name" is missing or no string')
    configs = document.get("configs") or {}
    if not isinstance(configs, dict):
        raise ApiError(422, '"configs" is no object of names and values')
    topic = CreateTopicsRequest.CreatableTopic(
        name=name,
        num_partitions=_count(document, "partitions", 2**31 - 1),
        replication_factor=_count(document, "replication_factor", 2**15 - 1),
        configs=[
            CreateTopicsRequest.CreatableTopicConfig(name=key, value=config_text(key, value))
            for key, value in configs.items()
        ],
    )
    validate_only = document.get("validate_only", False)
    if not isinstance(validate_only, bool):
        raise ApiError(422, '"validate_only" is neither true nor false')
    return CreateTopicsRequest(
        topics=[topic], timeout_ms=int(ADMIN_SECONDS * 1000), validate_only=validate_only
    )


def _count(document: dict[str, Any], name: str, largest: int) -> int:
    """Absent or null: the cluster's default. Zero and less are refused by the controller, in its
    own words, but what the protocol cannot carry is refused here."""
    value = document.get(name)
    if value is None:
        return _BROKER_DEFAULT
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= largest:
        raise ApiError(422, f'"{name}" is no whole number from 1 to {largest}')
    return value


def config_text(name: str, value: Any) -> str:
    """Kafka's settings are text: numbers and truth values are written its way."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)
    raise ApiError(422, f"setting {name!r} is no text, number or truth value")
