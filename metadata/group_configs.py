"""Settings of single groups (config resource GROUP, KIP-848): are they legal, what is in force.

A group need not exist to have settings. What it has not set itself is as the brokers' settings say;
brokers also bound what a group may set.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from .broker_configs import BROKER_CONFIGS
from .config_definition import (
    ConfigSource,
    ConfigType,
    Definition,
    InvalidConfig,
    at_least,
    by_name,
)
from .image import ClusterImage
from .topic_configs import BrokerSettings, effective

ASSIGNMENT_INTERVAL = "consumer.assignment.interval.ms"
HEARTBEAT_INTERVAL = "consumer.heartbeat.interval.ms"
SESSION_TIMEOUT = "consumer.session.timeout.ms"

GROUP_CONFIGS: Mapping[str, Definition] = by_name(
    [
        Definition(
            ASSIGNMENT_INTERVAL,
            ConfigType.INT,
            "1000",
            "Least time between two assignments of this group, when it is large.",
            check=at_least(0),
            synonyms=(("group.consumer.assignment.interval.ms", 1),),
        ),
        Definition(
            HEARTBEAT_INTERVAL,
            ConfigType.INT,
            "5000",
            "Heartbeat interval told to this group's members.",
            check=at_least(1),
            synonyms=(("group.consumer.heartbeat.interval.ms", 1),),
        ),
        Definition(
            SESSION_TIMEOUT,
            ConfigType.INT,
            "45000",
            "Silence after which this group's member is removed.",
            check=at_least(1),
            synonyms=(("group.consumer.session.timeout.ms", 1),),
        ),
    ]
)

_KEY_PREFIX = "group/"
"""In `ClusterImage.configs`, where no broker's key begins with a letter."""


def key_of_group(group_id: str) -> str:
    """Under which `ClusterImage.configs` holds the group's settings."""
    return _KEY_PREFIX + group_id


def configs_of_group(image: ClusterImage, group_id: str) -> Mapping[str, str]:
    return image.configs.get(key_of_group(group_id), MappingProxyType({}))


def groups_with_configs(image: ClusterImage) -> list[str]:
    return [key[len(_KEY_PREFIX) :] for key in image.configs if key.startswith(_KEY_PREFIX)]


def number_of_group(name: str, configs: Mapping[str, str], broker: BrokerSettings) -> int:
    """The value in force of a numeric setting, for a group with these settings of its own."""
    definition = GROUP_CONFIGS[name]
    return definition.number(effective(definition, configs, ConfigSource.GROUP, broker).value or "")


def validate_group_configs(configs: Mapping[str, str], broker: BrokerSettings) -> None:
    """Raises InvalidConfig with Kafka's sentence about the first setting that is not legal.

    The bounds are those of the broker that judges; a group's other value may be inherited.
    """
    for name, value in configs.items():
        definition = GROUP_CONFIGS.get(name)
        if definition is None:
            raise InvalidConfig(f"Unknown group config name: {name}")
        definition.validate(value)
    for name, definition in GROUP_CONFIGS.items():
        if name in configs:
            _check_bounds(name, definition.number(configs[name]), broker)
    interval_ms = number_of_group(HEARTBEAT_INTERVAL, configs, broker)
    if configs and number_of_group(SESSION_TIMEOUT, configs, broker) <= interval_ms:
        raise InvalidConfig(f"{SESSION_TIMEOUT} must be greater than {HEARTBEAT_INTERVAL}")


def validate_defaults_of_groups(configs: Mapping[str, str], broker: BrokerSettings) -> None:
    """Raises InvalidConfig where a broker's settings give groups a default that none may set."""
    name = "group.consumer.assignment.interval.ms"
    if name in configs:
        _check_bounds(name, BROKER_CONFIGS[name].number(configs[name]), broker)


def _check_bounds(name: str, value: int, broker: BrokerSettings) -> None:
    bounded = name.removeprefix("group.").removeprefix("consumer.")
    least, most = f"group.consumer.min.{bounded}", f"group.consumer.max.{bounded}"
    if value < _broker_number(least, broker):
        raise InvalidConfig(f"{name} must be greater than or equal to {least}")
    if value > _broker_number(most, broker):
        raise InvalidConfig(f"{name} must be less than or equal to {most}")


def _broker_number(name: str, broker: BrokerSettings) -> int:
    definition = BROKER_CONFIGS[name]
    given = (settings[name] for _, settings in broker.sources() if name in settings)
    return definition.number(next(given, definition.default or ""))
