"""API key 44: IncrementalAlterConfigs."""

from __future__ import annotations

from ..schema import Message, Struct, array, boolean, int8, int16, int32, string


class IncrementalAlterConfigsRequest(Message, versions="0-1", flexible="1+"):
    """Set, delete, append to or subtract from single settings."""

    class AlterConfigsResource(Struct):
        resource_type: int = int8()
        resource_name: str = string()

        class AlterableConfig(Struct):
            name: str = string()
            config_operation: int = int8()
            value: str | None = string(nullable="0+")

        configs: list[AlterableConfig] = array(AlterableConfig)

    resources: list[AlterConfigsResource] = array(AlterConfigsResource)
    validate_only: bool = boolean()

    AlterableConfig = AlterConfigsResource.AlterableConfig


class IncrementalAlterConfigsResponse(Message, versions="0-1", flexible="1+"):
    """An error code for each resource."""

    throttle_time_ms: int = int32()

    class AlterConfigsResourceResponse(Struct):
        error_code: int = int16()
        error_message: str | None = string(nullable="0+")
        resource_type: int = int8()
        resource_name: str = string()

    responses: list[AlterConfigsResourceResponse] = array(AlterConfigsResourceResponse)
