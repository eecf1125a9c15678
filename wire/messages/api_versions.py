"""API key 18: ApiVersions."""

from __future__ import annotations

from ..schema import Message, Struct, array, boolean, int16, int32, int64, string


class ApiVersionsRequest(Message, versions="0-5", flexible="3+"):
    """Which requests the broker speaks; the first one of most clients.

    v3 names the client's software, v5 the cluster and node it believes to talk to (KIP-1242).
    """

    client_software_name: str = string(versions="3+", ignorable=True)
    client_software_version: str = string(versions="3+", ignorable=True)
    cluster_id: str | None = string(default=None, versions="5+", nullable="5+", ignorable=True)
    node_id: int = int32(default=-1, versions="5+", ignorable=True)


class ApiVersionsResponse(Message, versions="0-5", flexible="3+"):
    """The API keys and version ranges that are served.

    Its header is always version 0, and a request in an unknown version is answered in body version
    0.
    """

    error_code: int = int16()

    class ApiVersion(Struct):
        api_key: int = int16()
        min_version: int = int16()
        max_version: int = int16()

    api_keys: list[ApiVersion] = array(ApiVersion)
    throttle_time_ms: int = int32(versions="1+", ignorable=True)

    class SupportedFeatureKey(Struct):
        name: str = string()
        min_version: int = int16()
        max_version: int = int16()

    supported_features: list[SupportedFeatureKey] = array(
        SupportedFeatureKey, tag=0, tagged="3+", ignorable=True
    )
    finalized_features_epoch: int = int64(default=-1, tag=1, tagged="3+", ignorable=True)

    class FinalizedFeatureKey(Struct):
        name: str = string()
        max_version_level: int = int16()
        min_version_level: int = int16()

    finalized_features: list[FinalizedFeatureKey] = array(
        FinalizedFeatureKey, tag=2, tagged="3+", ignorable=True
    )
    zk_migration_ready: bool = boolean(tag=3, tagged="3+", ignorable=True)
