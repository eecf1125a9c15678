"""v2: the cluster's topics and brokers, from this node's image."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import orjson
from aiohttp import web

from ....metadata.image import PartitionImage, TopicImage
from ....wire.messages.create_topics import CreateTopicsRequest
from ....wire.messages.describe_configs import DescribeConfigsRequest
from .. import query
from ..bodies import read_body, worked
from ..errors import ApiError, from_kafka, no_partition
from ..keys import LEADERS, NODE
from ..media import JSON_TYPE, V2_TYPE, require_accept
from ..partition_ends import EARLIEST, LATEST, offset_at
from ..ports import HttpNode
from ..records_in import record_integer
from ..topics import ADMIN_SECONDS, PARTITION_BYTES, decided, existing_topic
from .formats import json_document, require_control_type

_BROKER_DEFAULT = -1
_CREATION_KEYS = frozenset({"topic_name", "partitions_count", "replication_factor"})


def v2_response(request: web.Request, document: Any, *, status: int = 200) -> web.Response:
    """In the type that the client asked for. Raises ApiError 406."""
    media_type = require_accept(request, V2_TYPE, JSON_TYPE, "application/vnd.kafka+json")
    body = orjson.dumps(document) + b"\n"
    return web.Response(body=body, status=status, content_type=media_type)


async def root(request: web.Request) -> web.Response:
    """Something answers here."""
    return web.Response(body=b"{}\n", content_type=require_accept(request, JSON_TYPE, V2_TYPE))


async def brokers(request: web.Request) -> web.Response:
    image = request.app[NODE].image()
    living = [broker.node_id for broker in image.brokers.values() if not broker.fenced]
    return v2_response(request, {"brokers": sorted(living)})


async def list_topics(request: web.Request) -> web.Response:
    return v2_response(request, sorted(request.app[NODE].image().topics))


async def describe_topic(request: web.Request) -> web.Response:
    node = request.app[NODE]
    topic = existing_topic(node, request.match_info["topic"])
    configs = await _configs(node, topic.name)
    return await worked(
        PARTITION_BYTES * len(topic.partitions),
        lambda: v2_response(
            request,
            {
                "name": topic.name,
                "configs": configs,
                "partitions": [_partition(partition) for partition in topic.partitions],
            },
        ),
    )


async def list_partitions(request: web.Request) -> web.Response:
    topic = existing_topic(request.app[NODE], request.match_info["topic"])
    return await worked(
        PARTITION_BYTES * len(topic.partitions),
        lambda: v2_response(request, [_partition(partition) for partition in topic.partitions]),
    )


async def describe_partition(request: web.Request) -> web.Response:
    topic = existing_topic(request.app[NODE], request.match_info["topic"])
    number = partition_in_path(request, topic)
    return v2_response(request, _partition(topic.partitions[number]))


async def partition_offsets(request: web.Request) -> web.Response:
    """`beginning_offset` and `end_offset`: what consumers may read up to."""
    node, leaders = request.app[NODE], request.app[LEADERS]
    topic = existing_topic(node, request.match_info["topic"])
    place = (topic.name, partition_in_path(request, topic))
    beginning = await offset_at(node, leaders, place, EARLIEST)
    end = await offset_at(node, leaders, place, LATEST)
    return v2_response(request, {"beginning_offset": beginning, "end_offset": end})


async def create_topic(request: web.Request) -> web.Response:
    """POST /admin/topics, as Strimzi's bridge has it: 201."""
    query.refuse_unknown(request.query)
    require_control_type(request)
    node = request.app[NODE]
    wanted = _creation(json_document(await read_body(request)))
    response = await decided(partial(node.create_topics, wanted))
    result = response.topics[0]
    if result.error_code:
        raise from_kafka(result.error_code, result.error_message)
    return web.Response(status=201)


def partition_in_path(request: web.Request, topic: TopicImage) -> int:
    """Raises ApiError 404, 40402."""
    text = request.match_info["partition"]
    if not (text.isascii() and text.isdigit()) or len(text) > 10:
        raise ApiError(404, f"{text[:40]!r} is no partition number", error_code=40402)
    if int(text) >= len(topic.partitions):
        raise no_partition(topic.name, int(text), len(topic.partitions))
    return int(text)


async def _configs(node: HttpNode, name: str) -> dict[str, str]:
    """All settings in force, as the bridge and Confluent show them, not only those given."""
    request = DescribeConfigsRequest(
        resources=[
            DescribeConfigsRequest.DescribeConfigsResource(
                resource_type=2, resource_name=name, configuration_keys=None
            )
        ]
    )
    deadline = asyncio.get_running_loop().time() + ADMIN_SECONDS
    response = await node.describe_configs(node.node_id, request, deadline)
    rows = response.results[0].configs
    return {row.name: row.value for row in rows if row.value is not None}


def _partition(partition: PartitionImage) -> dict[str, Any]:
    return {
        "partition": partition.partition,
        "leader": partition.leader,
        "replicas": [
            {
                "broker": broker,
                "leader": broker == partition.leader,
                "in_sync": broker in partition.isr,
            }
            for broker in partition.replicas
        ],
    }


def _creation(document: Any) -> CreateTopicsRequest:
    if not isinstance(document, dict):
        raise ApiError(422, 'the body is no JSON object with "topic_name"')
    unknown = sorted(document.keys() - _CREATION_KEYS)
    if unknown:
        raise ApiError(422, f"unknown key {unknown[0][:80]!r} in the body")
    name = document.get("topic_name")
    if not isinstance(name, str):
        raise ApiError(422, '"topic_name" is missing or no string')
    partitions = record_integer(document.get("partitions_count"), '"partitions_count"', 2**31 - 1)
    factor = record_integer(document.get("replication_factor"), '"replication_factor"', 2**15 - 1)
    topic = CreateTopicsRequest.CreatableTopic(
        name=name,
        num_partitions=_BROKER_DEFAULT if partitions is None else partitions,
        replication_factor=_BROKER_DEFAULT if factor is None else factor,
    )
    return CreateTopicsRequest(topics=[topic], timeout_ms=int(ADMIN_SECONDS * 1000))
