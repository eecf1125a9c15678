"""The HTTP API of a node: `/api/v1`, whose table is `operations.py`, and the paths of others.

Any node answers any request: what it does not lead or control goes over the inter-node channel.
This part translates between JSON and the wire's own requests, on the `HttpNode` of `ports.py`.
What it holds beside requests in work, streams and tails, all of them bounded, a node may lose:
feeds, keys seen lately, consumer instances. aiohttp is imported by `start_http` and nowhere else at
start, away from the loop: it takes longer than everything else a node loads.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from typing import TYPE_CHECKING

from ...seam import offload
from .ports import AnswerLost, HttpNode, LocalReplica, Unreachable

if TYPE_CHECKING:
    from .server import HttpServer

__all__ = ["AnswerLost", "HttpNode", "LocalReplica", "Unreachable", "start_http"]


async def start_http(node: HttpNode, rng: Random, *, host: str, port: int) -> HttpServer:
    """Listen and serve until `stop` is called. Raises OSError when the address is not to be had."""
    server_class = await offload(_load)
    server = server_class(node, rng, host=host, port=port)
    await server.start()
    return server


def _load() -> type[HttpServer]:
    with _no_certificates():
        from .server import HttpServer

    return HttpServer


@contextmanager
def _no_certificates() -> Iterator[None]:
    """aiohttp's client comes with its server and makes two TLS contexts at import: reading all
    certificate authorities of the machine is a quarter of the import. A node never uses that
    client; should it ever, contexts without authorities refuse every server."""
    original = ssl.SSLContext.set_default_verify_paths
    ssl.SSLContext.set_default_verify_paths = _reads_nothing  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        ssl.SSLContext.set_default_verify_paths = original  # type: ignore[method-assign]


def _reads_nothing(_: ssl.SSLContext) -> None:
    """Stands for `set_default_verify_paths` meanwhile."""
