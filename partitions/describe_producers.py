"""DescribeProducers (API key 61, version 0): who writes to a partition, and what each has open.

Any replica answers from its own log (KIP-664): a transaction that hangs is found by comparing what
the leader's log has open with what coordinators know of.
"""

from __future__ import annotations

from ..wire.messages.describe_producers import DescribeProducersRequest, DescribeProducersResponse
from .fetch import PartitionFinder
from .roles import Refused
from .storage import ProducerStates

PartitionAnswer = DescribeProducersResponse.TopicResponse.PartitionResponse


def describe_producers(
    finder: PartitionFinder, request: DescribeProducersRequest
) -> DescribeProducersResponse:
    return DescribeProducersResponse(
        topics=[
            DescribeProducersResponse.TopicResponse(
                name=topic.name,
                partitions=[
                    _answer(finder, topic.name, number) for number in topic.partition_indexes
                ],
            )
            for topic in request.topics
        ]
    )


def _answer(finder: PartitionFinder, topic: str, number: int) -> PartitionAnswer:
    try:
        producers = finder.find(topic, number).log.producers
    except Refused as refused:
        return PartitionAnswer(partition_index=number, error_code=refused.error)
    return PartitionAnswer(partition_index=number, active_producers=_active(producers))


def _active(producers: ProducerStates) -> list[PartitionAnswer.ProducerState]:
    return [
        PartitionAnswer.ProducerState(
            producer_id=producer_id,
            producer_epoch=entry.producer_epoch,
            last_sequence=entry.last_sequence,
            last_timestamp=entry.last_timestamp_ms,
            coordinator_epoch=entry.coordinator_epoch,
            current_txn_start_offset=entry.transaction_first_offset,
        )
        for producer_id, entry in producers.entries().items()
    ]
