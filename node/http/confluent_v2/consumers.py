"""v2: consumer groups' instances: create, subscribe, poll, commit, seek, delete.

Here a request is read and checked; where its instance lives it is carried out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from aiohttp import web

from ..bodies import read_body
from ..errors import ApiError
from ..keys import ADMISSION, LEASE
from ..media import JSON_TYPE, V2_TYPE, require_accept
from ..query import refuse_unknown, whole_number
from ..records_in import record_integer
from ..while_connected import is_gone, while_connected
from .calls import Answer, Call, Operation
from .finding import Finding
from .formats import FORMATS, Format, json_document, require_control_type
from .instance_config import LONGEST_POLL_MS, parse_instance
from .instances import Instances
from .topics import v2_response

INSTANCES = web.AppKey("instances", Instances)
FINDING = web.AppKey("finding", Finding)

DEFAULT_MAX_BYTES = 1 << 20
LARGEST_MAX_BYTES = 8 << 20

_INT32_MAX = 2**31 - 1
_INT64_MAX = 2**63 - 1

Row = dict[str, Any]


async def create(request: web.Request) -> web.Response:
    """It lives on this node; `base_uri` names the address that the client used, for any will do."""
    group_id = request.match_info["group"]
    document = await _document(request)
    config = parse_instance({} if document is None else document)
    require_accept(request, V2_TYPE, JSON_TYPE)
    instances = request.app[INSTANCES]
    name = instances.take_name(group_id, config.name)
    try:
        if config.name is not None:
            await request.app[FINDING].nobody_has(group_id, name)
        instances.make(group_id, name, config)
    except BaseException:
        instances.let_go(group_id, name)
        raise
    path = f"/consumers/{_escaped(group_id)}/instances/{_escaped(name)}"
    base_uri = f"{request.scheme}://{request.host}{path}"
    return v2_response(request, {"instance_id": name, "base_uri": base_uri})


def _escaped(name: str) -> str:
    return quote(name, safe="")


async def delete(request: web.Request) -> web.Response:
    return await _asked(request, Operation.DELETE)


async def subscribe(request: web.Request) -> web.Response:
    document = await _object(request)
    topics, pattern = document.get("topics"), document.get("topic_pattern")
    _refuse_keys(document, "topics", "topic_pattern")
    if topics is not None and pattern is not None:
        raise ApiError(409, '"topics" and "topic_pattern" exclude each other', error_code=40903)
    if pattern is not None:
        return await _asked(request, Operation.SUBSCRIBE, topics=[], pattern=_pattern(pattern))
    if not isinstance(topics, list) or not topics:
        raise ApiError(422, '"topics", a list of names, or "topic_pattern" is missing')
    for topic in topics:
        if not isinstance(topic, str) or not topic:
            raise ApiError(422, '"topics" holds something that is no name')
    return await _asked(request, Operation.SUBSCRIBE, topics=topics, pattern=None)


def _pattern(pattern: Any) -> str:
    from ....groups.consumer.topic_patterns import why_invalid  # loads the pattern engine

    if not isinstance(pattern, str) or not pattern:
        raise ApiError(422, '"topic_pattern" is no text')
    reason = why_invalid(pattern)
    if reason is not None:
        raise ApiError(422, f'"topic_pattern": {reason}')
    return pattern


async def subscription(request: web.Request) -> web.Response:
    return await _asked(request, Operation.SUBSCRIPTION)


async def unsubscribe(request: web.Request) -> web.Response:
    return await _asked(request, Operation.UNSUBSCRIBE)


async def assign(request: web.Request) -> web.Response:
    document = await _object(request)
    _refuse_keys(document, "partitions")
    rows = _rows(document, "partitions", _place)
    return await _asked(request, Operation.ASSIGN, partitions=rows)


async def assignment(request: web.Request) -> web.Response:
    return await _asked(request, Operation.ASSIGNMENT)


async def poll(request: web.Request) -> web.Response:
    """`?timeout=` milliseconds and `?max_bytes=`; Accept may name the instance's format."""
    refuse_unknown(request.query, "timeout", "max_bytes")
    timeout_ms = whole_number(request.query, "timeout", largest=_INT32_MAX)
    if timeout_ms is not None:
        timeout_ms = min(timeout_ms, LONGEST_POLL_MS)
    max_bytes = whole_number(request.query, "max_bytes", largest=_INT64_MAX) or DEFAULT_MAX_BYTES
    max_bytes = min(max_bytes, LARGEST_MAX_BYTES)
    wanted = _wanted_format(request)
    call = _call(request, Operation.POLL, timeout_ms=timeout_ms, max_bytes=max_bytes, format=wanted)
    patience_s = (LONGEST_POLL_MS if timeout_ms is None else timeout_ms) / 1000
    # It may wait for a minute, as those who follow topics do.
    with request.app[ADMISSION].tail(request[LEASE]):
        asking = request.app[FINDING].ask(call, patience_s=patience_s)
        answer = await while_connected(request, asking)
        if answer is None or is_gone(request):
            if answer is not None and answer.delivery:
                await _take_back(request, answer)
            return web.Response(status=204)  # which nobody reads
        given = Format(answer.document["format"])
        media_type = require_accept(request, given.media_type, V2_TYPE, JSON_TYPE)
        return web.Response(body=answer.records, content_type=media_type)


