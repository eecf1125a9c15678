"""API key 30: CreateAcls."""

from __future__ import annotations

from ..schema import Message, Struct, array, int8, int16, int32, string


class CreateAclsRequest(Message, versions="1-3", flexible="2+"):
    """Add access rules."""

    class AclCreation(Struct):
        resource_type: int = int8()
        resource_name: str = string()
        resource_pattern_type: int = int8(default=3)
        principal: str = string()
        host: str = string()
        operation: int = int8()
        permission_type: int = int8()

    creations: list[AclCreation] = array(AclCreation)


class CreateAclsResponse(Message, versions="1-3", flexible="2+"):
    """An error code for each rule."""

    throttle_time_ms: int = int32()

    class AclCreationResult(Struct):
        error_code: int = int16()
        error_message: str | None = string(nullable="0+")

    results: list[AclCreationResult] = array(AclCreationResult)
