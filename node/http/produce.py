"""POST /api/v1/topics/{topic}/records: records in, offsets out. Any node takes them; each batch
goes on to its partition's leader."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson
from aiohttp import web

from ...metadata.image import TopicImage
from . import query
from .bodies import body_size_bound, read_body, require_type, worked
from .encodings import Encoding
from .errors import ApiError
from .guards import JSON_TYPE, json_response
from .keys import ADMISSION, LEADERS, NODE, RNG
from .records_in import RecordEncodings, RecordIn, from_json, from_lines
from .topics import existing_topic
from .writing import Batch, Outcome, assigned, encoded, send, stored_timestamp

NDJSON_TYPE = "application/x-ndjson"
ACKS = {"all": -1, "-1": -1, "1": 1}
"""acks=0 would leave nothing to answer."""


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
        records = await worked(len(body), lambda: parse(body, encodings))
        by_partition = assigned(topic, records, request.app[RNG])
        now_ms = node.now_ms()
        batches = await worked(len(body), lambda: encoded(records, by_partition, now_ms))
        outcomes = await send(node, request.app[LEADERS], topic, batches, acks)
    return _answer(request, topic, records, batches, outcomes, now_ms)


def _encodings(parameters: Mapping[str, str]) -> RecordEncodings:
    def named(name: str) -> Encoding:
        return Encoding.named(parameters.get(name, Encoding.STRING), name)

    return RecordEncodings(named("key_encoding"), named("value_encoding"), named("header_encoding"))


def _answer(
    request: web.Request,
    topic: TopicImage,
    records: Sequence[RecordIn],
    batches: Sequence[Batch],
    outcomes: Mapping[int, Outcome],
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
    partition: int, place: int, outcome: Outcome, record: RecordIn, now_ms: int
) -> dict[str, Any]:
    if isinstance(outcome, ApiError):
        return {"partition": partition, **outcome.document()}
    timestamp = stored_timestamp(outcome, record, now_ms)
    return {"partition": partition, "offset": outcome.base_offset + place, "timestamp": timestamp}
