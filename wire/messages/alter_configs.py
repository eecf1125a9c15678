"""API key 33: AlterConfigs."""

from __future__ import annotations

from ..schema import Message, Struct, array, boolean, int8, int16, int32, string


class AlterConfigsRequest(Message, versions="0-2", flexible="2+"):
    """Replace all dynamic settings of resources (deprecated)."""

    class AlterConfigsResource(Struct):
        resource_type: int = int8()
        resource_name: str = string()

        class AlterableConfig(Struct):
            name: str = string()
            value: str | None = string(nullable="0+")

        configs: list[AlterableConfig] = array(AlterableConfig)

    resources: list[AlterConfigsResource] = array(AlterConfigsResource)
    validate_only: bool = boolean()

    AlterableConfig = AlterConfigsResource.AlterableConfig


class AlterConfigsResponse(Message, versions="0-2", flexible="2+"):
    """An error code for each resource."""

    throttle_time_ms: int = int32()

    class AlterConfigsResourceResponse(Struct):
        error_code: int = int16()
        error_message: str | None = string(nullable="0+")
        resource_type: int = int8()
        resource_name: str = string()

    responses: list[AlterConfigsResourceResponse] = array(AlterConfigsResourceResponse)
