"""An open request that writes records and is answered piece by piece, whatever the form of both.

What lines of JSON under `/api/v1` and the objects of Confluent's v3 have in common: the request is
read and its records are written while the answers to earlier ones leave, in their order; a client
that reads no answers is not read from; a node that stops takes no more and says so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TypeVar

from aiohttp import web

from ...metadata.image import TopicImage
from .bodies import max_body_bytes, worked
from .errors import ApiError, node_stopping
from .keys import ADMISSION, LEADERS, LEASE, NODE, OPEN
from .open_response import OpenResponse
from .ports import HttpNode
from .record_stream import RecordStream, SomeChunk
from .request_lines import RequestLines
from .writing import Batch, Outcome, send

Blocks = TypeVar("Blocks", bound=RequestLines)


class AnsweredStream:
    """One request to write into `topic`, answered by `answer`."""

    def __init__(
        self, request: web.Request, topic: TopicImage, acks: int, answer: OpenResponse
    ) -> None:
        self._request = request
        self._topic = topic
        self._acks = acks
        self._answer = answer
        self._max_batch = _max_batch_bytes(request.app[NODE], topic)

    def blocks(self, kind: type[Blocks]) -> Blocks:
        """The request's body, to be read in blocks of which each fits a batch."""
        return kind(
            self._request,
            max_line_bytes=max_body_bytes(self._request.app[NODE].max_message_bytes),
            block_bytes=self._max_batch // 2,
        )

    @contextmanager
    def open(self, blocks: RequestLines) -> Iterator[None]:
        """Within, the request counts among those that stay open and write. Raises ApiError 503."""
        app = self._request.app
        with app[ADMISSION].stream(self._request[LEASE]), app[OPEN].entered(blocks.end):
            yield

    async def run(
        self,
        blocks: RequestLines,
        chunks_of: Callable[[list[bytes]], list[SomeChunk]],
        render: Callable[[SomeChunk], bytes],
    ) -> ApiError | None:
        """Write everything and answer it. The first piece starts the answer; its end is the
        caller's. Returns why the rest of the request was not taken; None when all of it was.
        Raises ClientGone."""
        app = self._request.app
        room = app[ADMISSION].stream_bytes
        async with asyncio.TaskGroup() as tasks:
            stream = RecordStream[SomeChunk](
                self._write, room, tasks, max_batch_bytes=self._max_batch
            )
            try:
                reading = tasks.create_task(_read(blocks, chunks_of, stream))
                async for chunk in stream.decided():
                    await self._answer.start()
                    await self._answer.send(await worked(chunk.size, partial(render, chunk)))
                why = await reading
            finally:
                stream.close()
        if why is None and app[OPEN].stopping:
            why = node_stopping("send what has no answer yet to another node")
        return why

    async def _write(self, batch: Batch) -> Outcome:
        app = self._request.app
        outcomes = await send(app[NODE], app[LEADERS], self._topic, [batch], self._acks)
        return outcomes[batch.partition]


async def _read(
    blocks: RequestLines,
    chunks_of: Callable[[list[bytes]], list[SomeChunk]],
    stream: RecordStream[SomeChunk],
) -> ApiError | None:
    """Why the rest of the request is not read; None when all of it was."""
    try:
        async for block in blocks.blocks():
            for chunk in await worked(sum(map(len, block)), partial(chunks_of, block)):
                await stream.add(chunk)
    except ApiError as error:
        return error
    finally:
        stream.end()
    return None


def _max_batch_bytes(node: HttpNode, topic: TopicImage) -> int:
    """What the topic takes as one batch."""
    own = topic.configs.get("max.message.bytes")
    return node.max_message_bytes if own is None else int(own)
