"""Settings of the controller. Durations are seconds of the loop's time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from types import MappingProxyType

from ...seam import frozen


@frozen
class ControllerSettings:
    """Defaults are the production values; `cluster up` shortens them (RULES B4)."""

    heartbeat_interval: float = 2.0
    """`broker.heartbeat.interval.ms`: how often a broker reports. Local cluster: 0.2."""
    session_timeout: float = 9.0
    """`broker.session.timeout.ms`: silence after which a broker is fenced. Local cluster: 1.0."""
    election_timeout: float = 1.2
    """Longest time without a leader in the quorum before an election starts (RULES E5)."""
    own_command_timeout: float = 2.0
    """How long the controller's own commands (fencing, pins, digests) wait for an outcome."""
    rebalance_interval: float | None = None
    """`leader.imbalance.check.interval.seconds`: how often leaderships go back to the preferred
    replicas; None: only on request (`auto.leader.rebalance.enable`)."""
    default_configs: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """This node's static broker settings, by Kafka's names, as text."""

    @property
    def short_session(self) -> float:
        """What a silent broker gets after a change of controller (RULES B4)."""
        return min(self.session_timeout, 2 * self.heartbeat_interval + self.election_timeout)
