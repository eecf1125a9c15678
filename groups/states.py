"""The life of a classic group, as one table."""

from __future__ import annotations

from enum import Enum


class GroupState(Enum):
    """The values are the names that DescribeGroups and ListGroups show."""

    EMPTY = "Empty"
    """No members; may still hold committed offsets."""
    PREPARING_REBALANCE = "PreparingRebalance"
    """Waiting for every member to join again."""
    COMPLETING_REBALANCE = "CompletingRebalance"
    """A generation began; waiting for its leader's assignment."""
    STABLE = "Stable"
    DEAD = "Dead"
    """Removed or moved to another coordinator; answers nothing any more."""


LEGAL_PREVIOUS = {
    GroupState.EMPTY: (GroupState.PREPARING_REBALANCE,),
    GroupState.PREPARING_REBALANCE: (
        GroupState.EMPTY,
        GroupState.COMPLETING_REBALANCE,
        GroupState.STABLE,
    ),
    GroupState.COMPLETING_REBALANCE: (GroupState.PREPARING_REBALANCE,),
    GroupState.STABLE: (GroupState.COMPLETING_REBALANCE,),
    GroupState.DEAD: tuple(GroupState),
}


class IllegalTransition(Exception):
    """The coordinator's own fault: a state was entered from where it cannot be reached."""


def check_transition(group_id: str, old: GroupState, new: GroupState) -> None:
    if old not in LEGAL_PREVIOUS[new]:
        raise IllegalTransition(f"group {group_id!r}: {old.value} -> {new.value}")
