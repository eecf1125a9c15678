"""A member's next step towards its target assignment (KIP-848, "assignment reconciliation")."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from .member import ConsumerMember, MemberState
from .partition_sets import (
    NOTHING,
    PartitionSet,
    common,
    overlap,
    size,
    united,
    without,
)

FreeOf = Callable[[PartitionSet], PartitionSet]
"""Those of the partitions that no other member holds or has yet to give up."""


def next_step(
    member: ConsumerMember,
    *,
    target_epoch: int,
    target: PartitionSet,
    free_of: FreeOf,
    owned: PartitionSet | None,
    untaken: PartitionSet = NOTHING,
    may_not_know: bool = False,
) -> ConsumerMember:
    """The member after its heartbeat; the same one when it cannot move yet.

    `owned` is what the member reports to hold; None: it did not say. `untaken` it has been told of
    but may not have taken up yet: that it does not report those does not mean that it gave them up.
    When it `may_not_know` of them, since that answer may be lost, they are not asked back before it
    reports: of what it never had it would never say that it is gone.
    """
    if owned is None and may_not_know and overlap(untaken, without(member.assigned, target)):
        return member
    if owned is not None:
        owned = united(owned, untaken)
    if member.state is MemberState.STABLE and member.epoch == target_epoch:
        return member
    if member.state is MemberState.UNREVOKED_PARTITIONS:
        if _still_owns(owned, member.revoking):
            return member
        # It has given up all it should: free to follow the newest target.
        return _towards(member, member.epoch + 1, target_epoch, target, free_of, owned)
    return _towards(member, member.epoch, target_epoch, target, free_of, owned)


def _towards(
    member: ConsumerMember,
    epoch_while_revoking: int,
    target_epoch: int,
    target: PartitionSet,
    free_of: FreeOf,
    owned: PartitionSet | None,
) -> ConsumerMember:
    kept = common(member.assigned, target)
    to_revoke = without(member.assigned, target)
    if to_revoke and _still_owns(owned, to_revoke):
        return _at(member, epoch_while_revoking, MemberState.UNREVOKED_PARTITIONS, kept, to_revoke)
    missing = without(target, kept)
    free = free_of(missing)
    complete = size(free) == size(missing)
    state = MemberState.STABLE if complete else MemberState.UNRELEASED_PARTITIONS
    return _at(member, target_epoch, state, united(kept, free), NOTHING)


def _at(
    member: ConsumerMember,
    epoch: int,
    state: MemberState,
    assigned: PartitionSet,
    revoking: PartitionSet,
) -> ConsumerMember:
    previous = member.previous_epoch if epoch == member.epoch else member.epoch
    return replace(
        member,
        epoch=epoch,
        previous_epoch=previous,
        state=state,
        assigned=assigned,
        revoking=revoking,
    )


def _still_owns(owned: PartitionSet | None, revoking: PartitionSet) -> bool:
    """A member that does not say what it owns is taken to own it still."""
    return owned is None or overlap(revoking, owned)
