"""v3: topics. Reads come from this node's image; changes are the controller's."""

from __future__ import annotations

from functools import partial
from typing import Any

from aiohttp import web

from ....metadata.image import TopicImage
from ....wire.messages.create_topics import CreateTopicsRequest
from ....wire.messages.delete_topics import DeleteTopicsRequest
from ..errors import ApiError, from_kafka
from ..topics import ADMIN_SECONDS, add_partitions, decided
from ..views import INTERNAL_TOPICS
from .resources import Document, Resources, answer, listed, object_in_body, refuse_keys

_BROKER_DEFAULT = -1
_INT16_MAX, _INT32_MAX = 2**15 - 1, 2**31 - 1

OPERATIONS = (
    "READ",
    "WRITE",
    "CREATE",
    "DELETE",
    "ALTER",
    "DESCRIBE",
    "DESCRIBE_CONFIGS",
    "ALTER_CONFIGS",
)
"""What may be done with a topic; without an authorizer anybody may."""


async def list_topics(request: web.Request) -> web.Response:
    resources = Resources(request)
    topics = resources.image.topics
    return await listed(
        resources,
        "KafkaTopicList",
        ["topics"],
        len(topics),
        lambda: [topic_document(resources, topics[name]) for name in sorted(topics)],
    )


async def describe_topic(request: web.Request) -> web.Response:
    resources = Resources(request)
    document = topic_document(resources, resources.topic(request))
    if request.query.get("include_authorized_operations", "").lower() == "true":
        document["authorized_operations"] = list(OPERATIONS)
    return answer(document)


async def create_topic(request: web.Request) -> web.Response:
    """201 with the topic; 200 when `validate_only`, and nothing was created."""
    resources = Resources(request)
    wanted = _creation(await object_in_body(request))
    node = resources.node
    response = await decided(partial(node.create_topics, wanted))
    result = response.topics[0]
    if result.error_code:
        raise from_kafka(result.error_code, result.error_message)
    if wanted.validate_only:
        return answer(_planned(resources, wanted.topics[0], result))
    resources = Resources(request)
    topic = resources.image.topics.get(result.name)
    if topic is None:
        raise from_kafka(3, f"topic {result.name!r} was deleted at the same moment")
    return answer(
        topic_document(resources, topic), status=201, location=resources.url("topics", topic.name)
    )


async def delete_topic(request: web.Request) -> web.Response:
    resources = Resources(request)
    state = DeleteTopicsRequest.DeleteTopicState(name=request.match_info["topic"])
    wanted = DeleteTopicsRequest(topics=[state], timeout_ms=int(ADMIN_SECONDS * 1000))
    response = await decided(partial(resources.node.delete_topics, wanted))
    result = response.responses[0]
    if result.error_code:
        raise from_kafka(result.error_code, result.error_message)
    return web.Response(status=204)


async def change_partition_count(request: web.Request) -> web.Response:
    """PATCH: more partitions; their number never shrinks."""
    resources = Resources(request)
    topic = resources.topic(request)
    document = await object_in_body(request)
    refuse_keys(document, "partitions_count")
    count = _count(document, "partitions_count", _INT32_MAX)
    if count is None:
        raise ApiError(400, '"partitions_count" is missing')
    await add_partitions(resources.node, topic.name, count)
    resources = Resources(request)
    return answer(topic_document(resources, resources.topic(request)))


def topic_document(resources: Resources, topic: TopicImage) -> Document:
    return _document(
        resources,
        topic.name,
        partitions_count=len(topic.partitions),
        replication_factor=len(topic.partitions[0].replicas) if topic.partitions else 0,
    )


def _planned(
    resources: Resources,
    wanted: CreateTopicsRequest.CreatableTopic,
    result: Any,
) -> Document:
    """A topic that would be created. Counts that were left to the cluster are in the answer."""
    return _document(
        resources,
        wanted.name,
        partitions_count=max(result.num_partitions, wanted.num_partitions),
        replication_factor=max(result.replication_factor, wanted.replication_factor),
    )


def _document(
    resources: Resources, name: str, *, partitions_count: int, replication_factor: int
) -> Document:
    own = ["topics", name]
    return resources.resource(
        "KafkaTopic",
        own,
        [f"topic={name}"],
        topic_name=name,
        is_internal=name in INTERNAL_TOPICS,
        replication_factor=replication_factor,
        partitions_count=partitions_count,
        partitions=resources.link(*own, "partitions"),
        configs=resources.link(*own, "configs"),
        partition_reassignments=resources.link(*own, "partitions", "-", "reassignment"),
    )


def _creation(document: Document) -> CreateTopicsRequest:
    refuse_keys(
        document, "topic_name", "partitions_count", "replication_factor", "configs", "validate_only"
    )
    name = document.get("topic_name")
    if not isinstance(name, str):
        raise ApiError(400, '"topic_name" is missing or no string')
    validate_only = document.get("validate_only", False)
    if not isinstance(validate_only, bool):
        raise ApiError(400, '"validate_only" is neither true nor false')
    partitions = _count(document, "partitions_count", _INT32_MAX)
    factor = _count(document, "replication_factor", _INT16_MAX)
    topic = CreateTopicsRequest.CreatableTopic(
        name=name,
        num_partitions=_BROKER_DEFAULT if partitions is None else partitions,
        replication_factor=_BROKER_DEFAULT if factor is None else factor,
        configs=[
            CreateTopicsRequest.CreatableTopicConfig(name=key, value=value)
            for key, value in _configs(document.get("configs"))
        ],
    )
    return CreateTopicsRequest(
        topics=[topic], timeout_ms=int(ADMIN_SECONDS * 1000), validate_only=validate_only
    )


def _configs(items: Any) -> list[tuple[str, str | None]]:
    """`[{"name": ..., "value": ...}]`."""
    if items is None:
        return []
    if not isinstance(items, list):
        raise ApiError(400, '"configs" is no array')
    found = []
    for item in items:
        if not isinstance(item, dict) or not isinstance(item.get("name"), str):
            raise ApiError(400, '"configs" holds something that is no object with a "name"')
        value = item.get("value")
        if value is not None and not isinstance(value, str):
            raise ApiError(400, f"the value of setting {item['name'][:80]!r} is no text")
        found.append((item["name"], value))
    return found


def _count(document: Document, name: str, largest: int) -> int | None:
    """Zero and less are refused by the controller, in its own words."""
    value = document.get(name)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= largest:
        raise ApiError(400, f'"{name}" is no whole number from 0 to {largest}')
    return value
