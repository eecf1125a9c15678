"""API key 11: JoinGroup."""

from __future__ import annotations

from ..schema import Message, Struct, array, binary, boolean, int16, int32, string


class JoinGroupRequest(Message, versions="0-9", flexible="6+"):
    """Become or stay a member of a classic consumer group.

    v5 adds static members; a member without an id is sent back to ask again with the given one
    (v4).
    """

    group_id: str = string()
    session_timeout_ms: int = int32()
    rebalance_timeout_ms: int = int32(default=-1, versions="1+", ignorable=True)
    member_id: str = string()
    group_instance_id: str | None = string(default=None, versions="5+", nullable="5+")
    protocol_type: str = string()

    class JoinGroupRequestProtocol(Struct):
        name: str = string()
        metadata: bytes = binary()

    protocols: list[JoinGroupRequestProtocol] = array(JoinGroupRequestProtocol)
    reason: str | None = string(default=None, versions="8+", nullable="8+", ignorable=True)


class JoinGroupResponse(Message, versions="0-9", flexible="6+"):
    """The generation that was formed; the leader also gets every member's metadata."""

    throttle_time_ms: int = int32(versions="2+", ignorable=True)
    error_code: int = int16()
    generation_id: int = int32(default=-1)
    protocol_type: str | None = string(default=None, versions="7+", nullable="7+", ignorable=True)
    protocol_name: str | None = string(nullable="7+")
    leader: str = string()
    skip_assignment: bool = boolean(versions="9+")
    member_id: str = string()

    class JoinGroupResponseMember(Struct):
        member_id: str = string()
        group_instance_id: str | None = string(
            default=None, versions="5+", nullable="5+", ignorable=True
        )
        metadata: bytes = binary()

    members: list[JoinGroupResponseMember] = array(JoinGroupResponseMember)
