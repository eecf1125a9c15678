"""The events of a tail, from whichever node answers (GET /api/v1/topics/{topic}/tail)."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

import aiohttp
import orjson

from .backoff import Backoff
from .deadline import Deadline
from .errors import Refused, TopicNotFound, Unreachable
from .transport import NOT_FOUND_SECONDS, Transport

LINES_TYPE = "application/x-ndjson"
HEARTBEAT_MS = 5_000
"""How often the node is asked to say that it is still there."""
SILENCE_SECONDS = 15.0
"""Three heartbeats: then it is not."""


class TailStream:
    """One connection after the other. `query` says where the next one shall begin."""

    def __init__(
        self,
        transport: Transport,
        path: str,
        query: Callable[[], Mapping[str, str]],
        patience: float,
    ) -> None:
        self._transport = transport
        self._path = path
        self._query = query
        self._patience = patience
        self._lines: _Lines | None = None
        self._outage: _Outage | None = None

    async def next_event(self) -> dict[str, Any]:
        """Raises Refused for an answer that another node would give, too; Unreachable or Refused
        when for `patience` seconds there was no event."""
        while True:
            url = self._transport.nodes.current
            try:
                if self._lines is None:
                    self._lines = await self._open(url)
                event = await self._lines.next_event()
                if event["event"] == "end":
                    # It stops, or the topic is gone: who is asked next says which.
                    raise Unreachable({url: f"the tail ended: {event['reason']}"})
            except (Unreachable, Refused) as error:
                self.close()
                if not error.retriable:
                    raise
                self._transport.nodes.failed(url)
                self._outage = self._outage or _Outage(self._transport, self._patience)
                await self._outage.wait(error)
            else:
                self._outage = None
                return event

    async def _open(self, url: str) -> _Lines:
        response = await self._transport.open_answer(
            url,
            self._path,
            params={**self._query(), "heartbeat": str(HEARTBEAT_MS)},
            accept=LINES_TYPE,
        )
        return _Lines(response, url)

    def close(self) -> None:
        """Leave the connection; the next event comes over another one."""
        if self._lines is not None:
            self._lines.close()
            self._lines = None


class _Lines:
    """Of one answer. Holds what one read of the socket brings, and a line that was broken off."""

    def __init__(self, response: aiohttp.ClientResponse, url: str) -> None:
        self._response = response
        self._url = url
        self._lines: deque[bytes] = deque()
        self._left = b""

    async def next_event(self) -> dict[str, Any]:
        """Raises Unreachable."""
        while not self._lines:
            *lines, self._left = (self._left + await self._read()).split(b"\n")
            self._lines.extend(lines)
        event: dict[str, Any] = orjson.loads(self._lines.popleft())
        return event

    async def _read(self) -> bytes:
        try:
            async with asyncio.timeout(SILENCE_SECONDS):
                data = await self._response.content.readany()
        except TimeoutError:
            raise Unreachable({self._url: "the tail has gone silent"}) from None
        except (aiohttp.ClientError, ConnectionError) as error:
            raise Unreachable({self._url: str(error)}) from error
        if not data:
            raise Unreachable({self._url: "the tail broke off"})
        return data

    def close(self) -> None:
        self._response.close()


class _Outage:
    """From the last event of one node to the first of another."""

    def __init__(self, transport: Transport, patience: float) -> None:
        self._until = Deadline.after(patience)
        self._believed = Deadline.after(NOT_FOUND_SECONDS)
        self._backoff = Backoff(transport.rng)
        self._reasons: dict[str, str] = {}

    async def wait(self, error: Unreachable | Refused) -> None:
        """Until another attempt; raises when it has lasted too long."""
        if isinstance(error, Unreachable):
            self._reasons |= error.reasons
        if isinstance(error, TopicNotFound) and self._believed.passed:
            raise error
        pause = self._backoff.next_wait()
        if pause >= self._until.left:
            raise Unreachable(self._reasons) if isinstance(error, Unreachable) else error
        await asyncio.sleep(pause)
