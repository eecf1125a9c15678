"""API key 74: ListConfigResources."""

from __future__ import annotations

from ..schema import Message, Struct, array, int8, int16, int32, string


class ListConfigResourcesRequest(Message, versions="0-1", flexible="0+"):
    """Names of resources that have settings."""

    resource_types: list[int] = array(int8, versions="1+")


class ListConfigResourcesResponse(Message, versions="0-1", flexible="0+"):
    """The resources."""

    throttle_time_ms: int = int32()
    error_code: int = int16()

    class ConfigResource(Struct):
        resource_name: str = string()
        resource_type: int = int8(default=16, versions="1+", ignorable=True)

    config_resources: list[ConfigResource] = array(ConfigResource)
