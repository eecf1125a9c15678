"""Small HTTP questions to nodes of this machine, with the standard library alone: `up` asks many
times a second, and importing a real client would cost more than starting a node."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

MAX_ANSWER_BYTES = 16 << 20


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    body: Any
    """Parsed JSON, or the text when it was none."""
    headers: Mapping[str, str] = field(default_factory=dict)


def ask(
    address: str, path: str, *, method: str = "GET", body: Any = None, timeout_seconds: float = 1.0
) -> Answer | None:
    """The answer of the node at `host:port`, or None when it gave none in time."""
    # Imported here: `up` has started its nodes by then, and they start meanwhile.
    import http.client

    connection = http.client.HTTPConnection(address, timeout=timeout_seconds)
    try:
        sent = None if body is None else json.dumps(body)
        headers = {} if sent is None else {"Content-Type": "application/json"}
        connection.request(method, path, body=sent, headers=headers)
        response = connection.getresponse()
        body = _parsed(response.read(MAX_ANSWER_BYTES))
        return Answer(response.status, body, dict(response.getheaders()))
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()


def ask_all(addresses: list[str], path: str, timeout_seconds: float = 1.0) -> list[Answer | None]:
    """Ask several nodes at the same time; answers in the order of `addresses`."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(max_workers=max(1, len(addresses))) as pool:
        return list(
            pool.map(lambda address: ask(address, path, timeout_seconds=timeout_seconds), addresses)
        )


def _parsed(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return body.decode("utf-8", "replace")
