"""API key 31: DeleteAcls."""

from __future__ import annotations

from ..schema import Message, Struct, array, int8, int16, int32, string


class DeleteAclsRequest(Message, versions="1-3", flexible="2+"):
    """Remove access rules by filter."""

    class DeleteAclsFilter(Struct):
        resource_type_filter: int = int8()
        resource_name_filter: str | None = string(nullable="0+")
        pattern_type_filter: int = int8(default=3)
        principal_filter: str | None = string(nullable="0+")
        host_filter: str | None = string(nullable="0+")
        operation: int = int8()
        permission_type: int = int8()

    filters: list[DeleteAclsFilter] = array(DeleteAclsFilter)


class DeleteAclsResponse(Message, versions="1-3", flexible="2+"):
    """What each filter removed."""

    throttle_time_ms: int = int32()

    class DeleteAclsFilterResult(Struct):
        error_code: int = int16()
        error_message: str | None = string(nullable="0+")

        class DeleteAclsMatchingAcl(Struct):
            error_code: int = int16()
            error_message: str | None = string(nullable="0+")
            resource_type: int = int8()
            resource_name: str = string()
            pattern_type: int = int8(default=3)
            principal: str = string()
            host: str = string()
            operation: int = int8()
            permission_type: int = int8()

        matching_acls: list[DeleteAclsMatchingAcl] = array(DeleteAclsMatchingAcl)

    filter_results: list[DeleteAclsFilterResult] = array(DeleteAclsFilterResult)

    DeleteAclsMatchingAcl = DeleteAclsFilterResult.DeleteAclsMatchingAcl
