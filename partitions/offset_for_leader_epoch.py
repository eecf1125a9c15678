"""OffsetForLeaderEpoch (API key 23, versions 2-4): where an epoch ends in this leader's log.

The answer goes by the appended end (RULES C2), for followers and clients alike: it is about
lineage, not about what is committed (KIP-101, KIP-279, KIP-320).
"""

from __future__ import annotations

from ..wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from .fetch import PartitionFinder
from .roles import Refused

EpochEndOffset = OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult.EpochEndOffset


def offset_for_leader_epoch(
    finder: PartitionFinder, request: OffsetForLeaderEpochRequest
) -> OffsetForLeaderEpochResponse:
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=[_answer(finder, topic.topic, asked) for asked in topic.partitions],
            )
            for topic in request.topics
        ]
    )


def _answer(
    finder: PartitionFinder,
    topic: str,
    asked: OffsetForLeaderEpochRequest.OffsetForLeaderTopic.OffsetForLeaderPartition,
) -> EpochEndOffset:
    answer = EpochEndOffset(partition=asked.partition)
    try:
        partition = finder.find(topic, asked.partition)
        partition.require_leader(asked.current_leader_epoch)
    except Refused as refused:
        answer.error_code = refused.error
        return answer
    answer.leader_epoch, answer.end_offset = partition.log.epochs.end_offset_for(
        asked.leader_epoch, partition.log.log_end_offset
    )
    return answer
