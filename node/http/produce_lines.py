"""POST /api/v1/topics/{topic}/records with lines of JSON: verdicts while the request is open.

A line is a record, or a batch: an object with `records`, `partition` and, if its sender wants
repetitions to be recognised, `producer_id`, `producer_epoch` and `base_sequence`. A batch stands in
the log exactly as it was sent and has one verdict; records are gathered into batches here.

The status is 200 as soon as the topic and the parameters are good; from then on each line has its
own verdict, in the order of the lines, also a line that is no JSON. A last line with `"ended"` says
why the node takes no more lines, when it was not the client who ended the request: lines without a
verdict before it were not taken. After a broken connection they may have been written.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial

from aiohttp import web

from ...metadata.image import TopicImage
from .bodies import max_body_bytes, worked
from .errors import ApiError
from .keys import ADMISSION, LEADERS, NODE, OPEN, RNG
from .open_response import ClientGone, OpenResponse
from .partitioner import Partitioner
from .ports import HttpNode
from .record_stream import Chunk, Part, RecordStream
from .records_in import RecordEncodings, RecordIn, line_of
from .request_lines import RequestLines
from .verdicts import batch_verdict, error_verdict, json_line, verdict_lines
from .writing import Batch, Outcome, partition_of, send

log = logging.getLogger(__name__)

NDJSON_TYPE = "application/x-ndjson"


async def produce_lines(
    request: web.Request, topic: TopicImage, acks: int, encodings: RecordEncodings
) -> web.StreamResponse:
    node, leaders, admission = request.app[NODE], request.app[LEADERS], request.app[ADMISSION]
    max_batch = max_batch_bytes(node, topic)
    lines = RequestLines(
        request,
        max_line_bytes=max_body_bytes(node.max_message_bytes),
        block_bytes=max_batch // 2,
    )
    answer = OpenResponse(request, NDJSON_TYPE)

    async def write(batch: Batch) -> Outcome:
        return (await send(node, leaders, topic, [batch], acks))[batch.partition]

    with admission.stream(), request.app[OPEN].entered(lines.end):
        await answer.start()
        try:
            async with asyncio.TaskGroup() as tasks:
                stream = RecordStream(
                    write,
                    admission.stream_bytes,
                    tasks,
                    max_batch_bytes=max_batch,
                )
                try:
                    reading = tasks.create_task(_read(request, topic, lines, stream, encodings))
                    async for chunk in stream.decided():
                        await answer.send(await worked(chunk.size, partial(rendered, chunk)))
                    if (why := reading.result()) is not None:
                        await answer.send(json_line({"ended": True, **why.document()}))
                    elif request.app[OPEN].stopping:
                        await answer.send(json_line({"ended": True, **_stopping().document()}))
                    await answer.finish()
                finally:
                    stream.close()
        except* (ClientGone, OSError) as gone:
            # What it was not told may have been written; it has to assume so.
            log.debug("a producer of %s is gone: %s", topic.name, gone.exceptions[0])
            answer.cut()
    return answer.response


async def _read(
    request: web.Request,
    topic: TopicImage,
    lines: RequestLines,
    stream: RecordStream,
    encodings: RecordEncodings,
) -> ApiError | None:
    """Why the rest of the request is not read; None when all of it was."""
    chunks = _Chunks(request, topic, encodings)
    try:
        async for block in lines.blocks():
            for chunk in await worked(sum(map(len, block)), partial(chunks.of, block)):
                await stream.add(chunk)
    except ApiError as error:
        return error
    finally:
        stream.end()
    return None


class _Chunks:
    """Lines of one request to chunks."""

    def __init__(self, request: web.Request, topic: TopicImage, encodings: RecordEncodings) -> None:
        self._node = request.app[NODE]
        self._topic = topic
        self._partitioner = Partitioner.of(topic, request.app[RNG])
        self._encodings = encodings
        self._line = 0

    def of(self, block: list[bytes]) -> list[Chunk]:
        """A batch is a chunk of its own, what lies between two batches one, too."""
        now_ms = self._node.now_ms()
        chunks: list[Chunk] = []
        chunk: Chunk | None = None
        for line in block:
            self._line += 1
            try:
                found = line_of(line, self._line, self._encodings, now_ms)
                record = found if isinstance(found, RecordIn) else found.records[0]
                partition = partition_of(self._topic, record, self._partitioner)
            except ApiError as error:
                chunk = chunk or _opened(chunks)
                chunk.refuse(error)
            else:
                if isinstance(found, RecordIn):
                    chunk = chunk or _opened(chunks)
                    chunk.add(found, partition)
                else:
                    own = Chunk(len(line), alone=True)
                    own.add_batch(found.records, partition, found.producer)
                    chunks.append(own)
                    chunk = None
                    continue
            chunk.size += len(line)
        self._partitioner.turn()
        return chunks


def _opened(chunks: list[Chunk]) -> Chunk:
    chunk = Chunk(0)
    chunks.append(chunk)
    return chunk


def rendered(chunk: Chunk) -> bytes:
    """The verdicts of a decided chunk, in the order of its lines."""
    parts = list(chunk.parts.values())
    if chunk.alone:
        part = parts[0]
        assert part.outcome is not None
        return json_line(batch_verdict(part.outcome, part.partition, len(part.records)))
    if len(parts) == 1 and not chunk.refused:
        return b"".join(_lines(parts[0]))
    lines = [b""] * chunk.count
    for part in parts:
        for position, line in zip(part.positions, _lines(part), strict=True):
            lines[position] = line
    for position, error in chunk.refused:
        lines[position] = json_line(error_verdict(error, None))
    return b"".join(lines)


def _lines(part: Part) -> list[bytes]:
    assert part.outcome is not None
    return list(verdict_lines(part.outcome, part.partition, part.first, part.records))


def max_batch_bytes(node: HttpNode, topic: TopicImage) -> int:
    """What the topic takes as one batch."""
    own = topic.configs.get("max.message.bytes")
    return node.max_message_bytes if own is None else int(own)


def _stopping() -> ApiError:
    return ApiError(
        503,
        "this node is stopping",
        error_code=50302,
        retriable=True,
        hint="send the lines that have no verdict to another node",
    )
