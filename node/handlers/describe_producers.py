"""API key 61: DescribeProducers, versions 0-0: who writes to a partition (KIP-664)."""

from __future__ import annotations

from ...wire.messages.describe_producers import DescribeProducersRequest, DescribeProducersResponse
from ..served import Call
from ..services import Services


def handle(
    services: Services, request: DescribeProducersRequest, call: Call
) -> DescribeProducersResponse:
    return services.replicas.describe_producers(request)
