"""Settings of the coordinator, named as in Kafka with dots as underscores. Times in ms."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field

from ..seam import frozen
from .consumer.settings import ConsumerGroupSettings


@frozen
class GroupSettings:
    min_session_timeout_ms: int = 6_000
    max_session_timeout_ms: int = 1_800_000
    initial_rebalance_delay_ms: int = 3_000
    """How long the first rebalance of an empty group waits for more members."""
    max_size: int = 2**31 - 1
    new_member_join_timeout_ms: int = 300_000
    """A member that has not yet seen its first generation is kept this long while it waits."""
    commit_timeout_ms: int = 5_000
    """`offsets.commit.timeout.ms`: how long a record may wait for its replicas."""
    max_metadata_bytes: int = 4_096
    """`offset.metadata.max.bytes`."""
    offsets_retention_ms: int = 7 * 24 * 60 * 60 * 1000
    """`offsets.retention.minutes`: how long a group nobody is in keeps its offsets (KIP-211)."""
    offsets_retention_check_interval_ms: int = 600_000
    consumer: ConsumerGroupSettings = field(default_factory=ConsumerGroupSettings)
    """Those of the new protocol."""


def _never_gone(act: Callable[[], None]) -> None:
    """A client without a connection."""


@frozen
class ClientContext:
    client_id: str
    host: str
    """As Kafka shows it: "/127.0.0.1"."""
    when_gone: Callable[[Callable[[], None]], None] = _never_gone
    """Has a function called should the connection end before its request is answered."""
