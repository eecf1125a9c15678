"""v3: records as a stream, POST .../records, and a few at once, POST .../records:batch.

The stream is objects of JSON one after the other; each is answered by an object, in their order, as
soon as it and all before it are decided, while the request is still open. The status is 200 as soon
as one of them is; before that an error has its own. An object `error_code` other than 200 is the
fate of its record alone. What is no JSON ends the stream, and so does the node when it stops: the
last object says so then, and records without an object before it were not taken. After a broken
connection those may have been written.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import orjson
from aiohttp import web

from ....metadata.image import TopicImage
from ..answered_stream import AnsweredStream
from ..bodies import body_size_bound
from ..errors import ApiError
from ..guards import json_response
from ..json_objects import RequestObjects
from ..keys import ADMISSION, LEADERS, NODE, RNG
from ..media import JSON_TYPE, content_type, require_accept
from ..open_response import OpenResponse
from ..partitioner import Partitioner
from ..record_stream import Chunk
from ..writing import assigned, encoded, partition_of, send
from .records import TypedRecord, parse_record, receipt, record_of, refusal
from .resources import Document, Resources, object_in_body

ACKS_ALL = -1

MAX_ENTRIES = 1_000
MAX_ENTRY_ID = 80


async def produce(request: web.Request) -> web.StreamResponse:
    resources = Resources(request)
    topic = resources.topic(request)
    _require_json(request)
    require_accept(request, JSON_TYPE)
    answer = OpenResponse(request, JSON_TYPE)
    stream = AnsweredStream(request, topic, ACKS_ALL, answer)
    objects = stream.blocks(RequestObjects)
    chunks = _Chunks(request, topic)
    render = partial(_rendered, resources.cluster_id, topic)
    with stream.open(objects), answer.to_the_end():
        why = await stream.run(objects, chunks.of, render)
        if answer.started:
            if why is not None:
                await answer.send(orjson.dumps(refusal(why)) + b"\n")
            await answer.finish()
    if not answer.started:
        raise why or ApiError(400, "there are no records in the body")
    return answer.response


class _TypedChunk(Chunk):
    """Remembers in which types its records were sent."""

    __slots__ = ("typed",)

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.typed: list[TypedRecord | None] = []
        """By position; None: refused."""


class _Chunks:
    """Objects of one request to chunks."""

    def __init__(self, request: web.Request, topic: TopicImage) -> None:
        self._node = request.app[NODE]
        self._topic = topic
        self._partitioner = Partitioner.of(topic, request.app[RNG])

    def of(self, block: list[bytes]) -> list[_TypedChunk]:
        now_ms = self._node.now_ms()
        self._partitioner.turn()
        chunk = _TypedChunk(sum(map(len, block)))
        for text in block:
            try:
                typed = parse_record(text, now_ms)
                partition = partition_of(self._topic, typed.record, self._partitioner)
            except ApiError as error:
                chunk.refuse(error)
                chunk.typed.append(None)
            else:
                chunk.add(typed.record, partition)
                chunk.typed.append(typed)
        return [chunk]


def _rendered(cluster_id: str, topic: TopicImage, chunk: _TypedChunk) -> bytes:
    lines = [b""] * chunk.count
    for part in chunk.parts.values():
        assert part.outcome is not None
        for number, position in enumerate(part.positions):
            typed = chunk.typed[position]
            assert typed is not None
            place = part.first + number
            document = receipt(cluster_id, topic, typed, part.partition, place, part.outcome)
            lines[position] = orjson.dumps(document) + b"\n"
    for position, error in chunk.refused:
        lines[position] = orjson.dumps(refusal(error)) + b"\n"
    return b"".join(lines)


async def produce_batch(request: web.Request) -> web.Response:
    """207: `successes` and `failures`, each with the id of its entry."""
    resources = Resources(request)
    topic = resources.topic(request)
    # The body, its parsed form and the encoded batches live side by side for a moment.
    with request.app[ADMISSION].memory(3 * body_size_bound(request)):
        entries = _entries(await object_in_body(request))
        now_ms = resources.node.now_ms()
        failures: list[Document] = []
        typed: list[tuple[str, TypedRecord]] = []
        for entry_id, entry in entries:
            try:
                found = record_of(entry, now_ms, also=frozenset({"id"}))
                partition_of(topic, found.record, Partitioner.of(topic, request.app[RNG]))
            except ApiError as error:
                failures.append({"id": entry_id, **refusal(error)})
            else:
                typed.append((entry_id, found))
        records = [one.record for _, one in typed]
        batches = encoded(records, assigned(topic, records, request.app[RNG]))
        outcomes = await send(resources.node, request.app[LEADERS], topic, batches, ACKS_ALL)
    successes: list[Document] = []
    for batch in batches:
        outcome = outcomes[batch.partition]
        for place, position in enumerate(batch.positions):
            entry_id, one = typed[position]
            document = receipt(resources.cluster_id, topic, one, batch.partition, place, outcome)
            if isinstance(outcome, ApiError):
                failures.append({"id": entry_id, **document})
            else:
                del document["error_code"]
                successes.append({"id": entry_id, **document})
    return json_response({"successes": successes, "failures": failures}, status=207)


def _entries(document: Document) -> list[tuple[str, Any]]:
    """Raises ApiError 422, 42208."""
    items = document.get("entries")
    if not isinstance(items, list) or not items:
        raise _bad_batch('"entries" is missing or no array of records')
    if len(items) > MAX_ENTRIES:
        raise _bad_batch(f'"entries" are {len(items)}, and at most {MAX_ENTRIES} are taken')
    found: dict[str, Any] = {}
    for item in items:
        entry_id = item.get("id") if isinstance(item, dict) else None
        if not isinstance(entry_id, str) or not 0 < len(entry_id) <= MAX_ENTRY_ID:
            raise _bad_batch(f'an entry has no "id" of 1 to {MAX_ENTRY_ID} characters')
        if entry_id in found:
            raise _bad_batch(f"two entries have the id {entry_id!r}")
        found[entry_id] = item
    return list(found.items())


def _bad_batch(sentence: str) -> ApiError:
    return ApiError(422, sentence, error_code=42208)


def _require_json(request: web.Request) -> None:
    if content_type(request) != JSON_TYPE:
        raise ApiError(415, "Content-Type is not application/json", hint=f"send {JSON_TYPE}")
