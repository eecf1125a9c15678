"""API key 15: DescribeGroups."""

from __future__ import annotations

from ..schema import Message, Struct, array, binary, boolean, int16, int32, string


class DescribeGroupsRequest(Message, versions="0-6", flexible="5+"):
    """State and members of classic groups."""

    groups: list[str] = array(string)
    include_authorized_operations: bool = boolean(versions="3+")


class DescribeGroupsResponse(Message, versions="0-6", flexible="5+"):
    """What is known of each group."""

    throttle_time_ms: int = int32(versions="1+", ignorable=True)

    class DescribedGroup(Struct):
        error_code: int = int16()
        error_message: str | None = string(default=None, versions="6+", nullable="6+")
        group_id: str = string()
        group_state: str = string()
        protocol_type: str = string()
        protocol_data: str = string()

        class DescribedGroupMember(Struct):
            member_id: str = string()
            group_instance_id: str | None = string(
                default=None, versions="4+", nullable="4+", ignorable=True
            )
            client_id: str = string()
            client_host: str = string()
            member_metadata: bytes = binary()
            member_assignment: bytes = binary()

        members: list[DescribedGroupMember] = array(DescribedGroupMember)
        authorized_operations: int = int32(default=-(2**31), versions="3+")

    groups: list[DescribedGroup] = array(DescribedGroup)

    DescribedGroupMember = DescribedGroup.DescribedGroupMember
