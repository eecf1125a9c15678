"""POST /api/v1/topics/{topic}/records: records in, offsets out. Any node takes them.

A JSON document is one request and one answer; lines of JSON are answered while the request is open
(`produce_lines`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from aiohttp import web

from ...metadata.image import TopicImage
from .bodies import body_size_bound, read_body, require_type, worked
from .encodings import Encoding
from .errors import ApiError
from .guards import JSON_TYPE, json_response
from .keys import ADMISSION, IDEMPOTENCY, LEADERS, NODE, RNG
from .media import require_accept
from .partitioner import Partitioner
from .produce_lines import NDJSON_TYPE, produce_lines
from .records_in import Producer, RecordEncodings, RecordIn, from_json
from .topics import existing_topic
from .verdicts import json_line, record_verdict
from .writing import Batch, Outcome, assigned_by, encoded, send

ACKS = {"all": -1, "-1": -1, "1": 1}
"""acks=0 would leave nothing to answer."""


async def produce_records(request: web.Request) -> web.StreamResponse:
    """200: all written; 207: some were; else the first error. Each record has its own verdict, in
    the order of the request."""
    acks = ACKS.get(request.query.get("acks", "all"))
    if acks is None:
        raise ApiError(400, "acks takes all or 1")
    encodings = _encodings(request.query)
    # Before anything is written, or the answer could not be given.
    require_accept(request, JSON_TYPE, NDJSON_TYPE)
    media_type = require_type(request, JSON_TYPE, NDJSON_TYPE)
    if media_type == NDJSON_TYPE:
        require_accept(request, NDJSON_TYPE)
        if "Idempotency-Key" in request.headers:
            raise ApiError(
                422,
                "an Idempotency-Key is for a JSON document",
                hint="lines that are batches may carry a producer_id and be sent again",
            )
        topic = existing_topic(request.app[NODE], request.match_info["topic"])
        return await produce_lines(request, topic, acks, encodings)
    return await _produce_document(request, acks, encodings)


async def _produce_document(
    request: web.Request, acks: int, encodings: RecordEncodings
) -> web.Response:
    node = request.app[NODE]
    # The body, its parsed form and the encoded batches live side by side for a moment.
    with request.app[ADMISSION].memory(3 * body_size_bound(request)):
        body = await read_body(request)
        topic = existing_topic(node, request.match_info["topic"])
        key = request.headers.get("Idempotency-Key")
        if key is None:
            by_chance = Partitioner.of(topic, request.app[RNG])
            return await _written(request, topic, acks, encodings, body, node.now_ms(), by_chance)
        whole = request.query_string.encode() + b"\n" + body
        with request.app[IDEMPOTENCY].running(topic.topic_id, key, whole, node.now_ms()) as keyed:
            partitioner = Partitioner.repeatable(topic, keyed.sticky)
            return await _written(
                request, topic, acks, encodings, body, keyed.now_ms, partitioner, keyed.producer
            )


async def _written(
    request: web.Request,
    topic: TopicImage,
    acks: int,
    encodings: RecordEncodings,
    body: bytes,
    now_ms: int,
    partitioner: Partitioner,
    producer: Producer | None = None,
) -> web.Response:
    found = await worked(len(body), lambda: from_json(body, encodings, now_ms))
    if producer is not None and found.producer is not None:
        raise ApiError(422, "an Idempotency-Key and a producer_id exclude each other")
    producer = producer or found.producer
    by_partition = assigned_by(partitioner, topic, found.records)
    batches = await worked(len(body), lambda: encoded(found.records, by_partition, producer))
    outcomes = await send(request.app[NODE], request.app[LEADERS], topic, batches, acks)
    wants_lines = require_accept(request, JSON_TYPE, NDJSON_TYPE) == NDJSON_TYPE
    return await worked(
        len(body), lambda: _answer(topic, found.records, batches, outcomes, lines=wants_lines)
    )


def _encodings(parameters: Mapping[str, str]) -> RecordEncodings:
    def named(name: str) -> Encoding:
        return Encoding.named(parameters.get(name, Encoding.STRING), name)

    return RecordEncodings(named("key_encoding"), named("value_encoding"), named("header_encoding"))


def _answer(
    topic: TopicImage,
    records: Sequence[RecordIn],
    batches: Sequence[Batch],
    outcomes: Mapping[int, Outcome],
    *,
    lines: bool,
) -> web.Response:
    verdicts: list[dict[str, Any]] = [{}] * len(records)
    for batch in batches:
        outcome = outcomes[batch.partition]
        for place, position in enumerate(batch.positions):
            verdicts[position] = record_verdict(outcome, batch.partition, place, records[position])
    errors = [outcome for outcome in outcomes.values() if isinstance(outcome, ApiError)]
    status = 207 if errors else 200
    if len(errors) == len(outcomes):
        status = errors[0].status
    if lines:
        body = b"".join(map(json_line, verdicts))
        return web.Response(body=body, status=status, content_type=NDJSON_TYPE)
    document: dict[str, Any] = {"topic": topic.name, "records": verdicts}
    if errors:
        document = {**errors[0].document(), **document}
    return json_response(document, status=status)
