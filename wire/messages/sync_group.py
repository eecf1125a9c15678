"""API key 14: SyncGroup."""

from __future__ import annotations

from ..schema import Message, Struct, array, binary, int16, int32, string


class SyncGroupRequest(Message, versions="0-5", flexible="4+"):
    """The group leader hands in the assignment; everyone else waits for theirs."""

    group_id: str = string()
    generation_id: int = int32()
    member_id: str = string()
    group_instance_id: str | None = string(default=None, versions="3+", nullable="3+")
    protocol_type: str | None = string(default=None, versions="5+", nullable="5+", ignorable=True)
    protocol_name: str | None = string(default=None, versions="5+", nullable="5+", ignorable=True)

    class SyncGroupRequestAssignment(Struct):
        member_id: str = string()
        assignment: bytes = binary()

    assignments: list[SyncGroupRequestAssignment] = array(SyncGroupRequestAssignment)


class SyncGroupResponse(Message, versions="0-5", flexible="4+"):
    """The member's own assignment, opaque to the broker."""

    throttle_time_ms: int = int32(versions="1+", ignorable=True)
    error_code: int = int16()
    protocol_type: str | None = string(default=None, versions="5+", nullable="5+", ignorable=True)
    protocol_name: str | None = string(default=None, versions="5+", nullable="5+", ignorable=True)
    assignment: bytes = binary()
