"""A tiny Kafka client for tests: frames over one socket, raw bytes on request."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Self, TypeVar

from logboat.wire import (
    ApiKey,
    Buffer,
    Message,
    RequestHeader,
    api,
    decode_response,
    encode_request,
)

Response = TypeVar("Response", bound=Message)

ANSWER_S = 30.0


class WireClient:
    """One connection. Every wait is bounded by `ANSWER_S`."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._correlation_id = 0

    @classmethod
    async def connect(cls, port: int) -> WireClient:
        return cls(*await asyncio.open_connection("127.0.0.1", port))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._writer.transport.abort()

    def write(self, *parts: Buffer) -> None:
        self._writer.writelines(parts)

    async def drain(self) -> None:
        await asyncio.wait_for(self._writer.drain(), ANSWER_S)

    def send(
        self, request: Message, version: int, *, client_id: str | None = "test"
    ) -> RequestHeader:
        """Send a request and return its header, by which the answer is decoded."""
        name = type(request).__name__.removesuffix("Request")
        key = next(key for key in ApiKey if api(key).name == name)
        self._correlation_id += 1
        header = RequestHeader(
            api_key=key,
            api_version=version,
            correlation_id=self._correlation_id,
            client_id=client_id,
        )
        self.write(framed(b"".join(encode_request(header, request))))
        return header

    async def receive(self, header: RequestHeader, kind: type[Response]) -> Response:
        response = decode_response(header, await self.read_frame())
        assert isinstance(response, kind)
        return response

    async def ask(self, request: Message, version: int, kind: type[Response]) -> Response:
        return await self.receive(self.send(request, version), kind)

    async def read_frame(self) -> bytes:
        async with asyncio.timeout(ANSWER_S):
            length = int.from_bytes(await self._reader.readexactly(4), "big")
            return await self._reader.readexactly(length)

    async def is_closed(self, within_s: float = ANSWER_S) -> bool:
        """Whether the other side ends the connection in time, without a further byte."""
        try:
            async with asyncio.timeout(within_s):
                return await self._reader.read(1) == b""
        except ConnectionError:
            return True
        except TimeoutError:
            return False


def framed(request: Buffer) -> bytes:
    return len(request).to_bytes(4, "big") + bytes(request)
