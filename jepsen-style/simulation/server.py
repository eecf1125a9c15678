"""A listening socket."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .transport import SimTransport

if TYPE_CHECKING:
    from .endpoint import Address, Endpoint
    from .loop import HostLoop
    from .network import Network


class BoundSocket:
    """What `server.sockets` holds: enough to learn the port."""

    def __init__(self, address: Address) -> None:
        self._address = address

    def getsockname(self) -> Address:
        return self._address


class SimServer(asyncio.AbstractServer):
    """`wait_closed` waits for the connections too, as Python 3.12 and later do."""

    def __init__(
        self,
        network: Network,
        loop: HostLoop,
        factory: Callable[[], asyncio.BaseProtocol],
        address: Address,
    ) -> None:
        self._network = network
        self._loop = loop
        self._factory = factory
        self.address = address
        self.sockets: tuple[BoundSocket, ...] = (BoundSocket(address),)
        self._serving = False
        self._connections = 0
        self._waiters: list[asyncio.Future[None]] = []

    def accept(self, endpoint: Endpoint) -> None:
        """Runs in a turn of the host; the kernel had accepted the connection before."""
        if endpoint.closed:
            return
        if not self._serving:
            endpoint.close()
            return
        self._connections += 1
        SimTransport(endpoint, self._factory(), server=self)

    def connection_ended(self) -> None:
        self._connections -= 1
        self._maybe_wake()

    def get_loop(self) -> asyncio.AbstractEventLoop:
        return self._loop

    def is_serving(self) -> bool:
        return self._serving

    async def start_serving(self) -> None:
        self._serving = True

    async def serve_forever(self) -> None:
        self._serving = True
        try:
            await self._loop.create_future()
        finally:
            self.close()

    def close(self) -> None:
        if not self.sockets:
            return
        self.sockets = ()
        self._serving = False
        self._network.stop_listening(self)
        self._maybe_wake()

    def _maybe_wake(self) -> None:
        if self.sockets or self._connections:
            return
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)

    async def wait_closed(self) -> None:
        if not self.sockets and not self._connections:
            return
        waiter: asyncio.Future[None] = self._loop.create_future()
        self._waiters.append(waiter)
        await waiter

    async def __aenter__(self) -> SimServer:
        return self

    async def __aexit__(self, *_: Any) -> None:
        self.close()
        await self.wait_closed()
