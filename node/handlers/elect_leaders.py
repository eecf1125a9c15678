"""API key 43: ElectLeaders, versions 0-2, decided by the active controller.

v1 adds the unclean kind (KIP-460), v2 is flexible. Null partitions stand for all.
"""

from __future__ import annotations

from ...wire import ApiKey, ErrorCode, Message
from ...wire.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse
from ..forwarding import forward
from ..served import Call
from ..services import Services


async def handle(services: Services, request: ElectLeadersRequest, call: Call) -> Message:
    def failed(error: ErrorCode, message: str) -> ElectLeadersResponse:
        return ElectLeadersResponse(
            error_code=error if call.version >= 1 else ErrorCode.NONE,
            replica_election_results=[
                ElectLeadersResponse.ReplicaElectionResult(
                    topic=topic.topic,
                    partition_result=[
                        ElectLeadersResponse.PartitionResult(
                            partition_id=partition, error_code=error, error_message=message
                        )
                        for partition in topic.partitions
                    ],
                )
                for topic in request.topic_partitions or ()
            ],
        )

    response = await forward(
        services,
        ApiKey.ELECT_LEADERS,
        request,
        timeout_ms=request.timeout_ms,
        failed=failed,
    )
    if call.version == 0 and isinstance(response, ElectLeadersResponse):
        response.error_code = ErrorCode.NONE  # Version 0 says it for each partition only.
    return response
