"""API key 13: LeaveGroup."""

from __future__ import annotations

from ..schema import Message, Struct, array, int16, int32, string


class LeaveGroupRequest(Message, versions="0-5", flexible="4+"):
    """Leave a classic group.

    v3 removes many members at once, v5 gives a reason for each.
    """

    group_id: str = string()
    member_id: str = string(versions="0-2")

    class MemberIdentity(Struct):
        member_id: str = string()
        group_instance_id: str | None = string(default=None, nullable="0+")
        reason: str | None = string(default=None, versions="5+", nullable="5+", ignorable=True)

    members: list[MemberIdentity] = array(MemberIdentity, versions="3+")


class LeaveGroupResponse(Message, versions="0-5", flexible="4+"):
    """An error code for each member."""

    throttle_time_ms: int = int32(versions="1+", ignorable=True)
    error_code: int = int16()

    class MemberResponse(Struct):
        member_id: str = string()
        group_instance_id: str | None = string(nullable="0+")
        error_code: int = int16()

    members: list[MemberResponse] = array(MemberResponse, versions="3+")
