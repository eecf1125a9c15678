"""API key 74: ListConfigResources, versions 0-1, answered from this node's image (KIP-1142).

v0 asked for client metrics alone, which have no settings here; v1 names the kinds it wants.
"""

from __future__ import annotations

from enum import IntEnum

from ...metadata.group_configs import groups_with_configs
from ...metadata.image import ClusterImage
from ...wire import ErrorCode
from ...wire.messages.list_config_resources import (
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from ..served import Call
from ..services import Services

Row = ListConfigResourcesResponse.ConfigResource


class Kind(IntEnum):
    """As Kafka numbers them."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


def handle(
    services: Services, request: ListConfigResourcesRequest, call: Call
) -> ListConfigResourcesResponse:
    wanted = sorted(set(request.resource_types)) or list(Kind)
    if call.version == 0:
        wanted = [Kind.CLIENT_METRICS]
    if any(kind not in tuple(Kind) for kind in wanted):
        return ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    return ListConfigResourcesResponse(
        config_resources=[
            Row(resource_name=name, resource_type=kind)
            for kind in wanted
            for name in _names(services.image, Kind(kind))
        ]
    )


def _names(image: ClusterImage, kind: Kind) -> list[str]:
    """Every topic and broker has settings; a group only those that it was given."""
    if kind is Kind.TOPIC:
        return sorted(image.topics)
    if kind in (Kind.BROKER, Kind.BROKER_LOGGER):
        return [str(node_id) for node_id in sorted(image.brokers)]
    return sorted(groups_with_configs(image)) if kind is Kind.GROUP else []
