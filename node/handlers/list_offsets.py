"""API key 2: ListOffsets, versions 1-11.

v2 isolation level, v4 leader epochs, v6 flexible, v7 the largest timestamp (-3), v8 earliest local
(-4), v9 latest tiered (-5), v10 a timeout, v11 earliest pending upload (-6).
"""

from __future__ import annotations

from ...wire import ErrorCode
from ...wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from ..served import Call
from ..services import Services


def handle(services: Services, request: ListOffsetsRequest, call: Call) -> ListOffsetsResponse:
    if request.replica_id >= 0 and request.replica_id != call.caller.node_id:
        return _refused(request)
    return services.replicas.list_offsets(
        request, call.version, from_replica=request.replica_id >= 0
    )


def _refused(request: ListOffsetsRequest) -> ListOffsetsResponse:
    """A stranger is no replica (RULES B5)."""
    return ListOffsetsResponse(
        topics=[
            ListOffsetsResponse.ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[
                    ListOffsetsResponse.ListOffsetsPartitionResponse(
                        partition_index=partition.partition_index,
                        error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )
