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


class NoAnswer(Exception):
    """Why there is none. `asked`: the question was on its way, so that it may have been heard."""

    def __init__(self, reason: str, *, asked: bool) -> None:
        super().__init__(reason)
        self.asked = asked


def ask(
    address: str, path: str, *, method: str = "GET", body: Any = None, timeout_seconds: float = 1.0
) -> Answer | None:
    """The answer of the node at `host:port`, or None when it gave none in time."""
    try:
        return exchange(address, path, method=method, body=body, timeout_seconds=timeout_seconds)
    except NoAnswer:
        return None


def exchange(address: str, path: str, *, method: str, body: Any, timeout_seconds: float) -> Answer:
    """As `ask`. Raises NoAnswer."""
    # Imported here: `up` has started its nodes by then, and they start meanwhile.
    import http.client

    connection = http.client.HTTPConnection(address, timeout=timeout_seconds)
    asked = False
    try:
        connection.connect()
        asked = True
        sent = None if body is None else json.dumps(body)
        headers = {} if sent is None else {"Content-Type": "application/json"}
        connection.request(method, path, body=sent, headers=headers)
        response = connection.getresponse()
        found = _parsed(response.read(MAX_ANSWER_BYTES))
        return Answer(response.status, found, dict(response.getheaders()))
    except TimeoutError as error:
        raise NoAnswer(f"no answer within {timeout_seconds:g} s", asked=asked) from error
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise NoAnswer(reason, asked=asked) from error
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
