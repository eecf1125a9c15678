"""Requests to whichever node answers, until one does or the deadline comes."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from http import HTTPStatus
from random import Random
from typing import Any

import aiohttp
import orjson

from .answers import as_error, retry_after
from .backoff import Backoff
from .deadline import Deadline
from .errors import (
    ClientError,
    Closed,
    DeadlineExceeded,
    ForkedProcess,
    OutcomeUnknown,
    TopicNotFound,
    Unreachable,
)
from .nodes import Nodes

CONNECTIONS = 100
CONNECT_SECONDS = 3.0
ATTEMPT_SECONDS = 10.0
"""A node that says nothing for so long is given up for another one, where that is harmless."""
NOT_FOUND_SECONDS = 1.0
"""After which nodes that know no such topic are believed: until then they may only not have heard
of it yet."""
JSON_TYPE = "application/json"


class Repeat(Enum):
    """May the call be made again when its answer was lost?"""

    SAFELY = auto()
    """It only reads, or its repetition is recognised."""
    NEVER = auto()
    """Only after an answer, or a refused connection, that says it was not carried out."""


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes
    node: str

    @property
    def document(self) -> Any:
        """The JSON in it; None for an empty body, the text when it is no JSON."""
        if not self.body:
            return None
        try:
            return orjson.loads(self.body)
        except orjson.JSONDecodeError:
            return self.body.decode("utf-8", "replace")


class Transport:
    """Of one client. `open` inside a running loop, `close` in the same."""

    def __init__(self, nodes: Nodes, rng: Random) -> None:
        self.nodes = nodes
        self.rng = rng
        self._session: aiohttp.ClientSession | None = None
        self._pid = 0

    async def open(self) -> None:
        self._pid = os.getpid()
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=CONNECTIONS),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS),
        )

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    @property
    def session(self) -> aiohttp.ClientSession:
        """Raises Closed, ForkedProcess."""
        if self._session is None:
            raise Closed("the client is not open", hint="use it inside `async with Client(...)`")
        if os.getpid() != self._pid:
            raise ForkedProcess("this client was made before a fork", hint="make one in each child")
        return self._session

    async def call(
        self,
        method: str,
        path: str,
        *,
        deadline: Deadline,
        repeat: Repeat,
        json: Any = None,
        body: bytes | None = None,
        params: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        node: str | None = None,
        attempt_seconds: float = ATTEMPT_SECONDS,
    ) -> Answer:
        """The first good answer (2xx).

        `node`: this one only, not whichever is next. Raises Refused and its kinds for an answer
        that another attempt would not change, or when the deadline comes first; OutcomeUnknown;
        Unreachable; DeadlineExceeded.
        """
        if json is not None:
            body, headers = orjson.dumps(json), {"Content-Type": JSON_TYPE, **(headers or {})}
        request = _Request(method, path, body, params, headers)
        patience = attempt_seconds if repeat is Repeat.SAFELY else float("inf")
        writes = method != "GET"
        attempts = _Attempts(writes=writes)
        backoff = Backoff(self.rng)
        believed = Deadline.after(NOT_FOUND_SECONDS)
        while True:
            url = node or self.nodes.current
            wait: float | None = None
            try:
                answer = await self._once(url, request, min(patience, deadline.left))
            except aiohttp.ClientConnectorError as error:
                attempts.not_made(url, _connect_failure(error))
            except (aiohttp.ClientError, ConnectionError, TimeoutError) as error:
                attempts.lost(url, str(error))
                if repeat is Repeat.NEVER:
                    raise attempts.verdict() from error
            else:
                if 200 <= answer.status < 300:
                    return answer
                refusal = as_error(answer.status, answer.document, url, writes=writes)
                attempts.refused(refusal)
                not_found = isinstance(refusal, TopicNotFound)
                if not attempts.worth_another(repeat) or (not_found and believed.passed):
                    raise attempts.verdict()
                wait = retry_after(answer.headers)
            self.nodes.failed(url)
            pause = backoff.next_wait(wait)
            if pause >= deadline.left:
                raise attempts.verdict()
            await asyncio.sleep(pause)

    async def open_answer(
        self, url: str, path: str, *, params: Mapping[str, str], accept: str
    ) -> aiohttp.ClientResponse:
        """A GET of this node whose good answer goes on; to be closed. Raises Unreachable, Refused
        and its kinds."""
        try:
            async with asyncio.timeout(ATTEMPT_SECONDS):
                response = await self.session.get(
                    url + path, params=params, headers={"Accept": accept}
                )
        except aiohttp.ClientConnectorError as error:
            raise Unreachable({url: _connect_failure(error)}) from error
        except (aiohttp.ClientError, ConnectionError, TimeoutError) as error:
            raise Unreachable({url: str(error) or "no answer in time"}) from error
        if response.status == HTTPStatus.OK:
            return response
        async with response:
            raise await self._refusal(response, url)

    async def _refusal(self, response: aiohttp.ClientResponse, url: str) -> ClientError:
        try:
            async with asyncio.timeout(ATTEMPT_SECONDS):
                answer = Answer(response.status, response.headers, await response.read(), url)
        except (aiohttp.ClientError, ConnectionError, TimeoutError) as error:
            return Unreachable({url: str(error) or "no answer in time"})
        return as_error(answer.status, answer.document, url, writes=False)

    async def _once(self, url: str, request: _Request, seconds: float) -> Answer:
        async with (
            asyncio.timeout(seconds),
            self.session.request(
                request.method,
                url + request.path,
                data=request.body,
                params=request.params,
                headers=request.headers,
            ) as response,
        ):
            return Answer(response.status, response.headers, await response.read(), url)


def _connect_failure(error: aiohttp.ClientConnectorError) -> str:
    return error.os_error.strerror or str(error.os_error)


@dataclass(frozen=True, slots=True)
class _Request:
    method: str
    path: str
    body: bytes | None
    params: Mapping[str, str] | None
    headers: Mapping[str, str] | None


class _Attempts:
    """What is known of a call from all that was tried."""

    def __init__(self, *, writes: bool) -> None:
        self._writes = writes
        self._perhaps = False
        self._last: ClientError | None = None
        self._reasons: dict[str, str] = {}

    def not_made(self, url: str, reason: str) -> None:
        self._reasons[url] = reason

    def lost(self, url: str, reason: str) -> None:
        """The request was on its way; what became of it nobody has said. An empty reason is a
        time-out, which says less than what was known of the node before."""
        if reason:
            self._reasons[url] = reason
        else:
            self._reasons.setdefault(url, "no answer in time")
        self._perhaps = True

    def refused(self, error: ClientError) -> None:
        self._last = error
        self._perhaps |= isinstance(error, OutcomeUnknown)

    def worth_another(self, repeat: Repeat) -> bool:
        if isinstance(self._last, OutcomeUnknown):
            return repeat is Repeat.SAFELY
        return self._last is not None and self._last.retriable

    def verdict(self) -> ClientError:
        """An earlier attempt that may have been carried out outweighs a later refusal."""
        if self._perhaps and self._writes:
            if isinstance(self._last, OutcomeUnknown):
                return self._last
            told = [f"{url}: {reason}" for url, reason in self._reasons.items()]
            told += [] if self._last is None else [str(self._last)]
            return OutcomeUnknown("it may have been done: " + "; ".join(told))
        if self._last is not None:
            return self._last
        if self._reasons:
            return Unreachable(self._reasons)
        return DeadlineExceeded("the time for this call is up")
