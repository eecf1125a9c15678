"""ListOffsets (API key 2, versions 1-11): which offset stands at a time, or at an end of the log.

v2 isolation, v4 leader epochs, v7 the largest timestamp, v8 earliest local, v9 latest tiered, v11
earliest pending upload. Nothing is tiered here, so the last two find nothing.

A client is told nothing above the watermark, and nothing at all about the end while the watermark
is below this epoch's start: the leader before may have shown more (RULES D4, KIP-207).
"""

from __future__ import annotations

from collections import Counter

from ..wire import ErrorCode
from ..wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from .fetch import CONSUMER, READ_COMMITTED, PartitionFinder
from .leader import LeaderState
from .partition import Partition
from .roles import Refused
from .storage import FoundOffset, StorageFailed

LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3
EARLIEST_LOCAL = -4
LATEST_TIERED = -5
EARLIEST_PENDING_UPLOAD = -6

FIRST_VERSIONS = {
    LATEST: 1,
    EARLIEST: 1,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}
"""Of each special timestamp; all other negative ones are unknown."""

FIRST_VERSION_WITH_OFFSET_NOT_AVAILABLE = 5
NEVER = 1 << 15
UNKNOWN = FoundOffset(offset=-1, timestamp_ms=-1, leader_epoch=-1)

Answer = ListOffsetsResponse.ListOffsetsTopicResponse.ListOffsetsPartitionResponse


def list_offsets(
    finder: PartitionFinder, request: ListOffsetsRequest, version: int, *, from_replica: bool
) -> ListOffsetsResponse:
    """`from_replica`: followers, on the inter-node listener only, may ask up to the log's end."""
    replica = from_replica and request.replica_id != CONSUMER
    committed = request.isolation_level == READ_COMMITTED
    asked_times = Counter(
        (topic.name, asked.partition_index)
        for topic in request.topics
        for asked in topic.partitions
    )
    response = ListOffsetsResponse()
    for topic in request.topics:
        answers: list[Answer] = []
        response.topics.append(
            ListOffsetsResponse.ListOffsetsTopicResponse(name=topic.name, partitions=answers)
        )
        for asked in topic.partitions:
            answer = Answer(partition_index=asked.partition_index)
            answers.append(answer)
            try:
                if asked_times[topic.name, asked.partition_index] > 1:
                    raise Refused(ErrorCode.INVALID_REQUEST)
                if asked.timestamp < 0 and version < FIRST_VERSIONS.get(asked.timestamp, NEVER):
                    raise Refused(ErrorCode.UNSUPPORTED_VERSION)
                partition = finder.find(topic.name, asked.partition_index)
                leader = partition.require_leader(asked.current_leader_epoch)
                found = _find(
                    partition, leader, asked.timestamp, replica=replica, committed=committed
                )
            except Refused as refused:
                answer.error_code = _code_for(refused.error, version)
                continue
            answer.offset = found.offset
            answer.timestamp = found.timestamp_ms
            answer.leader_epoch = found.leader_epoch if version >= 4 else -1
    return response


def _code_for(error: ErrorCode, version: int) -> ErrorCode:
    old = version < FIRST_VERSION_WITH_OFFSET_NOT_AVAILABLE
    if old and error is ErrorCode.OFFSET_NOT_AVAILABLE:
        return ErrorCode.LEADER_NOT_AVAILABLE
    return error


def _find(
    partition: Partition, leader: LeaderState, timestamp: int, *, replica: bool, committed: bool
) -> FoundOffset:
    """Raises Refused."""
    log = partition.log
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        offset = log.log_start_offset
        return FoundOffset(offset, -1, log.epochs.epoch_for_offset(offset))
    if timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return UNKNOWN
    if replica:
        limit = log.log_end_offset
    elif committed:
        limit = partition.last_stable_offset
    else:
        limit = partition.high_watermark
    lags = not replica and leader.watermark_lags_epoch
    if timestamp == LATEST:
        if lags:
            raise Refused(ErrorCode.OFFSET_NOT_AVAILABLE)
        return FoundOffset(limit, -1, leader.leader_epoch)
    try:
        if timestamp == MAX_TIMESTAMP:
            found = log.offset_of_max_timestamp(upper_bound=limit)
        else:
            found = log.offset_for_timestamp(timestamp, upper_bound=limit)
    except StorageFailed:
        raise Refused(ErrorCode.KAFKA_STORAGE_ERROR) from None
    if found is not None:
        return found
    if lags:
        # What is asked for may lie between the watermark and what was once shown.
        raise Refused(ErrorCode.OFFSET_NOT_AVAILABLE)
    return UNKNOWN
