"""v2: records to a topic, or to one partition of it, and where each of them stands now.

The status is 200 when the request was understood; records that were not written have their own
`error_code` and `error` (`message` says the same, for clients of Strimzi's bridge). With
`async=true` nothing is said of single records: 204 when all of them were written, else the error.
The node waits for that all the same: a client that hears nothing of a loss could not know of it.
"""

from __future__ import annotations

from typing import Any

from aiohttp import web

from ..bodies import body_size_bound, read_body, worked
from ..confluent_errors import record_code
from ..errors import ApiError
from ..keys import ADMISSION, LEADERS, NODE, RNG
from ..media import JSON_TYPE, V2_TYPE, require_accept
from ..topics import existing_topic
from ..writing import Batch, Outcome, assigned, encoded, send
from .formats import produced_format, records_in
from .topics import partition_in_path, v2_response

ACKS_ALL = -1


async def produce(request: web.Request) -> web.Response:
    """POST /topics/{topic} and /topics/{topic}/partitions/{partition}."""
    given = produced_format(request)
    silent = _flag(request, "async")
    require_accept(request, V2_TYPE, JSON_TYPE, "application/vnd.kafka+json")
    node = request.app[NODE]
    # The body, its parsed form and the encoded batches live side by side for a moment.
    with request.app[ADMISSION].memory(3 * body_size_bound(request)):
        body = await read_body(request)
        topic = existing_topic(node, request.match_info["topic"])
        partition = None
        if "partition" in request.match_info:
            partition = partition_in_path(request, topic)
        now_ms = node.now_ms()
        records = await worked(
            len(body),
            lambda: records_in(body, given, now_ms, to_partition=partition is not None),
        )
        if partition is not None:
            by_partition = {partition: list(range(len(records)))}
        else:
            by_partition = assigned(topic, records, request.app[RNG])
        batches = await worked(len(body), lambda: encoded(records, by_partition))
        outcomes = await send(node, request.app[LEADERS], topic, batches, ACKS_ALL)
    if silent:
        return _silently(outcomes)
    document = {
        "offsets": _offsets(len(records), batches, outcomes),
        "key_schema_id": None,
        "value_schema_id": None,
    }
    return v2_response(request, document)


def _offsets(
    count: int, batches: list[Batch], outcomes: dict[int, Outcome]
) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [{}] * count
    for batch in batches:
        outcome = outcomes[batch.partition]
        for place, position in enumerate(batch.positions):
            found[position] = _offset(batch.partition, place, outcome)
    return found


def _offset(partition: int, place: int, outcome: Outcome) -> dict[str, Any]:
    if isinstance(outcome, ApiError):
        return {
            "partition": None,
            "offset": None,
            "error_code": record_code(outcome),
            "error": outcome.message,
            "message": outcome.message,
        }
    return {
        "partition": partition,
        "offset": outcome.base_offset + place,
        "error_code": None,
        "error": None,
    }


def _silently(outcomes: dict[int, Outcome]) -> web.Response:
    for outcome in outcomes.values():
        if isinstance(outcome, ApiError):
            raise outcome
    return web.Response(status=204)


def _flag(request: web.Request, name: str) -> bool:
    text = request.query.get(name, "false").lower()
    if text not in ("true", "false"):
        raise ApiError(400, f"{name} is {text[:40]!r}; it takes true or false")
    return text == "true"