def _wanted_format(request: web.Request) -> str | None:
    """None: that of the instance. Raises ApiError 406."""
    named = require_accept(request, V2_TYPE, JSON_TYPE, *(one.media_type for one in Format))
    return next((name for name in sorted(FORMATS) if Format(name).media_type == named), None)


async def _take_back(request: web.Request, answer: Answer) -> None:
    """The client is gone: the next one who polls gets these records."""
    try:
        call = _call(request, Operation.TAKE_BACK, delivery=answer.delivery)
        await request.app[FINDING].ask(call)
    except ApiError:
        return  # the instance is gone, too, and with it its positions


async def commit(request: web.Request) -> web.Response:
    """Without a body: what was given out. An offset is that of the next record to read, as in
    Kafka and Strimzi's bridge."""
    document = await _document(request)
    if document is None:
        return await _asked(request, Operation.COMMIT, offsets=None)
    if not isinstance(document, dict):
        raise ApiError(422, 'the body is no JSON object with "offsets"')
    _refuse_keys(document, "offsets", "partitions")
    if not document:
        return await _asked(request, Operation.COMMIT, offsets=None)
    rows = _rows(document, "offsets", _commit_row)
    return await _asked(request, Operation.COMMIT, offsets=rows)


async def committed(request: web.Request) -> web.Response:
    """Confluent's clients name the partitions in the body of the GET; without it all that the
    instance has."""
    document = await _document(request)
    partitions = None
    if document is not None:
        if not isinstance(document, dict):
            raise ApiError(422, 'the body is no JSON object with "partitions"')
        _refuse_keys(document, "partitions")
        partitions = _rows(document, "partitions", _place)
    return await _asked(request, Operation.COMMITTED, partitions=partitions)


async def seek(request: web.Request) -> web.Response:
    """`offsets`, and as in Confluent's newer versions `timestamps`."""
    document = await _object(request)
    _refuse_keys(document, "offsets", "timestamps")
    if not document:
        raise ApiError(422, '"offsets" is missing')
    offsets = _rows(document, "offsets", _seek_row) if "offsets" in document else []
    timestamps = _rows(document, "timestamps", _time_row) if "timestamps" in document else []
    return await _asked(request, Operation.SEEK, offsets=offsets, timestamps=timestamps)


async def seek_to_beginning(request: web.Request) -> web.Response:
    return await _seek_to(request, Operation.SEEK_TO_BEGINNING)


async def seek_to_end(request: web.Request) -> web.Response:
    return await _seek_to(request, Operation.SEEK_TO_END)


async def _seek_to(request: web.Request, operation: Operation) -> web.Response:
    document = await _object(request)
    _refuse_keys(document, "partitions")
    return await _asked(request, operation, partitions=_rows(document, "partitions", _place))


# Requests


def _call(request: web.Request, operation: Operation, **arguments: Any) -> Call:
    return Call(operation, request.match_info["group"], request.match_info["instance"], arguments)


async def _asked(request: web.Request, operation: Operation, **arguments: Any) -> web.Response:
    require_accept(request, V2_TYPE, JSON_TYPE, *(one.media_type for one in Format))
    answer = await request.app[FINDING].ask(_call(request, operation, **arguments))
    if answer.document is None:
        return web.Response(status=204)
    return v2_response(request, answer.document)


async def _document(request: web.Request) -> Any:
    """None when there is no body; then no type is asked for either."""
    body = await read_body(request)
    if not body.strip():
        return None
    require_control_type(request)
    return json_document(body)


async def _object(request: web.Request) -> Row:
    document = await _document(request)
    if document is None:
        raise ApiError(400, "the body is missing")
    if not isinstance(document, dict):
        raise ApiError(422, "the body is no JSON object")
    return document


def _refuse_keys(document: Row, *known: str) -> None:
    unknown = sorted(document.keys() - set(known))
    if unknown:
        raise ApiError(422, f"unknown key {unknown[0][:80]!r}; known here: {', '.join(known)}")


def _rows(document: Row, name: str, row_of: Callable[[Row, str], list[Any]]) -> list[list[Any]]:
    items = document.get(name)
    if not isinstance(items, list):
        raise ApiError(422, f'"{name}" is missing or no array')
    found = []
    for number, item in enumerate(items):
        what = f"{name}[{number}]"
        if not isinstance(item, dict):
            raise ApiError(422, f"{what} is no JSON object")
        found.append(row_of(item, what))
    return found


def _place(item: Row, what: str) -> list[Any]:
    topic = item.get("topic")
    if not isinstance(topic, str) or not topic:
        raise ApiError(422, f'{what}: "topic" is missing or no text')
    return [topic, _needed(item, "partition", what, _INT32_MAX)]


def _seek_row(item: Row, what: str) -> list[Any]:
    return [*_place(item, what), _needed(item, "offset", what, _INT64_MAX)]


def _time_row(item: Row, what: str) -> list[Any]:
    return [*_place(item, what), _needed(item, "timestamp", what, _INT64_MAX)]


def _commit_row(item: Row, what: str) -> list[Any]:
    metadata = item.get("metadata")
    if metadata is not None and not isinstance(metadata, str):
        raise ApiError(422, f"{what}: metadata is no text")
    return [*_seek_row(item, what), metadata or ""]


def _needed(item: Row, name: str, what: str, largest: int) -> int:
    value = record_integer(item.get(name), f"{what}: {name}", largest)
    if value is None:
        raise ApiError(422, f'{what}: "{name}" is missing')
    return value
