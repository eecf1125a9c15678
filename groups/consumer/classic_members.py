"""Members that still speak the classic protocol in a group that has moved on (KIP-848, upgrade).

They join, sync and send heartbeats as ever; the coordinator assigns for them too. A member epoch
is their generation, and "rebalance in progress" makes them take their next step.
"""

from __future__ import annotations

from dataclasses import replace

from ...metadata.image import ClusterImage
from ...wire import DecodeError, ErrorCode
from ..classic_group import Join
from .deadlines import Wait
from .embedded import (
    CONSUMER_PROTOCOL,
    Subscription,
    read_subscription,
    subscription_version,
    write_assignment,
)
from .group import ConsumerGroup
from .member import ClassicFace, ConsumerMember, MemberState
from .records import ConsumerRecord
from .refusal import Refused
from .seen_topics import SeenTopics


def join(
    group: ConsumerGroup,
    request: Join,
    seen: SeenTopics,
    *,
    now_ms: int,
    wall_ms: int,
) -> tuple[ConsumerMember, str | None, list[ConsumerRecord]]:
    """(the member now, the member whose place it took, records).

    Raises:
        Refused: nothing was changed.
    """
    subscription = _check_protocols(group, request, seen.image)
    before, replaced = _joining(group, request)
    after = replace(
        before,
        instance_id=request.instance_id,
        rack_id=subscription.rack_id,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        topics=subscription.topics,
        regex="",
        assignor=None,
        client_id=request.client_id,
        client_host=request.client_host,
        classic=ClassicFace(request.session_timeout_ms, request.protocols),
    )
    records = group.replace_static(replaced, before)
    moved, more = group.advance(
        before, after, subscription.owned, seen, now_ms=now_ms, wall_ms=wall_ms
    )
    group.expect(moved.member_id, Wait.JOIN, None)
    group.expect(moved.member_id, Wait.REVOKE, None)
    group.expect(moved.member_id, Wait.SESSION, now_ms + request.session_timeout_ms)
    group.expect(moved.member_id, Wait.SYNC, now_ms + request.rebalance_timeout_ms)
    return moved, replaced, records + more


def _joining(group: ConsumerGroup, request: Join) -> tuple[ConsumerMember, str | None]:
    member_id = request.member_id or request.fresh_member_id
    if request.instance_id is None:
        return group.members.get(member_id) or group.newcomer(member_id, joins=True), None
    if request.member_id:
        return group.check_static(request.instance_id, request.member_id), None
    holder = group.static_member(request.instance_id)
    if holder is None:
        return group.newcomer(member_id, joins=True), None
    return group.successor(holder, member_id), holder.member_id


def _check_protocols(group: ConsumerGroup, request: Join, image: ClusterImage) -> Subscription:
    offered = {name for name, _ in request.protocols}
    others = [
        member.classic
        for member in group.members.values()
        if member.classic is not None
        and member.member_id != request.member_id
        and (request.instance_id is None or member.instance_id != request.instance_id)
    ]
    shared = all(any(name in offered for name, _ in face.protocols) for face in others)
    if request.protocol_type == CONSUMER_PROTOCOL and request.protocols and shared:
        try:
            return read_subscription(request.protocols[0][1], image)
        except DecodeError:
            pass
    raise Refused(
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
        f"group {group.group_id!r} needs the consumer protocol and an assignor all members know",
    )


def generation_problem(
    group: ConsumerGroup, member_id: str, instance_id: str | None, generation_id: int
) -> ErrorCode:
    try:
        member = group.known(member_id, instance_id)
    except Refused as refused:
        return refused.error
    if member.classic is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    return ErrorCode.NONE if generation_id == member.epoch else ErrorCode.ILLEGAL_GENERATION


def must_rejoin(group: ConsumerGroup, member: ConsumerMember) -> bool:
    """A new epoch began, it must give something up, or what it waits for is free."""
    if member.epoch < group.epoch or member.state is MemberState.UNREVOKED_PARTITIONS:
        return True
    return member.state is MemberState.UNRELEASED_PARTITIONS and group.released(member)


def heartbeat(group: ConsumerGroup, member_id: str, now_ms: int) -> ErrorCode:
    member = group.members[member_id]
    assert member.classic is not None
    group.expect(member_id, Wait.SESSION, now_ms + member.classic.session_timeout_ms)
    if not must_rejoin(group, member):
        return ErrorCode.NONE
    _expect_join(group, member, now_ms)
    return ErrorCode.REBALANCE_IN_PROGRESS


def sync(
    group: ConsumerGroup, member_id: str, image: ClusterImage, now_ms: int
) -> tuple[ErrorCode, bytes]:
    """(error, the assignment as the member's own protocol writes it)."""
    member = group.members[member_id]
    assert member.classic is not None
    if group.epoch > member.epoch and member.state is not MemberState.UNREVOKED_PARTITIONS:
        _expect_join(group, member, now_ms)
        return ErrorCode.REBALANCE_IN_PROGRESS, b""
    group.expect(member_id, Wait.SYNC, None)
    group.expect(member_id, Wait.SESSION, now_ms + member.classic.session_timeout_ms)
    version = subscription_version(member.classic.protocols[0][1])
    return ErrorCode.NONE, write_assignment(member.assigned, version, image)


def _expect_join(group: ConsumerGroup, member: ConsumerMember, now_ms: int) -> None:
    if not group.expects(member.member_id, Wait.JOIN):
        group.expect(member.member_id, Wait.JOIN, now_ms + member.rebalance_timeout_ms)
