"""Asking an HTTP API in the words of its documents."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import aiohttp

V2 = "application/vnd.kafka.v2+json"
BINARY = "application/vnd.kafka.binary.v2+json"
JSON = "application/vnd.kafka.json.v2+json"
TEXT = "application/vnd.kafka.text.v2+json"


class Reply(NamedTuple):
    status: int
    content_type: str | None
    """Without parameters; None when there is none."""
    text: str
    headers: Any

    @property
    def json(self) -> Any:
        return json.loads(self.text)

    @property
    def error(self) -> tuple[int, int]:
        """(HTTP status, error_code), the message being there, too."""
        document = self.json
        assert document.keys() == {"error_code", "message"}, document
        assert document["message"]
        return self.status, document["error_code"]


class Asker:
    """One client of one node."""

    def __init__(self, session: aiohttp.ClientSession, base: str) -> None:
        self._session = session
        self._base = base

    async def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content_type: str | None = V2,
        accept: str | None = None,
    ) -> Reply:
        """`body`: bytes as they are, anything else as JSON. None: no body, and no type."""
        headers = {}
        if body is not None and content_type is not None:
            headers["Content-Type"] = content_type
        if accept is not None:
            headers["Accept"] = accept
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        asked = self._session.request(
            method,
            self._base + path,
            data=data,
            headers=headers,
            skip_auto_headers=["Content-Type", "Accept"],
        )
        async with asked as answer:
            kind = answer.headers.get("Content-Type")
            return Reply(
                answer.status,
                None if kind is None else kind.partition(";")[0],
                await answer.text(),
                answer.headers,
            )

    async def good(self, method: str, path: str, body: Any = None, **how: Any) -> Any:
        """The document of a 2xx; None when it has none."""
        answer = await self.ask(method, path, body, **how)
        assert 200 <= answer.status < 300, answer
        return answer.json if answer.text else None
