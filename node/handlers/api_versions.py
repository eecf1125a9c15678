"""API key 18: ApiVersions, versions 0-5.

v1 adds the throttle time, v3 is flexible and names the client's software and the features, v4
allows a feature's minimum of 0, v5 (KIP-1242) says which cluster and node the client believes to
talk to. Any other version is answered in version 0 with UNSUPPORTED_VERSION and this row alone.
"""

from __future__ import annotations

import re

from ...metadata.image import ClusterImage
from ...metadata.levels import TRANSACTION_FEATURE
from ...wire import ApiKey, ErrorCode
from ...wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ..served import Call
from ..services import Services
from . import CLIENT_APIS

ApiVersion = ApiVersionsResponse.ApiVersion

_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
"""What a client may call its software and version (KIP-511)."""

METADATA_VERSION = 30
"""Kafka 4.3's level, the newest whose client-visible meaning is served here."""


def handle(
    services: Services, request: ApiVersionsRequest | None, call: Call
) -> ApiVersionsResponse:
    if request is None:
        own = CLIENT_APIS[ApiKey.API_VERSIONS]
        return ApiVersionsResponse(
            error_code=ErrorCode.UNSUPPORTED_VERSION,
            api_keys=[
                ApiVersion(
                    api_key=own.key, min_version=own.min_version, max_version=own.max_version
                )
            ],
        )
    error = _check(services, request, call.version)
    if error != ErrorCode.NONE:
        return ApiVersionsResponse(error_code=error)
    return ApiVersionsResponse(
        api_keys=[
            ApiVersion(
                api_key=row.key,
                min_version=row.min_version if row.advertised_min is None else row.advertised_min,
                max_version=row.max_version,
            )
            for row in CLIENT_APIS.values()
            if row.advertised
        ],
        supported_features=[
            ApiVersionsResponse.SupportedFeatureKey(
                name="eligible.leader.replicas.version", min_version=0, max_version=1
            ),
            ApiVersionsResponse.SupportedFeatureKey(
                name="metadata.version", min_version=7, max_version=METADATA_VERSION
            ),
        ]
        # Up to v3 a client cannot take a minimum of 0 (KAFKA-17011).
        if call.version >= 4
        else [],
        finalized_features_epoch=services.image.index,
        finalized_features=[
            ApiVersionsResponse.FinalizedFeatureKey(
                name="eligible.leader.replicas.version", max_version_level=1, min_version_level=1
            ),
            ApiVersionsResponse.FinalizedFeatureKey(
                name="metadata.version",
                max_version_level=METADATA_VERSION,
                min_version_level=METADATA_VERSION,
            ),
            *_finalized_transactions(services.image),
        ],
    )


def _finalized_transactions(
    image: ClusterImage,
) -> list[ApiVersionsResponse.FinalizedFeatureKey]:
    """Clients read from it which protocol of transactions to speak, and look again when the epoch
    has grown. The range that is supported is told once transactions are built."""
    level = image.features.get(TRANSACTION_FEATURE)
    if level is None:
        return []
    return [
        ApiVersionsResponse.FinalizedFeatureKey(
            name=TRANSACTION_FEATURE, max_version_level=level, min_version_level=level
        )
    ]


def _check(services: Services, request: ApiVersionsRequest, version: int) -> ErrorCode:
    if version >= 3 and not (
        _SOFTWARE.fullmatch(request.client_software_name)
        and _SOFTWARE.fullmatch(request.client_software_version)
    ):
        return ErrorCode.INVALID_REQUEST
    config = services.config
    if request.cluster_id is not None and request.cluster_id != config.cluster_id:
        return ErrorCode.REBOOTSTRAP_REQUIRED
    if request.node_id not in (-1, config.node_id):
        return ErrorCode.REBOOTSTRAP_REQUIRED
    return ErrorCode.NONE
