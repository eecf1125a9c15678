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

from typing import cast

from aiohttp import web

from ...metadata.image import TopicImage
from .answered_stream import AnsweredStream
from .errors import ApiError
from .keys import NODE, RNG
from .open_response import OpenResponse
from .partitioner import Partitioner
from .record_stream import Chunk, Part
from .records_in import LineItem, LineParser, RecordEncodings, RecordIn, RecordsIn
from .request_lines import RequestLines
from .verdicts import batch_verdict, error_verdict, json_line, verdict_lines
from .writing import partition_of

NDJSON_TYPE = "application/x-ndjson"


async def produce_lines(
    request: web.Request, topic: TopicImage, acks: int, encodings: RecordEncodings
) -> web.StreamResponse:
    answer = OpenResponse(request, NDJSON_TYPE)
    stream = AnsweredStream(request, topic, acks, answer)
    lines = stream.blocks(RequestLines)
    with stream.open(lines):
        await answer.start()
        with answer.to_the_end():
            chunks = _Chunks(request, topic, encodings)
            if (why := await stream.run(lines, chunks.of, rendered)) is not None:
                await answer.send(json_line({"ended": True, **why.document()}))
            await answer.finish()
    return answer.response


class _Chunks:
    """Lines of one request to chunks."""

    def __init__(self, request: web.Request, topic: TopicImage, encodings: RecordEncodings) -> None:
        self._node = request.app[NODE]
        self._topic = topic
        self._partitioner = Partitioner.of(topic, request.app[RNG])
        self._parser = LineParser(encodings)
        self._line = 0

    def of(self, block: list[bytes]) -> list[Chunk]:
        """A batch is a chunk of its own, what lies between two batches one, too."""
        now_ms = self._node.now_ms()
        items, all_plain = self._parser.block(block, self._line + 1, now_ms)
        self._line += len(block)
        self._partitioner.turn()
        if all_plain:
            # Neither keys nor partitions: they stay together.
            chunk = Chunk(sum(map(len, block)))
            chunk.add_all(cast(list[RecordIn], items), self._partitioner.partition_for(None))
            return [chunk]
        chunks: list[Chunk] = []
        for line, item in zip(block, items, strict=True):
            self._add(item, len(line), chunks)
        return chunks

    def _add(self, item: LineItem, size: int, chunks: list[Chunk]) -> None:
        if isinstance(item, RecordsIn):
            try:
                partition = partition_of(self._topic, item.records[0], self._partitioner)
            except ApiError as error:
                item = error
            else:
                chunk = Chunk(size, alone=True)
                chunk.add_batch(item.records, partition, item.producer)
                chunks.append(chunk)
                return
        if not chunks or chunks[-1].alone:
            chunks.append(Chunk(0))
        chunk = chunks[-1]
        chunk.size += size
        if isinstance(item, RecordIn):
            try:
                chunk.add(item, partition_of(self._topic, item, self._partitioner))
                return
            except ApiError as error:
                item = error
        chunk.refuse(item)


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
