"""API key 55: DescribeQuorum, versions 0-2.

v1 tells when replicas last asked and were caught up (KIP-836), v2 directory ids, addresses and
messages (KIP-853). Answered by the node that leads the quorum; asked on any.
"""

from __future__ import annotations

from ...wire import ApiKey, ErrorCode
from ...wire.messages.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse
from ..forwarding import forward
from ..quorum_view import fit_to
from ..served import Call
from ..services import Services


async def handle(
    services: Services, request: DescribeQuorumRequest, call: Call
) -> DescribeQuorumResponse:
    def failed(error: ErrorCode, sentence: str) -> DescribeQuorumResponse:
        return DescribeQuorumResponse(error_code=error, error_message=sentence)

    response = await forward(
        services, ApiKey.DESCRIBE_QUORUM, request, timeout_ms=None, failed=failed
    )
    assert isinstance(response, DescribeQuorumResponse)
    return fit_to(response, call.version)
