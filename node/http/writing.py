"""Records on their way to the leaders of their partitions: what every produce path of HTTP does."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from random import Random

from ...metadata.image import NO_LEADER, TopicImage
from ...seam import frozen
from ...wire import Buffer, ErrorCode
from ...wire.messages.produce import ProduceRequest, ProduceResponse
from .batches import encode
from .errors import ApiError, answer_lost, from_kafka, no_partition, node_unreachable
from .leaders import Leaders
from .partitioner import Partitioner
from .ports import AnswerLost, HttpNode, Unreachable
from .records_in import RecordIn

PRODUCE_SECONDS = 30.0
RESEND_PAUSE_S = 0.05


@frozen
class Batch:
    """The records of one partition; `positions` are their places in the request."""

    partition: int
    positions: list[int]
    encoded: Buffer


@frozen
class Written:
    """Where the first record of a batch stands."""

    base_offset: int
    log_append_time_ms: int
    """-1: the records keep their own timestamps."""


Outcome = Written | ApiError


def assigned(topic: TopicImage, records: Sequence[RecordIn], rng: Random) -> dict[int, list[int]]:
    """Positions of the records by partition."""
    count = len(topic.partitions)
    with_leader = [p.partition for p in topic.partitions if p.leader != NO_LEADER]
    partitioner = Partitioner(count, with_leader, rng)
    by_partition: dict[int, list[int]] = {}
    for position, record in enumerate(records):
        partition = record.partition
        if partition is None:
            partition = partitioner.partition_for(record.key)
        elif partition >= count:
            raise no_partition(topic.name, partition, count)
        by_partition.setdefault(partition, []).append(position)
    return by_partition


def encoded(
    records: Sequence[RecordIn], by_partition: Mapping[int, list[int]], now_ms: int
) -> list[Batch]:
    return [
        Batch(
            partition,
            positions,
            encode([records[position] for position in positions], now_ms),
        )
        for partition, positions in by_partition.items()
    ]


async def send(
    node: HttpNode, leaders: Leaders, topic: TopicImage, batches: Sequence[Batch], acks: int
) -> dict[int, Outcome]:
    """What became of each partition's batch. Leaders are asked side by side, each once.

    A batch that did not leave this node is sent again while there is time; any other answer is
    final.
    """
    deadline = asyncio.get_running_loop().time() + PRODUCE_SECONDS
    give_up_at = leaders.give_up_at()
    outcomes: dict[int, Outcome] = {}
    left = list(batches)
    while left:
        by_leader: dict[int, list[Batch]] = {}
        for batch in left:
            try:
                leader = await leaders.for_writing(topic.name, batch.partition, give_up_at)
            except ApiError as error:
                outcomes[batch.partition] = error
            else:
                by_leader.setdefault(leader, []).append(batch)
        answers = await asyncio.gather(
            *(_ask(node, leader, topic, own, acks, deadline) for leader, own in by_leader.items())
        )
        for answer in answers:
            outcomes.update(answer)
        # Not sent: the leader refused the connection, and another one will be elected.
        again = asyncio.get_running_loop().time() < give_up_at
        left = [b for b in left if again and _was_not_sent(outcomes[b.partition])]
        await asyncio.sleep(RESEND_PAUSE_S if left else 0)
    return outcomes


def _was_not_sent(outcome: Outcome) -> bool:
    return (
        isinstance(outcome, ApiError)
        and outcome.kafka_error is ErrorCode.BROKER_NOT_AVAILABLE
        and not outcome.outcome_unknown
    )


async def _ask(
    node: HttpNode,
    leader: int,
    topic: TopicImage,
    batches: Sequence[Batch],
    acks: int,
    deadline: float,
) -> dict[int, Outcome]:
    request = ProduceRequest(
        acks=acks,
        timeout_ms=int(PRODUCE_SECONDS * 1000),
        topic_data=[
            ProduceRequest.TopicProduceData(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_data=[
                    ProduceRequest.PartitionProduceData(index=b.partition, records=b.encoded)
                    for b in batches
                ],
            )
        ],
    )
    try:
        response = await node.produce(leader, request, deadline)
    except Unreachable:
        return {batch.partition: node_unreachable(leader) for batch in batches}
    except AnswerLost:
        return {batch.partition: answer_lost(leader, writes=True) for batch in batches}
    return _outcomes(response)


def _outcomes(response: ProduceResponse) -> dict[int, Outcome]:
    return {
        answer.index: from_kafka(answer.error_code, answer.error_message, writes=True)
        if answer.error_code
        else Written(answer.base_offset, answer.log_append_time_ms)
        for topic in response.responses
        for answer in topic.partition_responses
    }


def stored_timestamp(written: Written, record: RecordIn, now_ms: int) -> int:
    """The record's own, or the leader's in a topic of append times."""
    if written.log_append_time_ms >= 0:
        return written.log_append_time_ms
    return now_ms if record.timestamp_ms is None else record.timestamp_ms
