"""Settings of topics and brokers, as the protocol's requests say them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from types import MappingProxyType

from ...metadata.config_definition import ConfigSource
from ...wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse
from ...wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from .asking import of_node
from .errors import from_kafka
from .ports import HttpNode
from .topics import ADMIN_SECONDS, decided

TOPIC, BROKER = 2, 4
"""Kinds of whose settings they are."""
SET, DELETE, APPEND, SUBTRACT = range(4)

Row = DescribeConfigsResponse.DescribeConfigsResult.DescribeConfigsResourceResult
Alteration = IncrementalAlterConfigsRequest.AlterConfigsResource
AlterableConfig = Alteration.AlterableConfig

_SOURCES: Mapping[int, str] = MappingProxyType(
    {
        ConfigSource.DYNAMIC_TOPIC: "DYNAMIC_TOPIC_CONFIG",
        ConfigSource.DYNAMIC_BROKER: "DYNAMIC_BROKER_CONFIG",
        ConfigSource.DYNAMIC_DEFAULT_BROKER: "DYNAMIC_DEFAULT_BROKER_CONFIG",
        ConfigSource.STATIC_BROKER: "STATIC_BROKER_CONFIG",
        ConfigSource.DEFAULT: "DEFAULT_CONFIG",
    }
)


def source_name(number: int) -> str:
    """Where a value comes from, in Kafka's words."""
    return _SOURCES.get(number, "UNKNOWN")


async def described(
    node: HttpNode, answered_by: int, kind: int, name: str, settings: list[str] | None = None
) -> list[Row]:
    """All settings, or those named. `answered_by`: the node that knows them. Raises ApiError."""
    request = DescribeConfigsRequest(
        resources=[
            DescribeConfigsRequest.DescribeConfigsResource(
                resource_type=kind, resource_name=name, configuration_keys=settings
            )
        ],
        include_synonyms=True,
    )
    deadline = asyncio.get_running_loop().time() + ADMIN_SECONDS
    question = node.describe_configs(answered_by, request, deadline)
    response = await of_node(answered_by, question, writes=False)
    result = response.results[0]
    if result.error_code:
        raise from_kafka(result.error_code, result.error_message)
    return list(result.configs)


async def alter(
    node: HttpNode,
    kind: int,
    name: str,
    changes: list[AlterableConfig],
    *,
    validate_only: bool = False,
) -> None:
    """All of them or none. Raises ApiError."""
    resource = Alteration(resource_type=kind, resource_name=name, configs=changes)
    wanted = IncrementalAlterConfigsRequest(resources=[resource], validate_only=validate_only)
    response = await decided(partial(node.alter_configs, wanted))
    result = response.responses[0]
    if result.error_code:
        raise from_kafka(result.error_code, result.error_message)
