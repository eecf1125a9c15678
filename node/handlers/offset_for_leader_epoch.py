"""API key 23: OffsetForLeaderEpoch, versions 2-4.

v2 carries the current leader epoch, v3 the replica id, v4 is flexible. Consumers ask it to see
whether their position was truncated away (KIP-320).
"""

from __future__ import annotations

from ...wire import ErrorCode
from ...wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from ..served import Call
from ..services import Services

Topic = OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult


def handle(
    services: Services, request: OffsetForLeaderEpochRequest, call: Call
) -> OffsetForLeaderEpochResponse:
    if request.replica_id >= 0 and request.replica_id != call.caller.node_id:
        return _refused(request)
    return services.replicas.offset_for_leader_epoch(request, call.version)


def _refused(request: OffsetForLeaderEpochRequest) -> OffsetForLeaderEpochResponse:
    """A stranger is no replica (RULES B5)."""
    return OffsetForLeaderEpochResponse(
        topics=[
            Topic(
                topic=topic.topic,
                partitions=[
                    Topic.EpochEndOffset(
                        partition=partition.partition,
                        error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )
