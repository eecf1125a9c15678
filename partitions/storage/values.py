"""What storage hands back: values only, no behaviour."""

from __future__ import annotations

from dataclasses import field
from typing import NamedTuple

from ...seam import Buffer, frozen


class Appended(NamedTuple):
    """Where a batch (leader) or a run of batches (follower) now lies in the log."""

    base_offset: int
    last_offset: int
    log_append_time_ms: int
    """-1 when the topic keeps the producer's timestamps (CreateTime)."""
    log_start_offset: int
    leader_epoch: int
    """Epoch of the last batch."""
    size: int
    """Bytes in the log; 0 for a duplicate."""
    duplicate: bool = False
    """An idempotent batch that is already there: the offsets are those of the first copy, and the
    answer waits exactly as the first copy's does (RULES D5)."""


@frozen
class LogRead:
    """Whole batches, in order. The first may begin below the asked offset (clients skip)."""

    parts: list[Buffer] = field(default_factory=list)
    size: int = 0
    base_offset: int = -1
    """Base offset of the first batch; -1 when nothing was read."""
    next_offset: int = -1
    """Offset after the last batch read; the asked offset when nothing was read."""


@frozen
class FoundOffset:
    """Answer of a lookup by time."""

    offset: int
    timestamp_ms: int
    leader_epoch: int


@frozen
class Damage:
    """Bytes below the synced recovery point are not what they were (RULES C1, C4).

    The log then serves reads below `offset` and refuses appends until `truncate_to` or
    `truncate_fully` cuts it; whoever calls those has first taken the replica out of the ISR. The
    only replica is put in order by `set_damage_aside` instead.
    """

    path: str
    position: int
    offset: int
    """First offset that is lost on this replica."""
    recovery_point: int
    reason: str
    log_end_offset: int = 0
    """Where the log ended, if somebody knows more than the recovery point."""

    def __str__(self) -> str:
        return (
            f"{self.path} is damaged at byte {self.position} ({self.reason}): offsets from "
            f"{self.offset} are lost here although all below {self.recovery_point} were synced"
        )
