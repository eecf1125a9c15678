"""DeleteRecords (API key 21, versions 0-2): records below an offset are deleted, on every replica.

The leader moves its log start at once; the others learn it with their next fetch, and report their
own with the one after. The answer waits until every replica on a living broker has passed the
offset, or tells REQUEST_TIMED_OUT: the records are gone from the leader all the same (KIP-107).
"""

from __future__ import annotations

import asyncio

from ..wire import ErrorCode
from ..wire.messages.delete_records import DeleteRecordsRequest, DeleteRecordsResponse
from .fetch import PartitionFinder
from .partition import Partition
from .produce import INTERNAL_TOPICS
from .roles import Refused
from .waiting_room import PendingAnswers

HIGH_WATERMARK = -1
"""As the offset: everything that is committed."""

UNKNOWN_LOW_WATERMARK = -1

Answer = DeleteRecordsResponse.DeleteRecordsTopicResult.DeleteRecordsPartitionResult


async def delete_records(
    finder: PartitionFinder, request: DeleteRecordsRequest
) -> DeleteRecordsResponse:
    response = DeleteRecordsResponse()
    pending = PendingAnswers()
    deadline = asyncio.get_running_loop().time() + max(request.timeout_ms, 0) / 1000
    for topic in request.topics:
        answers: list[Answer] = []
        response.topics.append(
            DeleteRecordsResponse.DeleteRecordsTopicResult(name=topic.name, partitions=answers)
        )
        for asked in topic.partitions:
            answer = Answer(
                partition_index=asked.partition_index, low_watermark=UNKNOWN_LOW_WATERMARK
            )
            answers.append(answer)
            try:
                if topic.name in INTERNAL_TOPICS:
                    raise Refused(ErrorCode.INVALID_TOPIC_EXCEPTION)
                partition = finder.find(topic.name, asked.partition_index)
                await _delete(partition, asked.offset, pending, answer)
            except Refused as refused:
                answer.error_code = refused.error
    await pending.wait(deadline)
    return response


async def _delete(
    partition: Partition, offset: int, pending: PendingAnswers, answer: Answer
) -> None:
    """Raises Refused."""
    if offset == HIGH_WATERMARK:
        partition.require_leader()
        offset = partition.high_watermark
    await partition.delete_records(offset)

    def on_answer(error: ErrorCode) -> None:
        answer.error_code = error
        if error in (ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT):
            answer.low_watermark = partition.low_watermark

    partition.await_deleted(offset, pending=pending, on_answer=on_answer)
