"""The HTTP listener: routes, limits, start and stop."""

from __future__ import annotations

import asyncio
from collections import Counter
from random import Random

from aiohttp import web
from aiohttp.typedefs import Middleware

from ...seam import accept_no_more, more_doors
from ..listener import QUEUE_AT_LEAST
from . import operations, tail
from .admission import Admission
from .bodies import max_body_bytes
from .confluent_errors import confluent_errors
from .confluent_v2 import routes as confluent_v2
from .confluent_v2.consumers import INSTANCES
from .confluent_v3 import routes as confluent_v3
from .guards import bounded, counted, errors_as_documents, is_loopback, loopback_hosts_only
from .idempotency import IdempotencyKeys
from .keys import ADMISSION, IDEMPOTENCY, LEADERS, NODE, OPEN, REQUESTS, RNG
from .leaders import LEADER_SECONDS, Leaders
from .open_requests import OpenRequests
from .ports import HttpNode
from .tail_feed import Feeds

MAX_CONNECTIONS = 2048
KEEPALIVE_SECONDS = 75.0
STOP_SECONDS = 2.0
"""How long requests in work may take to finish when the node stops; long polls are cut."""


def application(
    node: HttpNode, rng: Random, *, host: str, leader_seconds: float = LEADER_SECONDS
) -> web.Application:
    """`host`: where it will be bound; loopback asks for the Host check. `leader_seconds`: how long
    a request waits for a partition's leader."""
    middlewares: list[Middleware] = [counted, errors_as_documents]
    if is_loopback(host):
        middlewares.append(loopback_hosts_only())
    middlewares += [bounded, confluent_errors]
    app = web.Application(
        middlewares=middlewares, client_max_size=max_body_bytes(node.max_message_bytes)
    )
    app[NODE] = node
    app[RNG] = rng
    app[LEADERS] = Leaders(node, patience_seconds=leader_seconds)
    app[ADMISSION] = Admission()
    app[IDEMPOTENCY] = IdempotencyKeys()
    app[OPEN] = OpenRequests()
    app[REQUESTS] = Counter[tuple[str, int]]()
    app[tail.FEEDS] = Feeds(node, app[LEADERS])
    app.on_cleanup.append(_end_feeds)
    app.on_shutdown.append(_end_open_requests)
    operations.install(app)
    confluent_v2.install(app)
    confluent_v3.install(app)
    return app


async def _end_feeds(app: web.Application) -> None:
    await app[tail.FEEDS].close()


async def _end_open_requests(app: web.Application) -> None:
    app[OPEN].stop()


class HttpServer:
    """One listener. `start` binds; `stop` lets requests in work finish, for a moment."""

    def __init__(self, node: HttpNode, rng: Random, *, host: str, port: int) -> None:
        self._host = host
        self._port = port
        self._runner = web.AppRunner(
            application(node, rng, host=host),
            access_log=None,
            handle_signals=False,
            keepalive_timeout=KEEPALIVE_SECONDS,
            shutdown_timeout=STOP_SECONDS,
        )
        self._listener: asyncio.Server | None = None
        self._more_doors: list[asyncio.AbstractServer] = []

    @property
    def port(self) -> int:
        """As bound: the real one when 0 was asked for."""
        assert self._listener is not None, "not started"
        return int(self._listener.sockets[0].getsockname()[1])

    async def start(self) -> None:
        """Raises OSError (EADDRINUSE, ...) when the address cannot be bound."""
        await self._runner.setup()
        try:
            self._listener = await asyncio.get_running_loop().create_server(
                self._connection,
                self._host,
                self._port,
                reuse_address=True,
                backlog=QUEUE_AT_LEAST,
            )
        except OSError:
            await self._runner.cleanup()
            raise
        self._more_doors = await more_doors(self._listener, self._connection, QUEUE_AT_LEAST)
        for door in self._more_doors:
            await door.start_serving()

    async def end_consumers(self) -> None:
        """Consumer instances leave their groups, and no more are made."""
        await self._runner.app[INSTANCES].stop()

    async def stop(self) -> None:
        if self._listener is not None:
            for door in (self._listener, *self._more_doors):
                await accept_no_more(door)
        await self._runner.cleanup()

    def _connection(self) -> asyncio.Protocol:
        server = self._runner.server
        assert server is not None, "connections come after setup"
        if len(server.connections) >= MAX_CONNECTIONS:
            return _Refused()
        return server()


class _Refused(asyncio.Protocol):
    """One connection too many: closed before a byte is read."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.close()
