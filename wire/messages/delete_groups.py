"""API key 42: DeleteGroups."""

from __future__ import annotations

from ..schema import Message, Struct, array, int16, int32, string


class DeleteGroupsRequest(Message, versions="0-3", flexible="2+"):
    """Delete groups that have no members."""

    groups_names: list[str] = array(string)


class DeleteGroupsResponse(Message, versions="0-3", flexible="2+"):
    """An error code for each group."""

    throttle_time_ms: int = int32()

    class DeletableGroupResult(Struct):
        group_id: str = string()
        error_code: int = int16()
        error_message: str | None = string(
            default=None, versions="3+", nullable="3+", ignorable=True
        )

    results: list[DeletableGroupResult] = array(DeletableGroupResult)
