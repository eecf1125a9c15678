"""v3: settings of topics, of brokers, and of the cluster (dynamic settings of all its brokers)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from aiohttp import web

from ....metadata.config_definition import ConfigSource
from ....metadata.topic_configs import CLUSTER_DEFAULT
from ....seam import frozen
from ..errors import ApiError
from ..settings import (
    APPEND,
    BROKER,
    DELETE,
    SET,
    SUBTRACT,
    TOPIC,
    AlterableConfig,
    Row,
    alter,
    described,
    source_name,
)
from .resources import Document, Resources, answer, listed, object_in_body, refuse_keys

_OPERATIONS = {"SET": SET, "DELETE": DELETE, "APPEND": APPEND, "SUBTRACT": SUBTRACT}


@frozen
class Owner:
    """Whose settings: kind of the wire, name there, and how v3 names it."""

    resource_type: int
    resource_name: str
    answered_by: int
    """The node that knows them."""
    kind: str
    segments: tuple[object, ...]
    crn: tuple[str, ...]
    fields: Document


def of_topic(resources: Resources, request: web.Request) -> Owner:
    return _topic(resources, resources.topic(request).name)


def _topic(resources: Resources, name: str) -> Owner:
    return Owner(
        TOPIC,
        name,
        resources.node.node_id,
        "KafkaTopicConfig",
        ("topics", name, "configs"),
        (f"topic={name}",),
        {"topic_name": name},
    )


def of_broker(resources: Resources, request: web.Request) -> Owner:
    return _broker(resources.broker(request))


def _broker(number: int) -> Owner:
    return Owner(
        BROKER,
        str(number),
        number,
        "KafkaBrokerConfig",
        ("brokers", number, "configs"),
        (f"broker={number}",),
        {"broker_id": number},
    )


def of_cluster(resources: Resources, _: web.Request) -> Owner:
    return Owner(
        BROKER,
        CLUSTER_DEFAULT,
        resources.node.node_id,
        "KafkaClusterConfig",
        ("broker-configs",),
        ("broker",),
        {"config_type": "BROKER"},
    )


OwnerOf = Callable[[Resources, web.Request], Owner]


async def list_configs(request: web.Request, owner_of: OwnerOf) -> web.Response:
    resources = Resources(request)
    owner = owner_of(resources, request)
    data = await _described(resources, owner)
    return answer(resources.collection(f"{owner.kind}List", owner.segments, data))


async def list_configs_of_topics(request: web.Request) -> web.Response:
    """Of all topics: this node knows them, and makes them a topic at a time (RULES F1)."""
    resources = Resources(request)
    data: list[Document] = []
    for name in sorted(resources.image.topics):
        if name in resources.node.image().topics:
            data += await _described(resources, _topic(resources, name))
            await asyncio.sleep(0)
    return await listed(
        resources, "KafkaTopicConfigList", ["topics", "-", "configs"], len(data), lambda: data
    )


async def list_configs_of_brokers(request: web.Request) -> web.Response:
    """Of all that live; each is asked."""
    resources = Resources(request)
    living = [n for n, broker in sorted(resources.image.brokers.items()) if not broker.fenced]
    found = await asyncio.gather(*(_described(resources, _broker(number)) for number in living))
    data = [row for rows in found for row in rows]
    return answer(resources.collection("KafkaBrokerConfigList", ["brokers", "-", "configs"], data))


async def describe_config(request: web.Request, owner_of: OwnerOf) -> web.Response:
    resources = Resources(request)
    owner = owner_of(resources, request)
    name = request.match_info["name"]
    found = await _described(resources, owner, [name])
    if not found:
        raise ApiError(404, f"there is no setting {name[:100]!r} here")
    return answer(found[0])


async def set_config(request: web.Request, owner_of: OwnerOf) -> web.Response:
    resources = Resources(request)
    owner = owner_of(resources, request)
    document = await object_in_body(request)
    refuse_keys(document, "value")
    config = _alterable(request.match_info["name"], document.get("value"), "SET")
    return await _alter(resources, owner, [config])


async def reset_config(request: web.Request, owner_of: OwnerOf) -> web.Response:
    resources = Resources(request)
    owner = owner_of(resources, request)
    config = _alterable(request.match_info["name"], None, "DELETE")
    return await _alter(resources, owner, [config])


async def alter_configs(request: web.Request, owner_of: OwnerOf) -> web.Response:
    """All of them or none."""
    resources = Resources(request)
    owner = owner_of(resources, request)
    document = await object_in_body(request)
    refuse_keys(document, "data", "validate_only")
    items = document.get("data")
    if not isinstance(items, list) or not items:
        raise ApiError(400, '"data" is missing or no array of settings')
    validate_only = document.get("validate_only", False)
    if not isinstance(validate_only, bool):
        raise ApiError(400, '"validate_only" is neither true nor false')
    configs = [_altered(item) for item in items]
    return await _alter(resources, owner, configs, validate_only=validate_only)


def _altered(item: Any) -> AlterableConfig:
    if not isinstance(item, dict) or not isinstance(item.get("name"), str):
        raise ApiError(400, '"data" holds something that is no object with a "name"')
    refuse_keys(item, "name", "value", "operation", what="a setting")
    operation = item.get("operation")
    if operation is None:
        operation = "SET"
    if not isinstance(operation, str) or operation.upper() not in _OPERATIONS:
        raise ApiError(400, f'"operation" takes {", ".join(_OPERATIONS)}')
    return _alterable(item["name"], item.get("value"), operation.upper())


def _alterable(name: str, value: Any, operation: str) -> AlterableConfig:
    if value is not None and not isinstance(value, str):
        raise ApiError(400, f"the value of setting {name[:80]!r} is no text")
    return AlterableConfig(name=name, config_operation=_OPERATIONS[operation], value=value)


async def _alter(
    resources: Resources,
    owner: Owner,
    configs: list[AlterableConfig],
    *,
    validate_only: bool = False,
) -> web.Response:
    kind, name = owner.resource_type, owner.resource_name
    await alter(resources.node, kind, name, configs, validate_only=validate_only)
    return web.Response(status=204)


async def _described(
    resources: Resources, owner: Owner, names: list[str] | None = None
) -> list[Document]:
    kind, name = owner.resource_type, owner.resource_name
    rows = await described(resources.node, owner.answered_by, kind, name, names)
    return [_config(resources, owner, row) for row in rows]


def _config(resources: Resources, owner: Owner, row: Row) -> Document:
    return resources.resource(
        owner.kind,
        [*owner.segments, row.name],
        [*owner.crn, f"config={row.name}"],
        **owner.fields,
        name=row.name,
        value=row.value,
        is_default=row.config_source == ConfigSource.DEFAULT,
        is_read_only=row.read_only,
        is_sensitive=row.is_sensitive,
        source=source_name(row.config_source),
        synonyms=[
            {"name": one.name, "value": one.value, "source": source_name(one.source)}
            for one in row.synonyms
        ],
    )
