"""Settings of the consumer protocol, named as in Kafka under `group.consumer`. Times in ms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ...metadata.group_configs import (
    ASSIGNMENT_INTERVAL,
    GROUP_CONFIGS,
    HEARTBEAT_INTERVAL,
    SESSION_TIMEOUT,
)
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

    def of_group(self, own: Mapping[str, str]) -> ConsumerGroupSettings:
        """With what one group has set for itself."""

        def number(name: str, inherited: int) -> int:
            return GROUP_CONFIGS[name].number(own[name]) if name in own else inherited

        if not own:
            return self
        return replace(
            self,
            heartbeat_interval_ms=number(HEARTBEAT_INTERVAL, self.heartbeat_interval_ms),
            session_timeout_ms=number(SESSION_TIMEOUT, self.session_timeout_ms),
            assignment_interval_ms=number(ASSIGNMENT_INTERVAL, self.assignment_interval_ms),
        )
