"""One connection with many requests on their way, answered in the order in which they were sent."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import NamedTuple

from .cluster import NoAnswer
from .connection import CLIENT_ID
from .primitives import Malformed, Reader, Writer
from .requests import FLEXIBLE, VERSIONS, Api

LENGTH_BYTES = 4


class _Asked(NamedTuple):
    correlation_id: int
    answer: asyncio.Future[Reader]
    deadline: asyncio.TimerHandle


class Pipeline(asyncio.Protocol):
    """An answer is a Reader, NoAnswer when the connection ends before it came, or Malformed when it
    is to another request. One answer that is late ends the connection, and all the others with it,
    as it does in Java's client and librdkafka: what was sent may still be carried out."""

    def __init__(self) -> None:
        self._transport: asyncio.WriteTransport | None = None
        self._asked: deque[_Asked] = deque()
        self._received = bytearray()
        self._correlation_id = 0
        self.closed = False

    @classmethod
    async def open(cls, host: str, port: int) -> Pipeline:
        """Raises OSError."""
        loop = asyncio.get_running_loop()
        return (await loop.create_connection(cls, host, port))[1]

    def ask(self, api: Api, body: Writer, *, within: float) -> asyncio.Future[Reader]:
        """In the turn of the call, behind all that was asked before. `within`: seconds."""
        assert api not in FLEXIBLE
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Reader] = loop.create_future()
        if self.closed or self._transport is None:
            answer.set_exception(NoAnswer("the connection has ended"))
            return answer
        self._correlation_id += 1
        frame = Writer().int16(api).int16(VERSIONS[api]).int32(self._correlation_id)
        frame.string(CLIENT_ID)
        frame.data += body.data
        deadline = loop.call_later(within, self._end, NoAnswer("no answer in time"))
        self._asked.append(_Asked(self._correlation_id, answer, deadline))
        self._transport.write(len(frame.data).to_bytes(LENGTH_BYTES, "big") + frame.data)
        return answer

    def close(self) -> None:
        self._end(NoAnswer("closed"))

    def _end(self, error: NoAnswer | Malformed) -> None:
        self.closed = True
        if self._transport is not None:
            self._transport.close()
        while self._asked:
            asked = self._asked.popleft()
            asked.deadline.cancel()
            if not asked.answer.done():
                asked.answer.set_exception(error)

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.WriteTransport)
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        self._end(NoAnswer(str(exc or "the connection was closed")))

    def data_received(self, data: bytes) -> None:
        self._received += data
        while len(self._received) >= LENGTH_BYTES and not self.closed:
            end = LENGTH_BYTES + int.from_bytes(self._received[:LENGTH_BYTES], "big")
            if len(self._received) < end:
                return
            frame = bytes(self._received[LENGTH_BYTES:end])
            del self._received[:end]
            self._answered(Reader(frame))

    def _answered(self, reader: Reader) -> None:
        correlation_id = reader.int32()
        if not self._asked or self._asked[0].correlation_id != correlation_id:
            self._end(Malformed("the answer is to another request"))
            return
        asked = self._asked.popleft()
        asked.deadline.cancel()
        if not asked.answer.done():
            asked.answer.set_result(reader)
