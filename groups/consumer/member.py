"""One member of a consumer group, as a value: every change makes a new one."""

from __future__ import annotations

from dataclasses import field
from enum import IntEnum

from ...seam import frozen
from .partition_sets import PartitionSet, nothing

Subscribed = tuple[tuple[str, ...], str]
"""(topics by name, pattern)."""

JOINING_EPOCH = 0
LEAVING_EPOCH = -1
STATIC_LEAVING_EPOCH = -2
"""The member's process stops but will be back: its partitions wait for it for one session."""


class MemberState(IntEnum):
    """How far a member is on its way to the target; the values are those of Kafka's records."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    """It must first give up some of what it holds."""
    UNRELEASED_PARTITIONS = 2
    """Some of what it shall get is still held by others."""


@frozen
class ClassicFace:
    """What a member said that still speaks the classic protocol in a group that has moved on."""

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]
    """(assignor, subscription), the favourite first."""


@frozen
class ConsumerMember:
    member_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    topics: tuple[str, ...] = ()
    """Subscribed by name; sorted."""
    regex: str = ""
    """Subscribed by pattern, on top of the names; empty: none."""
    assignor: str | None = None
    """The assignor it would like."""
    classic: ClassicFace | None = None
    epoch: int = JOINING_EPOCH
    previous_epoch: int = JOINING_EPOCH
    state: MemberState = MemberState.STABLE
    assigned: PartitionSet = field(default_factory=nothing)
    revoking: PartitionSet = field(default_factory=nothing)
    """To be given up before the next epoch; still its own until it no longer reports them."""

    @property
    def subscription(self) -> Subscribed:
        return self.topics, self.regex

    def reconciled(self, assignment_epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.epoch == assignment_epoch
