"""Faults on purpose: a loop whose connections to chosen nodes can be cut or slowed down.

A wrapper round the real loop, installed only by a node that was told so (`--with-faults`). Only
protocols with a `peer_node_id` are wrapped: connections between nodes. A line that is cut or slow
holds bytes and loses none, as TCP does; who waits runs into its own deadlines. While a node is cut
off it cannot be dialled, and what it dials is silent once it has said who it is. Where something is
lost, it breaks off in its middle and the connection ends: no stream goes on behind a gap.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol, cast

from .fault_switches import FaultSwitches


class PeerProtocol(Protocol):
    """What is needed of a protocol that talks to another node, beside being a BufferedProtocol."""

    @property
    def peer_node_id(self) -> int | None:
        """None while the other side has not proven who it is."""
        ...


class _Link(asyncio.Transport):
    """The transport that a wrapped protocol is given."""

    def __init__(
        self,
        real: asyncio.Transport,
        switches: FaultSwitches,
        peer: Callable[[], int | None],
    ) -> None:
        super().__init__()
        self._real = real
        self._switches = switches
        self._peer = peer
        self._held: deque[tuple[float, bytes]] = deque()
        """(time it is due, bytes); bounded by what the channel lets wait."""
        self._wants_to_read = True
        self._timer: asyncio.TimerHandle | None = None

    def apply(self) -> None:
        """After the switches, the peer or the time have changed."""
        if self._real.is_closing():
            return
        cut = self._switches.is_cut(self._peer())
        if cut or not self._wants_to_read:
            self._real.pause_reading()
        else:
            self._real.resume_reading()
        if cut:
            return
        loop = asyncio.get_running_loop()
        while self._held and self._held[0][0] <= loop.time():
            self._real.write(self._held.popleft()[1])
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._held:
            self._timer = loop.call_at(self._held[0][0], self.apply)

    def write(self, data: Any) -> None:
        peer = self._peer()
        if self._switches.loses(peer):
            self._real.write(bytes(data)[: len(data) // 2])
            self.abort()
            return
        delay = self._switches.delay_to(peer)
        if not self._held and not delay and not self._switches.is_cut(peer):
            self._real.write(data)
            return
        self._held.append((asyncio.get_running_loop().time() + delay, bytes(data)))
        self.apply()

    def writelines(self, list_of_data: Any) -> None:
        self.write(b"".join(list_of_data))

    def pause_reading(self) -> None:
        self._wants_to_read = False
        self._real.pause_reading()

    def resume_reading(self) -> None:
        self._wants_to_read = True
        self.apply()

    def is_reading(self) -> bool:
        return self._wants_to_read

    def get_write_buffer_size(self) -> int:
        return self._real.get_write_buffer_size() + sum(len(data) for _, data in self._held)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._real.set_write_buffer_limits(high, low)

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._real.get_extra_info(name, default)

    def is_closing(self) -> bool:
        return self._real.is_closing()

    def close(self) -> None:
        self.on_lost()
        self._real.close()

    def abort(self) -> None:
        self.on_lost()
        self._real.abort()

    def on_lost(self) -> None:
        self._switches.leave(self)
        self._held.clear()
        if self._timer is not None:
            self._timer.cancel()


class _Wrapped(asyncio.BufferedProtocol):
    """Hands everything on, with a link in place of the transport."""

    def __init__(self, protocol: asyncio.BufferedProtocol, switches: FaultSwitches) -> None:
        self._protocol = protocol
        self._switches = switches
        self._link: _Link | None = None
        self._known: int | None = None

    def _peer(self) -> int | None:
        return cast(PeerProtocol, self._protocol).peer_node_id

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._link = _Link(cast(asyncio.Transport, transport), self._switches, self._peer)
        self._switches.enter(self._link)
        self._protocol.connection_made(self._link)

    def get_buffer(self, sizehint: int) -> Any:
        return self._protocol.get_buffer(sizehint)

    def buffer_updated(self, nbytes: int) -> None:
        self._protocol.buffer_updated(nbytes)
        if self._known is None and self._link is not None:
            # These bytes may have said who it is.
            self._known = self._peer()
            if self._known is not None:
                self._link.apply()

    def eof_received(self) -> bool | None:
        return self._protocol.eof_received()

    def pause_writing(self) -> None:
        self._protocol.pause_writing()

    def resume_writing(self) -> None:
        self._protocol.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._link is not None:
            self._link.on_lost()
        self._protocol.connection_lost(exc)


def faulty(
    loop_class: type[asyncio.AbstractEventLoop], switches: FaultSwitches
) -> type[asyncio.AbstractEventLoop]:
    """The same kind of loop, with these `fault_switches`."""

    class FaultyLoop(loop_class):  # type: ignore[misc, valid-type]
        fault_switches = switches

        async def create_connection(self, protocol_factory: Any, *args: Any, **options: Any) -> Any:
            protocol = protocol_factory()
            if not hasattr(type(protocol), "peer_node_id"):
                return await super().create_connection(lambda: protocol, *args, **options)
            await switches.reachable(protocol.peer_node_id)
            wrapped = _Wrapped(protocol, switches)
            transport, _ = await super().create_connection(lambda: wrapped, *args, **options)
            return transport, protocol

        async def create_server(self, protocol_factory: Any, *args: Any, **options: Any) -> Any:
            def wrapped() -> Any:
                protocol = protocol_factory()
                if not hasattr(type(protocol), "peer_node_id"):
                    return protocol
                return _Wrapped(protocol, switches)

            return await super().create_server(wrapped, *args, **options)

    return FaultyLoop
