"""TCP between named hosts, and what can go wrong with it.

Modelled: order within a connection, latency, jitter, bandwidth, windows, half-open and half-closed
ends, refusal, one-way blocks, resets, loss as delay. Not modelled: keepalive and user timeouts (a
block of hours keeps its connections), UDP, TLS, Unix sockets.
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from .dice import stream
from .endpoint import Endpoint
from .errors import SimEscape
from .link import Link
from .server import SimServer
from .transport import SimTransport

if TYPE_CHECKING:
    from .host import Host
    from .loop import HostLoop
    from .world import World

FIRST_EPHEMERAL_PORT = 40_000
SYN_RETRIES_S = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
"""Linux: a connect to silence ends after 127 seconds."""

ANY_ADDRESS = "0.0.0.0"
LOOPBACK = "127.0.0.1"
_ANY = (None, "", ANY_ADDRESS, "::")
_LOOPBACK = ("localhost", LOOPBACK, "::1")


@dataclass
class LinkDefaults:
    """What new links begin with; seconds and bytes."""

    latency_s: float = 100e-6
    jitter_s: float = 100e-6
    bytes_per_s: float = 1e9
    loss: float = 0.0
    split: float = 0.05


class Network:
    def __init__(self, world: World) -> None:
        self.world = world
        self.defaults = LinkDefaults()
        self.endpoints: dict[Endpoint, None] = {}
        """Open ends of living processes, in order of birth."""
        self.on_send: Callable[[Endpoint, bytes], bool] | None = None
        """Sees all data that leaves an end; False: it is swallowed without a word."""
        self._links: dict[tuple[str, str], Link] = {}
        self._servers: dict[tuple[str, int], SimServer] = {}
        self._last_port = FIRST_EPHEMERAL_PORT
        self._unresolvable: dict[str, None] = {}

    # Names and links

    def link(self, source: Host, target: Host) -> Link:
        """The direction from `source` to `target`; made when first asked for."""
        key = (source.name, target.name)
        link = self._links.get(key)
        if link is None:
            dice = stream(self.world.seed, f"link:{source.name}>{target.name}")
            chosen = self.defaults
            link = self._links[key] = Link(
                self.world,
                dice,
                latency_s=chosen.latency_s,
                jitter_s=chosen.jitter_s,
                bytes_per_s=chosen.bytes_per_s,
                loss=chosen.loss,
                split=chosen.split,
            )
        return link

    def resolve(self, asker: Host, name: str | None) -> Host:
        if name in _ANY or name in _LOOPBACK:
            return asker
        for host in self.world.hosts.values():
            if name == host.ip or (name == host.name and host.name not in self._unresolvable):
                return host
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    def getaddrinfo(self, asker: Host, name: str | None, port: Any) -> list[Any]:
        host = self.resolve(asker, name)
        ip = LOOPBACK if name in _LOOPBACK else host.ip
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (ip, int(port or 0)))]

    # Listening

    async def create_server(
        self,
        loop: HostLoop,
        factory: Callable[[], asyncio.BaseProtocol],
        host: str | Iterable[str] | None = None,
        port: int | None = None,
        *,
        start_serving: bool = True,
        ssl: object = None,
        sock: object = None,
        **_: Any,
    ) -> SimServer:
        if ssl or sock is not None:
            raise SimEscape("TLS and sockets made elsewhere are not simulated")
        names = [host] if host is None or isinstance(host, str) else list(host)
        if len(names) != 1:
            raise SimEscape("a server on several addresses is not simulated")
        server = self._listen(loop, factory, names[0], port or 0)
        if start_serving:
            await server.start_serving()
        return server

    def _listen(
        self,
        loop: HostLoop,
        factory: Callable[[], asyncio.BaseProtocol],
        name: str | None,
        port: int,
    ) -> SimServer:
        me = loop.host
        if self.resolve(me, name) is not me:
            raise _error(errno.EADDRNOTAVAIL, f"{name}:{port}")
        port = port or self._next_port()
        if (me.name, port) in self._servers:
            raise _error(errno.EADDRINUSE, f"{name}:{port}")
        ip = ANY_ADDRESS if name in _ANY else LOOPBACK if name in _LOOPBACK else me.ip
        server = SimServer(self, loop, factory, (ip, port))
        self._servers[(me.name, port)] = server
        return server

    def stop_listening(self, server: SimServer) -> None:
        for key, found in list(self._servers.items()):
            if found is server:
                del self._servers[key]

    def _next_port(self) -> int:
        self._last_port += 1
        if self._last_port > 65_535:
            self._last_port = FIRST_EPHEMERAL_PORT + 1
        return self._last_port

    # Connecting

    async def create_connection(
        self,
        loop: HostLoop,
        factory: Callable[[], asyncio.BaseProtocol],
        host: str | None = None,
        port: int | None = None,
        *,
        ssl: object = None,
        sock: object = None,
        **_: Any,
    ) -> tuple[SimTransport, asyncio.BaseProtocol]:
        if ssl or sock is not None:
            raise SimEscape("TLS and sockets made elsewhere are not simulated")
        endpoint = await self._connect(loop, host, int(port or 0))
        protocol = factory()
        made: asyncio.Future[None] = loop.create_future()
        transport = SimTransport(
            endpoint, protocol, on_made=lambda: None if made.done() else made.set_result(None)
        )
        try:
            await made
        except BaseException:
            transport.close()
            raise
        return transport, protocol

    async def _connect(self, loop: HostLoop, name: str | None, port: int) -> Endpoint:
        target = self.resolve(loop.host, name)
        dial = _Dial(self, loop, target, port, loopback=name in _ANY or name in _LOOPBACK)
        dial.send_syn()
        return await dial.answer

    def server_for(self, target: Host, port: int, *, loopback: bool) -> SimServer | None:
        """Who listens, for a caller that comes over the loopback interface or the network."""
        server = self._servers.get((target.name, port))
        if server is None:
            return None
        wrong = server.address[0] == (target.ip if loopback else LOOPBACK)
        return None if wrong else server

    def establish(self, client: HostLoop, server: SimServer, target: Host, port: int) -> Endpoint:
        """Both kernels know the connection from now on; the server's process hears of it later."""
        server_loop = cast("HostLoop", server.get_loop())
        client_address = (client.host.ip, self._next_port())
        server_address = (target.ip, port)
        near = Endpoint(
            self,
            client,
            local=client_address,
            remote=server_address,
            remote_host=target,
            link=self.link(client.host, target),
        )
        far = Endpoint(
            self,
            server_loop,
            local=server_address,
            remote=client_address,
            remote_host=client.host,
            link=self.link(target, client.host),
        )
        near.peer, far.peer = far, near
        self.endpoints[near] = self.endpoints[far] = None
        server_loop.post(server.accept, far)
        return near

    # Faults

    def block(self, source: Host, target: Host) -> None:
        """Nothing gets from `source` to `target`; the other way is another block."""
        self.world.note(f"block {source.name}>{target.name}")
        self.link(source, target).block()

    def partition(self, *groups: Iterable[Host]) -> None:
        """Hosts of different groups cannot hear each other; hosts in no group hear everybody."""
        sides = [list(group) for group in groups]
        for number, side in enumerate(sides):
            for other in sides[number + 1 :]:
                for one in side:
                    for two in other:
                        self.block(one, two)
                        self.block(two, one)

    def heal(self) -> None:
        """Remove all blocks. Connections have survived, what they held is retransmitted."""
        self.world.note("heal")
        for link in self._links.values():
            link.heal()

    def reset(self, one: Host, other: Host) -> None:
        """Break all connections between two hosts; both ends learn of it."""
        self.world.note(f"reset {one.name}-{other.name}")
        for endpoint in list(self.endpoints):
            if (endpoint.host, endpoint.remote_host) in ((one, other), (other, one)):
                endpoint.fail()

    def set_resolvable(self, host: Host, resolvable: bool) -> None:
        """Whether the name service knows this host's name."""
        if resolvable:
            self._unresolvable.pop(host.name, None)
        else:
            self._unresolvable[host.name] = None

    def process_died(self, loop: HostLoop, *, silently: bool) -> None:
        """The kernel closes everything the process had open; without power nobody does."""
        for key, server in list(self._servers.items()):
            if server.get_loop() is loop:
                del self._servers[key]
        for endpoint in [endpoint for endpoint in self.endpoints if endpoint.loop is loop]:
            if silently:
                endpoint.vanish()
            else:
                endpoint.close()

    def open_connections(self, host: Host) -> int:
        """Ends that the process on `host` has not closed: leaks, when there should be none."""
        return sum(1 for endpoint in self.endpoints if endpoint.host is host)

    def close(self) -> None:
        """Break the cycles, so that no full garbage collection is needed per run."""
        for endpoint in self.endpoints:
            endpoint.inbox.clear()
            endpoint.transport = None
        self.endpoints.clear()
        self._servers.clear()
        self._links.clear()
        self.on_send = None


