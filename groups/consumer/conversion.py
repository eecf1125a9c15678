"""A group changes its protocol while it runs (KIP-848): nobody loses what he reads meanwhile."""

from __future__ import annotations

from ...metadata.image import ClusterImage
from ...wire import DecodeError
from ..classic_group import ClassicGroup
from ..member import Member
from ..settings import GroupSettings
from ..subscriptions import speaks_consumer_protocol
from .embedded import (
    CONSUMER_PROTOCOL,
    read_assignment,
    read_subscription,
    subscription_version,
    write_assignment,
)
from .group import ConsumerGroup
from .member import ClassicFace, ConsumerMember
from .settings import ConsumerGroupSettings


def upgraded(
    classic: ClassicGroup, image: ClusterImage, settings: ConsumerGroupSettings
) -> ConsumerGroup | None:
    """The same group under the new protocol; None when it may or can not change.

    Its generation becomes the epoch, what its members hold becomes their assignment and target.
    """
    if not settings.upgrades or not speaks_consumer_protocol(classic):
        return None
    if len(classic.members) > settings.max_size:
        return None
    group = ConsumerGroup(classic.group_id, settings)
    group.epoch = group.assignment_epoch = classic.generation_id
    try:
        for member in classic.members.values():
            converted = _consumer_member(classic, member, image)
            group.restore_member(converted)
            group.targets[member.member_id] = converted.assigned
    except DecodeError:
        return None
    return group


def _consumer_member(classic: ClassicGroup, member: Member, image: ClusterImage) -> ConsumerMember:
    chosen = member.metadata(classic.protocol or "") or member.protocols[0][1]
    subscription = read_subscription(chosen, image)
    return ConsumerMember(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=subscription.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        topics=subscription.topics,
        classic=ClassicFace(member.session_timeout_ms, member.protocols),
        epoch=classic.generation_id,
        previous_epoch=classic.generation_id,
        assigned=read_assignment(member.assignment, image),
    )


def may_downgrade(group: ConsumerGroup, *, without: str, max_size: int) -> bool:
    """Only classic members are left once that one is gone, and at least one of them."""
    left = [member for name, member in group.members.items() if name != without]
    classic = all(member.classic is not None for member in left)
    return group.settings.downgrades and classic and 0 < len(left) <= max_size


def downgraded(
    group: ConsumerGroup,
    image: ClusterImage,
    settings: GroupSettings,
    *,
    without: str | None,
    now_ms: int,
) -> ClassicGroup:
    """The same group under the classic protocol; its epoch becomes the generation."""
    left = [member for name, member in group.members.items() if name != without]
    classic = ClassicGroup(group.group_id, settings)
    members = [_classic_member(member, image) for member in left]
    common = [n for n, _ in members[0].protocols if all(m.supports(n) for m in members)]
    classic.restore(
        generation_id=group.epoch,
        protocol_type=CONSUMER_PROTOCOL,
        protocol=common[0],
        leader=members[0].member_id,
        members=members,
        now_ms=now_ms,
        since_wall_ms=-1,
    )
    return classic


def _classic_member(member: ConsumerMember, image: ClusterImage) -> Member:
    assert member.classic is not None
    version = subscription_version(member.classic.protocols[0][1])
    return Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        session_timeout_ms=member.classic.session_timeout_ms,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        protocols=member.classic.protocols,
        assignment=write_assignment(member.assigned, version, image),
    )
