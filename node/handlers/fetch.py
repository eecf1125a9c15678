"""API key 1: Fetch, versions 4-18.

v7 sessions (KIP-227), v9 leader epochs (KIP-320), v11 racks, v12 flexible with divergence, v13
topic ids, v15 the replica's epoch, v16 the leaders' addresses, v17 directory ids, v18 the
replica's watermark (KIP-1166). A replica's fetch is served to nodes of the cluster only (RULES B5).
"""

from __future__ import annotations

from collections.abc import Awaitable

from ...wire import ErrorCode
from ...wire.messages.fetch import FetchRequest, FetchResponse
from ..served import Call
from ..services import Services

Topic = FetchResponse.FetchableTopicResponse


def handle(
    services: Services, request: FetchRequest, call: Call
) -> FetchResponse | Awaitable[FetchResponse]:
    replica_id = replica_id_of(request)
    if replica_id >= 0 and replica_id != call.caller.node_id:
        return _refused(request, call.version)
    return services.replicas.fetch(request, call.version, call.caller, from_replica=replica_id >= 0)


def replica_id_of(request: FetchRequest) -> int:
    """-1 for a consumer; v15 moved it into a struct of its own."""
    if request.replica_state is not None:
        return request.replica_state.replica_id
    return request.replica_id


def _refused(request: FetchRequest, version: int) -> FetchResponse:
    error = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    topics = [
        Topic(
            topic=topic.topic,
            topic_id=topic.topic_id,
            partitions=[
                FetchResponse.PartitionData(
                    partition_index=partition.partition, error_code=error, high_watermark=-1
                )
                for partition in topic.partitions
            ],
        )
        for topic in request.topics
    ]
    return FetchResponse(error_code=error if version >= 7 else ErrorCode.NONE, responses=topics)