class _Dial:
    """One attempt to connect: SYN, retries, and the answer as a future of the caller's loop."""

    def __init__(
        self, network: Network, loop: HostLoop, target: Host, port: int, *, loopback: bool
    ) -> None:
        self._network = network
        self._world = network.world
        self._loop = loop
        self._target = target
        self._port = port
        self._loopback = loopback
        self._retries = iter(SYN_RETRIES_S)
        self.answer: asyncio.Future[Endpoint] = loop.create_future()

    def send_syn(self) -> None:
        if self.answer.done() or self._loop.dead:
            return
        there = self._network.link(self._loop.host, self._target)
        back = self._network.link(self._target, self._loop.host)
        if not there.blocked and not back.blocked and self._target.powered:
            self._world.at(there.delay(), self._arrive)
            return
        delay = next(self._retries, None)
        if delay is not None:
            self._world.at(delay, self.send_syn)
        else:
            error = TimeoutError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT))
            self._loop.post(self._settle, error)

    def _arrive(self) -> None:
        if self._loop.dead:
            return
        if not self._target.powered:
            self.send_syn()
            return
        world = self._world
        back = self._network.link(self._target, self._loop.host).delay()
        server = self._network.server_for(self._target, self._port, loopback=self._loopback)
        world.note(f"syn {self._loop.host.name}>{self._target.name}:{self._port}")
        if server is None:
            where = f"connection refused by {self._target.name}:{self._port}"
            world.at(back, self._loop.post, self._settle, _error(errno.ECONNREFUSED, where))
            return
        endpoint = self._network.establish(self._loop, server, self._target, self._port)
        # Answers of the server may overtake the SYN-ACK's own delay, never the transport:
        # the inbox holds them until then.
        world.at(back, self._loop.post, self._settle, endpoint)

    def _settle(self, answer: Endpoint | OSError) -> None:
        if self.answer.done():
            if isinstance(answer, Endpoint):
                answer.close()
        elif isinstance(answer, Endpoint):
            self.answer.set_result(answer)
        else:
            self.answer.set_exception(answer)


def _error(number: int, detail: str) -> OSError:
    return OSError(number, f"{os.strerror(number)}: {detail}")
