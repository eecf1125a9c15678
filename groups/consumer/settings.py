"""Settings of the consumer protocol, named as in Kafka under `group.consumer`. Times in ms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ...metadata.config_definition import ConfigSource
from ...metadata.group_configs import (
    ASSIGNMENT_INTERVAL,
    GROUP_CONFIGS,
    HEARTBEAT_INTERVAL,
    SESSION_TIMEOUT,
)
from ...metadata.topic_configs import BrokerSettings, effective
from ...seam import frozen


@frozen
class ConsumerGroupSettings:
    heartbeat_interval_ms: int = 5_000
    """Told to members; the coordinator itself judges by the session."""
    session_timeout_ms: int = 45_000
    assignment_interval_ms: int = 1_000
    """Least time between two assignments of a large group; small ones wait less (`pace.py`)."""
    max_size: int = 2**31 - 1
    assignors: tuple[str, ...] = ("uniform", "range")
    """On offer; the first is the default."""
    upgrades: bool = True
    """`migration.policy`: a member of this protocol may take a classic group over."""
    downgrades: bool = True
    """When only classic members are left, the group becomes classic again."""

    def in_force(self, own: Mapping[str, str], broker: BrokerSettings) -> ConsumerGroupSettings:
        """With what one group has set for itself, and what was set for `broker` or for all while
        they run. What it was started with is here already."""

        def number(name: str, inherited: int) -> int:
            found = effective(GROUP_CONFIGS[name], own, ConfigSource.GROUP, broker)
            if found.source is ConfigSource.DEFAULT:
                return inherited
            return GROUP_CONFIGS[name].number(found.value or "")

        if not own and not broker.dynamic and not broker.dynamic_default:
            return self
        return replace(
            self,
            heartbeat_interval_ms=number(HEARTBEAT_INTERVAL, self.heartbeat_interval_ms),
            session_timeout_ms=number(SESSION_TIMEOUT, self.session_timeout_ms),
            assignment_interval_ms=number(ASSIGNMENT_INTERVAL, self.assignment_interval_ms),
        )
