"""What a replica is to its partition, and how that looks from outside."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from uuid import UUID

from ..seam import frozen
from ..wire import ErrorCode


class Role(Enum):
    OFFLINE = "offline"
    """Serves nothing: its log cannot be trusted or opened, or this process is not yet registered
    (RULES B1)."""
    FOLLOWER = "follower"
    """Also while the partition has no leader."""
    LEADER = "leader"


@frozen
class PartitionState:
    """One replica on this node at one instant."""

    topic: str
    partition: int
    topic_id: UUID
    role: Role
    leader_id: int
    """-1 while there is none."""
    leader_epoch: int
    isr: tuple[int, ...]
    """As committed in the image; empty while this replica is offline."""
    high_watermark: int
    log_start_offset: int
    log_end_offset: int
    synced_offset: int


OnLeadership = Callable[[str, int, bool, int], None]
"""(topic, partition, does this node lead it?, leader epoch), on every change."""


class Refused(Exception):
    """A request that this replica must not serve now; nothing changed."""

    def __init__(self, error: ErrorCode) -> None:
        super().__init__(error.name)
        self.error = error


@dataclass(slots=True)
class ReplicationCounters:
    """For metrics; they only grow."""

    isr_shrinks: int = 0
    isr_expands: int = 0
    replicas_that_lost_data: int = 0
    """RULES C3."""
    committed_records_cut: int = 0
    """Truncations below the watermark, after unclean elections."""
    truncations: int = 0
    leader_changes: int = 0
    scrubbed_bytes: int = 0
    scrubbed_logs: int = 0
    """Read to their end by the scrubber."""
    damage_scrubbed: int = 0
    """Logs in which the scrubber was the first to meet damage."""
    lost_group_records: int = 0
    """Of groups, found missing for good by coordinators that load them; once for each loading."""
