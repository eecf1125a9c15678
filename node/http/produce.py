"""POST /api/v1/topics/{topic}/records: records in, offsets out. Any node takes them; each batch
goes on to its partition's leader."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import orjson
from aiohttp import web

from ...metadata.image import NO_LEADER, TopicImage
from ...seam import frozen, offload
from ...wire import Buffer, ErrorCode
from ...wire.messages.produce import ProduceRequest, ProduceResponse
from . import query
from .batches import encode
from .bodies import body_size_bound, read_body, require_type
from .encodings import Encoding
from .errors import ApiError, answer_lost, from_kafka, no_partition, node_unreachable
from .guards import JSON_TYPE, json_response
from .keys import ADMISSION, LEADERS, NODE, RNG
from .leaders import Leaders
from .partitioner import Partitioner
from .ports import AnswerLost, HttpNode, Unreachable
from .records_in import RecordEncodings, RecordIn, from_json, from_lines
from .topics import existing_topic

NDJSON_TYPE = "application/x-ndjson"
PRODUCE_SECONDS = 30.0
RESEND_PAUSE_S = 0.05
OFFLOAD_BYTES = 64 << 10
"""Parsing more than this takes longer than a loop callback may (RULES F1)."""

ACKS = {"all": -1, "-1": -1, "1": 1}
"""acks=0 would leave nothing to answer."""

Result = TypeVar("Result")


@frozen
class _Batch:
    """The records of one partition; `positions` are their places in the request."""

    partition: int
    positions: list[int]
    encoded: Buffer


@frozen
class _Written:
    """Where the first record of a batch stands."""

    base_offset: int
    log_append_time_ms: int
    """-1: the records keep their own timestamps."""


_Outcome = _Written | ApiError


async def produce_records(request: web.Request) -> web.Response:
    """200: all written; 207: some were; else the first error. Each record has its own verdict, in
    the order of the request."""
    query.refuse_unknown(request.query, "key_encoding", "value_encoding", "header_encoding", "acks")
    acks = ACKS.get(request.query.get("acks", "all"))
    if acks is None:
        raise ApiError(400, "acks takes all or 1")
    encodings = _encodings(request.query)
    media_type = require_type(request, JSON_TYPE, NDJSON_TYPE)
    node = request.app[NODE]
    # The body, its parsed form and the encoded batches live side by side for a moment.
    with request.app[ADMISSION].memory(3 * body_size_bound(request)):
        body = await read_body(request)
        topic = existing_topic(node, request.match_info["topic"])
        parse = from_lines if media_type == NDJSON_TYPE else from_json
        records = await _worked(len(body), lambda: parse(body, encodings))
        by_partition = _assigned(topic, records, request)
        now_ms = node.now_ms()
        batches = await _worked(len(body), lambda: _encoded(records, by_partition, now_ms))
        outcomes = await _send(node, request.app[LEADERS], topic, batches, acks)
    return _answer(request, topic, records, batches, outcomes, now_ms)


def _encodings(parameters: Mapping[str, str]) -> RecordEncodings:
    def named(name: str) -> Encoding:
        return Encoding.named(parameters.get(name, Encoding.STRING), name)

    return RecordEncodings(named("key_encoding"), named("value_encoding"), named("header_encoding"))


async def _worked(size: int, work: Callable[[], Result]) -> Result:
    """Here when it is little, beside the loop when it is not."""
    return work() if size <= OFFLOAD_BYTES else await offload(work)


def _assigned(
    topic: TopicImage, records: Sequence[RecordIn], request: web.Request
) -> dict[int, list[int]]:
    """Positions of the records by partition."""
    count = len(topic.partitions)
    with_leader = [p.partition for p in topic.partitions if p.leader != NO_LEADER]
    partitioner = Partitioner(count, with_leader, request.app[RNG])
    by_partition: dict[int, list[int]] = {}
    for position, record in enumerate(records):
        partition = record.partition
        if partition is None:
            partition = partitioner.partition_for(record.key)
        elif partition >= count:
            raise no_partition(topic.name, partition, count)
        by_partition.setdefault(partition, []).append(position)
    return by_partition


def _encoded(
    records: Sequence[RecordIn], by_partition: Mapping[int, list[int]], now_ms: int
) -> list[_Batch]:
    return [
        _Batch(
            partition,
            positions,
            encode([records[position] for position in positions], now_ms),
        )
        for partition, positions in by_partition.items()
    ]


async def _send(
    node: HttpNode, leaders: Leaders, topic: TopicImage, batches: Sequence[_Batch], acks: int
) -> dict[int, _Outcome]:
    """What became of each partition's batch. Leaders are asked side by side, each once.

    A batch that did not leave this node is sent again while there is time; any other answer is
    final.
    """
    deadline = asyncio.get_running_loop().time() + PRODUCE_SECONDS
    give_up_at = leaders.give_up_at()
    outcomes: dict[int, _Outcome] = {}
    left = list(batches)
    while left:
        by_leader: dict[int, list[_Batch]] = {}
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


def _was_not_sent(outcome: _Outcome) -> bool:
    return (
        isinstance(outcome, ApiError)
        and outcome.kafka_error is ErrorCode.BROKER_NOT_AVAILABLE
        and not outcome.outcome_unknown
    )


async def _ask(
    node: HttpNode,
    leader: int,
    topic: TopicImage,
    batches: Sequence[_Batch],
    acks: int,
    deadline: float,
) -> dict[int, _Outcome]:
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


def _outcomes(response: ProduceResponse) -> dict[int, _Outcome]:
    return {
        answer.index: from_kafka(answer.error_code, answer.error_message, writes=True)
        if answer.error_code
        else _Written(answer.base_offset, answer.log_append_time_ms)
        for topic in response.responses
        for answer in topic.partition_responses
    }


def _answer(
    request: web.Request,
    topic: TopicImage,
    records: Sequence[RecordIn],
    batches: Sequence[_Batch],
    outcomes: Mapping[int, _Outcome],
    now_ms: int,
) -> web.Response:
    verdicts: list[dict[str, Any]] = [{}] * len(records)
    for batch in batches:
        outcome = outcomes[batch.partition]
        for place, position in enumerate(batch.positions):
            verdicts[position] = _verdict(
                batch.partition, place, outcome, records[position], now_ms
            )
    errors = [outcome for outcome in outcomes.values() if isinstance(outcome, ApiError)]
    status = 207 if errors else 200
    if len(errors) == len(outcomes):
        status = errors[0].status
    if NDJSON_TYPE in request.headers.get("Accept", ""):
        lines = b"\n".join(orjson.dumps(verdict) for verdict in verdicts) + b"\n"
        return web.Response(body=lines, status=status, content_type=NDJSON_TYPE)
    document: dict[str, Any] = {"topic": topic.name, "records": verdicts}
    if errors:
        document = {**errors[0].document(), **document}
    return json_response(document, status=status)


def _verdict(
    partition: int, place: int, outcome: _Outcome, record: RecordIn, now_ms: int
) -> dict[str, Any]:
    if isinstance(outcome, ApiError):
        return {"partition": partition, **outcome.document()}
    timestamp = now_ms if record.timestamp_ms is None else record.timestamp_ms
    if outcome.log_append_time_ms >= 0:
        timestamp = outcome.log_append_time_ms
    return {"partition": partition, "offset": outcome.base_offset + place, "timestamp": timestamp}
