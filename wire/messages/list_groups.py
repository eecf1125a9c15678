"""API key 16: ListGroups."""

from __future__ import annotations

from ..schema import Message, Struct, array, int16, int32, string


class ListGroupsRequest(Message, versions="0-5", flexible="3+"):
    """The groups that this broker coordinates.

    v4 filters by state, v5 by type.
    """

    states_filter: list[str] = array(string, versions="4+")
    types_filter: list[str] = array(string, versions="5+")


class ListGroupsResponse(Message, versions="0-5", flexible="3+"):
    """The groups found."""

    throttle_time_ms: int = int32(versions="1+", ignorable=True)
    error_code: int = int16()

    class ListedGroup(Struct):
        group_id: str = string()
        protocol_type: str = string()
        group_state: str = string(versions="4+", ignorable=True)
        group_type: str = string(versions="5+", ignorable=True)

    groups: list[ListedGroup] = array(ListedGroup)
