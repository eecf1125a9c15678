"""API key 60: DescribeCluster, versions 0-2.

v1 asks for brokers or controllers (KIP-919), v2 includes fenced brokers on request. Controllers are
not reachable for clients here: every broker forwards.
"""

from __future__ import annotations

from ...wire import ErrorCode
from ...wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from ..served import Call
from ..services import Services
from .authorized_operations import CLUSTER, NOT_ASKED

BROKERS = 1


def handle(
    services: Services, request: DescribeClusterRequest, call: Call
) -> DescribeClusterResponse:
    image = services.image
    if request.endpoint_type != BROKERS:
        return DescribeClusterResponse(
            error_code=ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            error_message="This listener tells of brokers only.",
            endpoint_type=request.endpoint_type,
            cluster_id=image.cluster_id,
        )
    return DescribeClusterResponse(
        cluster_id=image.cluster_id,
        controller_id=services.controller_id_for_clients(),
        brokers=[
            DescribeClusterResponse.DescribeClusterBroker(
                broker_id=broker.node_id,
                host=broker.kafka.host,
                port=broker.kafka.port,
                rack=broker.rack,
                is_fenced=broker.fenced,
            )
            for _, broker in sorted(image.brokers.items())
            if request.include_fenced_brokers or not broker.fenced
        ],
        cluster_authorized_operations=CLUSTER
        if request.include_cluster_authorized_operations
        else NOT_ASKED,
    )
