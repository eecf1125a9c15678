"""API key 29: DescribeAcls."""

from __future__ import annotations

from ..schema import Message, Struct, array, int8, int16, int32, string


class DescribeAclsRequest(Message, versions="1-3", flexible="2+"):
    """List access rules by filter."""

    resource_type_filter: int = int8()
    resource_name_filter: str | None = string(nullable="0+")
    pattern_type_filter: int = int8(default=3)
    principal_filter: str | None = string(nullable="0+")
    host_filter: str | None = string(nullable="0+")
    operation: int = int8()
    permission_type: int = int8()


class DescribeAclsResponse(Message, versions="1-3", flexible="2+"):
    """The rules that match."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")

    class DescribeAclsResource(Struct):
        resource_type: int = int8()
        resource_name: str = string()
        pattern_type: int = int8(default=3)

        class AclDescription(Struct):
            principal: str = string()
            host: str = string()
            operation: int = int8()
            permission_type: int = int8()

        acls: list[AclDescription] = array(AclDescription)

    resources: list[DescribeAclsResource] = array(DescribeAclsResource)

    AclDescription = DescribeAclsResource.AclDescription
