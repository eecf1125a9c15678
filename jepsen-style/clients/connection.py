"""One connection to one node, one request at a time."""

from __future__ import annotations

import asyncio

from .primitives import Malformed, Reader, Writer
from .requests import FLEXIBLE, VERSIONS, Api

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

    async def ask(self, api: Api, body: Writer, version: int | None = None) -> Reader:
        """`version`: another one than usual. Raises OSError, EOFError or Malformed; the connection
        is of no use afterwards."""
        version = VERSIONS[api] if version is None else version
        flexible = api in FLEXIBLE and version >= FLEXIBLE[api]
        async with self._turn:
            self._correlation_id += 1
            frame = Writer().int16(api).int16(version).int32(self._correlation_id)
            frame.string(CLIENT_ID)
            if flexible:
                frame.no_tags()
            frame.data += body.data
            self._writer.write(len(frame.data).to_bytes(4, "big") + frame.data)
            await self._writer.drain()
            length = int.from_bytes(await self._reader.readexactly(4), "big")
            answer = Reader(await self._reader.readexactly(length))
            if answer.int32() != self._correlation_id:
                raise Malformed("the answer is to another request")
            if flexible:
                answer.tags()
            return answer

    def close(self) -> None:
        self._writer.close()
