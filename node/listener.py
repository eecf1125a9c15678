"""The port that Kafka clients connect to."""

from __future__ import annotations

import asyncio
import errno
import sys
from collections.abc import Callable

from ..metadata.listeners import CLIENT_LISTENER
from ..seam import OnFatal, TaskScope, accept_no_more, more_doors
from .addresses import Address
from .budget import RequestBudget
from .caller import Caller
from .config import NodeConfig
from .connection import ClientConnection, ConnectionLimits
from .dispatch import Dispatcher


class CannotListen(Exception):
    """The message is one sentence for a person."""


async def bind(
    factory: Callable[[], asyncio.BaseProtocol], address: Address, name: str, *, backlog: int
) -> asyncio.Server:
    """Take the port without accepting yet. Raises CannotListen."""
    loop = asyncio.get_running_loop()
    try:
        return await loop.create_server(
            factory, address.host or None, address.port, backlog=backlog, start_serving=False
        )
    except OSError as error:
        raise CannotListen(sentence(address, name, error)) from error


def sentence(address: Address, name: str, error: OSError) -> str:
    """Why this address cannot be had, for a person."""
    reasons = {
        errno.EADDRINUSE: "another process listens there",
        errno.EACCES: "permission denied",
        errno.EADDRNOTAVAIL: "this machine has no such address",
    }
    reason = reasons.get(error.errno or 0, str(error))
    return f"cannot listen on {address} ({name}): {reason}"


def port_of(server: asyncio.Server) -> int:
    """The port that the system chose, or the one that was asked for."""
    port: int = server.sockets[0].getsockname()[1]
    return port


UNBOUNDED = sys.maxsize

QUEUE_AT_LEAST = 1_024
"""Connections that wait to be let in. Kafka's default of 50 is enough for a thread that does
nothing else; this loop may be away for milliseconds, and who finds no place comes again after a
second."""


class ClientListener:
    """Accepts connections within the node's limits and owns them."""

    dispatcher: Dispatcher
    """Set by `serve`, before the first connection."""

    def __init__(
        self, config: NodeConfig, on_fatal: OnFatal, *, most_connections: int = UNBOUNDED
    ) -> None:
        """`most_connections`: how many the process has descriptors for; the setting
        `max.connections` may allow fewer."""
        self.on_fatal = on_fatal
        self.tasks = TaskScope(on_fatal)
        self.budget = RequestBudget(config.number("queued.max.request.bytes"))
        self.limits = ConnectionLimits(
            max_request_bytes=config.number("socket.request.max.bytes"),
            idle_s=config.seconds("connections.max.idle.ms"),
            partial_request_s=config.seconds("connections.partial.request.timeout.ms"),
        )
        self._address = config.kafka
        self._backlog = max(QUEUE_AT_LEAST, config.number("socket.listen.backlog.size"))
        self._max_connections = config.number("max.connections")
        self._most_connections = most_connections
        self._max_per_host = config.number("max.connections.per.ip")
        self._connections: dict[ClientConnection, None] = {}
        self._per_host: dict[str, int] = {}
        self._doors: list[asyncio.AbstractServer] = []

    async def bind(self) -> int:
        """Take the port, which is returned; nobody is let in yet. Raises CannotListen."""
        server = await bind(
            self._new_connection, self._address, CLIENT_LISTENER, backlog=self._backlog
        )
        self._doors = [server, *await more_doors(server, self._new_connection, self._backlog)]
        return port_of(server)

    def _new_connection(self) -> ClientConnection:
        return ClientConnection(self)

    async def serve(
        self, dispatcher: Dispatcher, *, on_gone: Callable[[Caller], None] = lambda _: None
    ) -> None:
        """`on_gone` is told of each connection that has ended.

        Raises CannotListen when another process took the port since `bind`.
        """
        self.dispatcher = dispatcher
        self._on_gone = on_gone
        try:
            for door in self._doors:
                await door.start_serving()
        except OSError as error:
            raise CannotListen(sentence(self._address, CLIENT_LISTENER, error)) from error

    @property
    def connection_count(self) -> int:
        return len(self._connections)

    async def close(self) -> None:
        """End every connection and every request."""
        for door in self._doors:
            await accept_no_more(door)
        for connection in list(self._connections):
            connection.close()
        await self.tasks.close()

    # Home of connections

    def admit(self, connection: ClientConnection) -> str | None:
        host = connection.caller.host
        count = self._per_host.get(host, 0)
        self._connections[connection] = None
        self._per_host[host] = count + 1
        if len(self._connections) > self._max_connections:
            return f"max.connections is {self._max_connections}"
        if len(self._connections) > self._most_connections:
            return f"too few descriptors (ulimit -n) for more than {self._most_connections} clients"
        if count >= self._max_per_host:
            return f"max.connections.per.ip is {self._max_per_host}"
        return None

    def forget(self, connection: ClientConnection) -> None:
        if self._connections.pop(connection, connection) is None:
            self._on_gone(connection.caller)
            host = connection.caller.host
            left = self._per_host[host] - 1
            if left:
                self._per_host[host] = left
            else:
                del self._per_host[host]
