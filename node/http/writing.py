"""Records on their way to the leaders of their partitions: what every produce path of HTTP does."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from random import Random
from typing import NamedTuple

from ...metadata.image import TopicImage
from ...seam import frozen
from ...wire import Buffer, ErrorCode
from ...wire.messages.produce import ProduceRequest, ProduceResponse
from .batches import encode
from .errors import ApiError, answer_lost, from_kafka, no_partition, node_unreachable
from .leaders import Leaders
from .partitioner import Partitioner
from .ports import AnswerLost, HttpNode, Unreachable
from .records_in import Producer, RecordIn

PRODUCE_SECONDS = 30.0
"""From the first attempt to the last answer."""

RESEND_PAUSE_S = 0.05


@frozen
class Batch:
    """The records of one partition; `positions` are their places in the request."""

    partition: int
    positions: Sequence[int]
    encoded: Buffer
    repeatable: bool = False
    """The log recognises its repetition (it has a producer id), so that it may be sent again even
    when it may have been written."""


class Written(NamedTuple):
    """Where the first record of a batch stands."""

    base_offset: int
    log_append_time_ms: int
    """-1: the records keep their own timestamps."""


Outcome = Written | ApiError


def assigned(topic: TopicImage, records: Sequence[RecordIn], rng: Random) -> dict[int, list[int]]:
    """Positions of the records by partition. Raises ApiError 404."""
    return assigned_by(Partitioner.of(topic, rng), topic, records)


def assigned_by(
    partitioner: Partitioner, topic: TopicImage, records: Sequence[RecordIn]
) -> dict[int, list[int]]:
    """As `assigned`, where the partitioner says."""
    by_partition: dict[int, list[int]] = {}
    for position, record in enumerate(records):
        by_partition.setdefault(partition_of(topic, record, partitioner), []).append(position)
    return by_partition


def partition_of(topic: TopicImage, record: RecordIn, partitioner: Partitioner) -> int:
    """Raises ApiError 404 when the record names one that is not there."""
    partition = record.partition
    if partition is None:
        return partitioner.partition_for(record.key)
    if partition >= len(topic.partitions):
        raise no_partition(topic.name, partition, len(topic.partitions))
    return partition


def encoded(
    records: Sequence[RecordIn],
    by_partition: Mapping[int, Sequence[int]],
    producer: Producer | None = None,
) -> list[Batch]:
    """One batch for each partition."""
    return [
        Batch(
            partition,
            positions,
            encode([records[position] for position in positions], producer),
            repeatable=producer is not None,
        )
        for partition, positions in by_partition.items()
    ]


async def send(
    node: HttpNode, leaders: Leaders, topic: TopicImage, batches: Sequence[Batch], acks: int
) -> dict[int, Outcome]:
    """What became of each partition's batch. Leaders are asked side by side.

    A batch that did not leave this node, or whose repetition the log recognises, is sent again
    while there is time; any other answer is final. The topic goes by its id, so nothing is written
    into another one that took its name meanwhile.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + PRODUCE_SECONDS
    give_up_at = leaders.give_up_at()
    outcomes: dict[int, Outcome] = {}
    left = list(batches)
    while left:
        by_leader: dict[int, list[Batch]] = {}
        for batch in left:
            try:
                leader = await leaders.for_writing(topic.name, batch.partition, give_up_at)
            except ApiError as error:
                _note(outcomes, batch.partition, error)
            else:
                by_leader.setdefault(leader, []).append(batch)
        asked = [
            _ask(node, leader, topic, own, acks, deadline) for leader, own in by_leader.items()
        ]
        # The usual single leader costs no task.
        for answer in [await asked[0]] if len(asked) == 1 else await asyncio.gather(*asked):
            for partition, outcome in answer.items():
                _note(outcomes, partition, outcome)
        again = loop.time() < give_up_at
        left = [b for b in left if again and _may_be_sent_again(b, outcomes[b.partition])]
        if left:
            await asyncio.sleep(RESEND_PAUSE_S)
    return outcomes


def _note(outcomes: dict[int, Outcome], partition: int, outcome: Outcome) -> None:
    """What an earlier attempt may have written, a later one that was refused does not take back."""
    before = outcomes.get(partition)
    if isinstance(before, ApiError) and before.outcome_unknown and isinstance(outcome, ApiError):
        outcome = outcome.with_unknown_outcome()
    outcomes[partition] = outcome


def _may_be_sent_again(batch: Batch, outcome: Outcome) -> bool:
    if not isinstance(outcome, ApiError):
        return False
    if outcome.outcome_unknown:
        return batch.repeatable
    # The leader refused the connection, and another one will be elected.
    return outcome.kafka_error is ErrorCode.BROKER_NOT_AVAILABLE


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


def stored_timestamp(written: Written, record: RecordIn) -> int:
    """The record's own, or the leader's in a topic of append times."""
    appended = written.log_append_time_ms
    return appended if appended >= 0 else record.timestamp
