"""One connection to one node, one request at a time."""

from __future__ import annotations

import asyncio

from .primitives import Malformed, Reader, Writer
from .requests import VERSIONS, Api

CLIENT_ID = "jepsen-style"


class Connection:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._correlation_id = 0
        self._turn = asyncio.Lock()

    @classmethod
    async def open(cls, host: str, port: int) -> Connection:
        """Raises OSError: nothing was sent then."""
        return cls(*await asyncio.open_connection(host, port))

    async def ask(self, api: Api, body: Writer) -> Reader:
        """Raises OSError, EOFError or Malformed; the connection is of no use afterwards."""
        async with self._turn:
            self._correlation_id += 1
            frame = Writer().int16(api).int16(VERSIONS[api]).int32(self._correlation_id)
            frame.string(CLIENT_ID).data += body.data
            self._writer.write(len(frame.data).to_bytes(4, "big") + frame.data)
            await self._writer.drain()
            length = int.from_bytes(await self._reader.readexactly(4), "big")
            answer = Reader(await self._reader.readexactly(length))
            if answer.int32() != self._correlation_id:
                raise Malformed("the answer is to another request")
            return answer

    def close(self) -> None:
        self._writer.close()
