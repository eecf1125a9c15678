"""API key 32: DescribeConfigs."""

from __future__ import annotations

from ..schema import Message, Struct, array, boolean, int8, int16, int32, string


class DescribeConfigsRequest(Message, versions="1-4", flexible="4+"):
    """Read the settings of topics, brokers, groups.

    v1 adds synonyms, v3 documentation.
    """

    class DescribeConfigsResource(Struct):
        resource_type: int = int8()
        resource_name: str = string()
        configuration_keys: list[str] | None = array(string, nullable="0+")

    resources: list[DescribeConfigsResource] = array(DescribeConfigsResource)
    include_synonyms: bool = boolean()
    include_documentation: bool = boolean(versions="3+")


class DescribeConfigsResponse(Message, versions="1-4", flexible="4+"):
    """Each setting with where its value comes from."""

    throttle_time_ms: int = int32()

    class DescribeConfigsResult(Struct):
        error_code: int = int16()
        error_message: str | None = string(nullable="0+")
        resource_type: int = int8()
        resource_name: str = string()

        class DescribeConfigsResourceResult(Struct):
            name: str = string()
            value: str | None = string(nullable="0+")
            read_only: bool = boolean()
            config_source: int = int8(default=-1, ignorable=True)
            is_sensitive: bool = boolean()

            class DescribeConfigsSynonym(Struct):
                name: str = string()
                value: str | None = string(nullable="0+")
                source: int = int8()

            synonyms: list[DescribeConfigsSynonym] = array(DescribeConfigsSynonym, ignorable=True)
            config_type: int = int8(versions="3+", ignorable=True)
            documentation: str | None = string(versions="3+", nullable="0+", ignorable=True)

        configs: list[DescribeConfigsResourceResult] = array(DescribeConfigsResourceResult)

    results: list[DescribeConfigsResult] = array(DescribeConfigsResult)

    DescribeConfigsResourceResult = DescribeConfigsResult.DescribeConfigsResourceResult
    DescribeConfigsSynonym = DescribeConfigsResourceResult.DescribeConfigsSynonym
