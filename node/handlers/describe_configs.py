"""API key 32: DescribeConfigs, versions 1-4, answered from this node's image and configuration.

v1 adds synonyms, v3 type and documentation, v4 is flexible. Topics and groups can be described on
every node, a broker only on itself (Kafka's rule: its static settings are known nowhere else).
"""

from __future__ import annotations

from collections.abc import Iterable

from ...metadata.config_definition import ConfigSource, Definition, UpdateMode
from ...metadata.controller.configs import ResourceType
from ...metadata.group_configs import GROUP_CONFIGS, configs_of_group
from ...metadata.topic_config_definitions import TOPIC_CONFIGS
from ...metadata.topic_configs import (
    CLUSTER_DEFAULT,
    BrokerSettings,
    effective,
    effective_topic_config,
    synonyms,
    synonyms_of_topic_config,
)
from ...metadata.topic_names import why_invalid
from ...wire import ErrorCode
from ...wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse
from ..served import Call
from ..services import Services
from ..settings import SETTINGS

Resource = DescribeConfigsRequest.DescribeConfigsResource
Result = DescribeConfigsResponse.DescribeConfigsResult
Row = Result.DescribeConfigsResourceResult
Synonym = Row.DescribeConfigsSynonym

SECRET = frozenset({"cluster.secret.file"})


def handle(
    services: Services, request: DescribeConfigsRequest, call: Call
) -> DescribeConfigsResponse:
    return described(services, request)


def described(services: Services, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
    return DescribeConfigsResponse(
        results=[_describe(services, resource, request) for resource in request.resources]
    )


def _describe(services: Services, resource: Resource, request: DescribeConfigsRequest) -> Result:
    result = Result(
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        error_message=None,
    )
    if resource.resource_type == ResourceType.TOPIC:
        rows = _topic_rows(services, resource, result)
    elif resource.resource_type == ResourceType.BROKER:
        rows = _broker_rows(services, resource, result)
    elif resource.resource_type == ResourceType.GROUP:
        rows = _group_rows(services, resource, result)
    else:
        return _failed(
            result,
            ErrorCode.INVALID_REQUEST,
            f"Unsupported resource type: {resource.resource_type}",
        )
    for row in rows:
        if not request.include_synonyms:
            row.synonyms = []
        if not request.include_documentation:
            row.documentation = None
        result.configs.append(row)
    return result


def _topic_rows(services: Services, resource: Resource, result: Result) -> Iterable[Row]:
    name = resource.resource_name
    topic = services.image.topics.get(name)
    if topic is None:
        legal = why_invalid(name) is None
        _failed(
            result,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if legal else ErrorCode.INVALID_TOPIC_EXCEPTION,
            None,
        )
        return
    config = services.config
    broker = BrokerSettings.of(services.image, config.given, config.node_id)
    for key in _wanted(resource, TOPIC_CONFIGS):
        found = effective_topic_config(key, topic.configs, broker)
        definition = TOPIC_CONFIGS[key]
        yield _row(
            definition,
            found.value,
            found.source,
            read_only=False,
            synonyms=synonyms_of_topic_config(key, topic.configs, broker),
        )


def _group_rows(services: Services, resource: Resource, result: Result) -> Iterable[Row]:
    """Also of groups that nobody has joined: what would be in force for them."""
    if not resource.resource_name:
        _failed(result, ErrorCode.INVALID_REQUEST, "Group name must not be empty")
        return
    config = services.config
    own = configs_of_group(services.image, resource.resource_name)
    broker = BrokerSettings.of(services.image, config.given, config.node_id)
    for key in _wanted(resource, GROUP_CONFIGS):
        definition = GROUP_CONFIGS[key]
        found = effective(definition, own, ConfigSource.GROUP, broker)
        yield _row(
            definition,
            found.value,
            found.source,
            read_only=False,
            synonyms=synonyms(definition, own, ConfigSource.GROUP, broker),
        )


def _broker_rows(services: Services, resource: Resource, result: Result) -> Iterable[Row]:
    config, image = services.config, services.image
    name = resource.resource_name
    if name == CLUSTER_DEFAULT:
        for key, value in sorted(image.configs.get(CLUSTER_DEFAULT, {}).items()):
            if key in SETTINGS and key in _wanted(resource, SETTINGS):
                source = ConfigSource.DYNAMIC_DEFAULT_BROKER
                yield _row(
                    SETTINGS[key], value, source, read_only=False, synonyms=[(key, value, source)]
                )
        return
    if name != str(config.node_id):
        _failed(
            result,
            ErrorCode.INVALID_REQUEST,
            f"Unexpected broker id, expected {config.node_id} or empty string, but received {name}",
        )
        return
    broker = BrokerSettings.of(image, config.given, config.node_id)
    for key in _wanted(resource, SETTINGS):
        definition = SETTINGS[key]
        chain: list[tuple[str, str | None, ConfigSource]] = [
            (key, settings[key], source) for source, settings in broker.sources() if key in settings
        ]
        if definition.default is not None or not chain:
            chain.append((key, definition.default, ConfigSource.DEFAULT))
        _, strongest, origin = chain[0]
        yield _row(
            definition,
            strongest,
            origin,
            read_only=definition.update is UpdateMode.READ_ONLY,
            synonyms=chain,
        )


def _wanted(resource: Resource, known: Iterable[str]) -> list[str]:
    """Asked names that do not exist are left out, as in Kafka."""
    keys = resource.configuration_keys
    return sorted(known) if keys is None else [key for key in keys if key in known]


def _row(
    definition: Definition,
    value: str | None,
    source: ConfigSource,
    *,
    read_only: bool,
    synonyms: list[tuple[str, str | None, ConfigSource]],
) -> Row:
    secret = definition.name in SECRET
    return Row(
        name=definition.name,
        value=None if secret else value,
        read_only=read_only,
        config_source=source,
        is_sensitive=secret,
        synonyms=[
            Synonym(name=name, value=None if secret else text, source=origin)
            for name, text, origin in synonyms
        ],
        config_type=definition.type,
        documentation=definition.doc,
    )


def _failed(result: Result, error: ErrorCode, message: str | None) -> Result:
    result.error_code = error
    result.error_message = message or error.message
    return result
