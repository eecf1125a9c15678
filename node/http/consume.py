"""GET /api/v1/topics/{topic}/partitions/{partition}/records: read without a consumer group.

Stateless: the answer says where to go on (`next_offset`). Any node answers; the leader is asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

import orjson
from aiohttp import web

from ...metadata.image import TopicImage
from ...seam import frozen
from ...wire import ErrorCode, Records, WireError
from ...wire.compression import CompressionUnavailable
from ...wire.messages.fetch import FetchRequest, FetchResponse
from ...wire.messages.list_offsets import ListOffsetsRequest
from . import query
from .batches import FetchedRecords, decode, joined, size_of
from .bodies import worked
from .encodings import Encoding
from .errors import ApiError, from_kafka, no_partition
from .guards import JSON_TYPE, json_response
from .keys import ADMISSION, LEADERS, NODE
from .leaders import Leaders
from .media import require_accept
from .ports import HttpNode
from .produce_lines import NDJSON_TYPE
from .records_out import OutEncodings, record_document
from .topics import existing_topic

DEFAULT_MAX_BYTES = 1 << 20
LARGEST_MAX_BYTES = 8 << 20
LONGEST_WAIT_MS = 60_000
LARGEST_TAIL = 10_000
ANSWER_SECONDS = 10.0
"""Beside the wait that the client asked for."""

Result = TypeVar("Result")

_EARLIEST = -2
_LATEST = -1
_INT64_MAX = 2**63 - 1


@frozen
class _Wanted:
    """Where to read: exactly one of `offset`, `tail`, `timestamp_ms`, or the earliest record."""

    offset: int | None
    tail: int | None
    timestamp_ms: int | None
    max_bytes: int
    wait_ms: int
    encodings: OutEncodings


@frozen
class _Partition:
    """The partition that is read, and how its leader is found."""

    node: HttpNode
    leaders: Leaders
    topic: TopicImage
    partition: int

    async def ask_leader(self, read: Callable[[int], Awaitable[Result]]) -> Result:
        give_up_at = self.leaders.give_up_at()
        return await self.leaders.reading(self.topic.name, self.partition, read, give_up_at)


@frozen
class _Answer:
    """What the leader said, decoded."""

    leader: int
    log_start_offset: int
    high_watermark: int
    last_stable_offset: int
    fetched: FetchedRecords


async def fetch_records(request: web.Request) -> web.Response:
    wanted = _wanted(request.query)
    partition = _partition(request)
    loop = asyncio.get_running_loop()
    # The batches as fetched, decoded and as JSON.
    with request.app[ADMISSION].memory(4 * wanted.max_bytes):
        until = loop.time() + wanted.wait_ms / 1000
        offset = await _start_offset(partition, wanted, until + ANSWER_SECONDS)
        answer = await _fetch_until(partition, wanted, offset, until)
        as_lines = require_accept(request, JSON_TYPE, NDJSON_TYPE) == NDJSON_TYPE
        size = sum(map(size_of, answer.fetched.records))
        return await worked(size, lambda: _response(partition, wanted, answer, as_lines=as_lines))


def _wanted(parameters: Mapping[str, str]) -> _Wanted:
    query.refuse_unknown(
        parameters,
        "offset",
        "tail",
        "timestamp",
        "max_bytes",
        "wait",
        "format",
        "key_encoding",
        "value_encoding",
        "header_encoding",
    )
    if sum(name in parameters for name in ("offset", "tail", "timestamp")) > 1:
        raise ApiError(400, "offset, tail and timestamp exclude each other")
    return _Wanted(
        offset=query.whole_number(parameters, "offset", largest=_INT64_MAX),
        tail=query.whole_number(parameters, "tail", largest=LARGEST_TAIL),
        timestamp_ms=query.whole_number(parameters, "timestamp", largest=_INT64_MAX),
        max_bytes=query.whole_number(parameters, "max_bytes", largest=LARGEST_MAX_BYTES)
        or DEFAULT_MAX_BYTES,
        wait_ms=query.duration_ms(parameters, "wait", largest_ms=LONGEST_WAIT_MS),
        encodings=out_encodings(parameters),
    )


def out_encodings(parameters: Mapping[str, str]) -> OutEncodings:
    """`format` is the default of all three."""
    default = Encoding.named(parameters.get("format", Encoding.STRING), "format")
    key, value, header = (
        Encoding.named(parameters.get(name, default), name)
        for name in ("key_encoding", "value_encoding", "header_encoding")
    )
    return OutEncodings(key, value, header)


def _partition(request: web.Request) -> _Partition:
    node = request.app[NODE]
    topic = existing_topic(node, request.match_info["topic"])
    number = partition_number(topic, request.match_info["partition"])
    return _Partition(node, request.app[LEADERS], topic, number)


def partition_number(topic: TopicImage, text: str) -> int:
    """As a path names it. Raises ApiError 404."""
    if not (text.isascii() and text.isdigit()) or len(text) > 10:
        raise ApiError(
            404,
            f"{text[:40]!r} is no partition number",
            error_code=40402,
            kafka_error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        )
    number = int(text)
    if number >= len(topic.partitions):
        raise no_partition(topic.name, number, len(topic.partitions))
    return number


async def _start_offset(partition: _Partition, wanted: _Wanted, deadline: float) -> int:
    if wanted.offset is not None:
        return wanted.offset
    if wanted.timestamp_ms is not None:
        found = await _offset_at(partition, wanted.timestamp_ms, deadline)
        # Nothing that young yet: the records to come are.
        return found if found >= 0 else await _offset_at(partition, _LATEST, deadline)
    earliest = await _offset_at(partition, _EARLIEST, deadline)
    if wanted.tail is None:
        return earliest
    return max(earliest, await _offset_at(partition, _LATEST, deadline) - wanted.tail)


async def _offset_at(partition: _Partition, timestamp: int, deadline: float) -> int:
    where = ListOffsetsRequest.ListOffsetsPartition(
        partition_index=partition.partition, timestamp=timestamp
    )
    topic = ListOffsetsRequest.ListOffsetsTopic(name=partition.topic.name, partitions=[where])
    request = ListOffsetsRequest(replica_id=-1, topics=[topic])

    async def read(leader: int) -> int:
        response = await partition.node.list_offsets(leader, request, deadline)
        found = response.topics[0].partitions[0]
        if found.error_code:
            raise from_kafka(found.error_code)
        return found.offset

    return await partition.ask_leader(read)


async def _fetch_until(
    partition: _Partition, wanted: _Wanted, offset: int, until: float
) -> _Answer:
    """The leader waits for records until `until`. Batches that hold none to show (control batches,
    or records below `offset` only) are passed over."""
    loop = asyncio.get_running_loop()
    while True:
        wait_ms = max(0, int((until - loop.time()) * 1000))
        answer = await _fetch_once(partition, wanted, offset, wait_ms, until + ANSWER_SECONDS)
        if answer.fetched.records or answer.fetched.next_offset <= offset:
            return answer
        offset = answer.fetched.next_offset


async def _fetch_once(
    partition: _Partition, wanted: _Wanted, offset: int, wait_ms: int, deadline: float
) -> _Answer:
    where = FetchRequest.FetchPartition(
        partition=partition.partition, fetch_offset=offset, partition_max_bytes=wanted.max_bytes
    )
    request = FetchRequest(
        max_wait_ms=wait_ms,
        min_bytes=1,
        max_bytes=wanted.max_bytes,
        topics=[
            FetchRequest.FetchTopic(
                topic=partition.topic.name, topic_id=partition.topic.topic_id, partitions=[where]
            )
        ],
    )

    async def read(leader: int) -> tuple[int, FetchResponse]:
        response = await partition.node.fetch(leader, request, deadline)
        error = response.error_code or response.responses[0].partitions[0].error_code
        if error:
            raise from_kafka(error)
        return leader, response

    leader, response = await partition.ask_leader(read)
    answer = response.responses[0].partitions[0]
    return _Answer(
        leader=leader,
        log_start_offset=answer.log_start_offset,
        high_watermark=answer.high_watermark,
        last_stable_offset=answer.last_stable_offset,
        fetched=await decoded(answer.records, offset),
    )


async def decoded(records: Records, offset: int) -> FetchedRecords:
    data = joined(records)
    try:
        return await worked(len(data), lambda: decode(data, offset))
    except CompressionUnavailable as error:
        raise ApiError(
            501,
            f"these records cannot be unpacked: {error}",
            hint="pip install logboat[compression]",
        ) from None
    except WireError as error:
        # Brokers take compressed batches unopened, so a producer can have stored nonsense.
        raise ApiError(500, f"a batch cannot be decoded: {error}", error_code=50002) from None


def _response(
    partition: _Partition, wanted: _Wanted, answer: _Answer, *, as_lines: bool
) -> web.Response:
    documents = [record_document(record, wanted.encodings) for record in answer.fetched.records]
    if as_lines:
        lines = b"".join(orjson.dumps(document) + b"\n" for document in documents)
        headers = {
            "X-Logboat-Next-Offset": str(answer.fetched.next_offset),
            "X-Logboat-High-Watermark": str(answer.high_watermark),
        }
        return web.Response(body=lines, content_type=NDJSON_TYPE, headers=headers)
    return json_response(
        {
            "topic": partition.topic.name,
            "partition": partition.partition,
            "leader": answer.leader,
            "log_start_offset": answer.log_start_offset,
            "high_watermark": answer.high_watermark,
            "last_stable_offset": answer.last_stable_offset,
            "next_offset": answer.fetched.next_offset,
            "key_encoding": wanted.encodings.key,
            "value_encoding": wanted.encodings.value,
            "header_encoding": wanted.encodings.header,
            "records": documents,
        }
    )
