"""Settings of the consumer protocol, named as in Kafka under `group.consumer`. Times in ms."""

from __future__ import annotations

from ...seam import frozen


@frozen
class ConsumerGroupSettings:
    heartbeat_interval_ms: int = 5_000
    """Told to members; the coordinator itself judges by the session."""
    session_timeout_ms: int = 45_000
    max_size: int = 2**31 - 1
    assignors: tuple[str, ...] = ("uniform", "range")
    """On offer; the first is the default."""
    upgrades: bool = True
    """`migration.policy`: a member of this protocol may take a classic group over."""
    downgrades: bool = True
    """When only classic members are left, the group becomes classic again."""
