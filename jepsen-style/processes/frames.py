"""Streams cut into pieces of which the first of each Kafka frame is marked with its API key."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from typing import NamedTuple

from ..schedule import sealed_frames as sealed

PIECE_BYTES = 64 * 1024
_LENGTH = 4
_REQUEST_HEAD = 8
"""API key, version, correlation id."""
_ANSWER_HEAD = 4
"""Correlation id."""

MAX_UNANSWERED = 10_000
"""Requests of one connection; those that want no answer (acks=0) stay among them."""


class Piece(NamedTuple):
    data: bytes
    begins: bool = False
    """Whether a frame begins here."""
    api: int | None = None
    """Of the frame that it belongs to, where that is known."""


class Conversation:
    """Which API each answer of one connection belongs to."""

    def __init__(self) -> None:
        self._asked: dict[int, int] = {}
        """Correlation id -> API key."""

    async def requests(self, reader: asyncio.StreamReader) -> AsyncIterator[Piece]:
        """To the end of the stream; a frame that breaks off is handed on as far as it came."""
        while (prefix := await _exactly(reader, _LENGTH + _REQUEST_HEAD)) is not None:
            api = int.from_bytes(prefix[_LENGTH : _LENGTH + 2], "big")
            if len(self._asked) >= MAX_UNANSWERED:
                self._asked.pop(next(iter(self._asked)))
            self._asked[int.from_bytes(prefix[-4:], "big")] = api
            async for piece in _frame(reader, prefix, api):
                yield piece

    async def answers(self, reader: asyncio.StreamReader) -> AsyncIterator[Piece]:
        while (prefix := await _exactly(reader, _LENGTH + _ANSWER_HEAD)) is not None:
            api = self._asked.pop(int.from_bytes(prefix[_LENGTH:], "big"), None)
            async for piece in _frame(reader, prefix, api):
                yield piece


class SealedConversation:
    """The same on a connection between nodes, whose answers come in the order of the requests."""

    def __init__(self, hello: bytes) -> None:
        """`hello`: the dialer's first message, with its length."""
        self._asked: deque[int] = deque()
        self._has_kafka_frames = sealed.service_of(hello[_LENGTH:]) == sealed.KAFKA

    async def requests(self, reader: asyncio.StreamReader) -> AsyncIterator[Piece]:
        """All that comes after the hello."""
        async for piece in _messages(reader, sealed.DIALER_MESSAGES - 1):
            yield piece
        if not self._has_kafka_frames:
            async for piece in pieces(reader):
                yield piece
        while (prefix := await _exactly(reader, sealed.API_ENDS_AT)) is not None:
            api = sealed.api_of(prefix)
            self._asked.append(api)
            async for piece in _frame(reader, prefix, api, uncounted=sealed.SEAL_BYTES):
                yield piece

    async def answers(self, reader: asyncio.StreamReader) -> AsyncIterator[Piece]:
        async for piece in _messages(reader, sealed.LISTENER_MESSAGES):
            yield piece
        if not self._has_kafka_frames:
            async for piece in pieces(reader):
                yield piece
        while (prefix := await _exactly(reader, _LENGTH)) is not None:
            api = self._asked.popleft() if self._asked else None
            async for piece in _frame(reader, prefix, api, uncounted=sealed.SEAL_BYTES):
                yield piece


async def _messages(reader: asyncio.StreamReader, count: int) -> AsyncIterator[Piece]:
    for _ in range(count):
        prefix = await _exactly(reader, _LENGTH)
        if prefix is None:
            return
        async for piece in _frame(reader, prefix, None):
            yield piece


async def pieces(reader: asyncio.StreamReader) -> AsyncIterator[Piece]:
    """A stream of which nothing is known."""
    while data := await reader.read(PIECE_BYTES):
        yield Piece(data, begins=True)


async def _frame(
    reader: asyncio.StreamReader, prefix: bytes, api: int | None, *, uncounted: int = 0
) -> AsyncIterator[Piece]:
    """`uncounted`: bytes behind the length that it leaves out."""
    left = int.from_bytes(prefix[:_LENGTH], "big") + uncounted - (len(prefix) - _LENGTH)
    first = await _up_to(reader, min(left, PIECE_BYTES))
    yield Piece(prefix + first, begins=True, api=api)
    left -= len(first)
    while left > 0 and (data := await _up_to(reader, min(left, PIECE_BYTES))):
        yield Piece(data, api=api)
        left -= len(data)


async def _up_to(reader: asyncio.StreamReader, count: int) -> bytes:
    try:
        return await reader.readexactly(max(0, count))
    except asyncio.IncompleteReadError as error:
        return error.partial


async def _exactly(reader: asyncio.StreamReader, count: int) -> bytes | None:
    data = await _up_to(reader, count)
    return data if len(data) == count else None
