"""One end of a connection, as the kernel of its host keeps it."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from .segment import WINDOW_BYTES, Kind, Segment

if TYPE_CHECKING:
    from .host import Host
    from .link import Link
    from .loop import HostLoop
    from .network import Network
    from .transport import SimTransport

Address = tuple[str, int]

ACK_BYTES = WINDOW_BYTES // 8
"""Consumed bytes are reported in steps: an event per segment would double the price of a run."""

RETRIES = 15
FIRST_RETRY_S = 0.2
LONGEST_RETRY_S = 120.0
"""A segment for a host without power is sent again, 15 times in all (Linux's tcp_retries2)."""


class Endpoint:
    """Works also while its process is paused; knows nothing of asyncio but its transport."""

    peer: Endpoint

    def __init__(
        self,
        network: Network,
        loop: HostLoop,
        *,
        local: Address,
        remote: Address,
        remote_host: Host,
        link: Link,
    ) -> None:
        self.network = network
        self.loop = loop
        """The process that owns this end."""
        self.host = loop.host
        self.remote_host = remote_host
        self.local = local
        self.remote = remote
        self.link = link
        self.transport: SimTransport | None = None
        self.inbox: deque[Segment] = deque()
        """Arrived and not yet read; nothing is handed out before a transport exists."""
        self.last_arrival = 0.0
        """When the last segment sent from here arrives at the peer."""
        self.closed = False
        """The process has closed this end, or is dead."""
        self.reset = False
        """The peer has sent RST; the process may not have read it yet."""
        self._fin_sent = False
        self._in_flight = 0
        self._unreported = 0

    # Towards the peer

    def room(self) -> int:
        """Bytes that may be sent now."""
        return WINDOW_BYTES - self._in_flight

    def send_data(self, data: bytes) -> None:
        on_send = self.network.on_send
        if on_send is not None and not on_send(self, data):
            return
        self._in_flight += len(data)
        self._send(Segment(Kind.DATA, data))

    def send_fin(self) -> None:
        if not self._fin_sent:
            self._fin_sent = True
            self._send(Segment(Kind.FIN))

    def _send(self, segment: Segment) -> None:
        if not self.network.world.over:
            self.link.carry(self, segment)

    def close(self) -> None:
        """The process closes, or dies. With data left unread the peer gets RST (RFC 1122)."""
        if self.closed:
            return
        self.closed = True
        self.network.endpoints.pop(self, None)
        unread = any(segment.kind is Kind.DATA for segment in self.inbox)
        self.inbox.clear()
        if self.reset:
            return
        if unread:
            self._send(Segment(Kind.RST))
        else:
            self.send_fin()

    def vanish(self) -> None:
        """The host has lost power: nobody says good-bye."""
        self.closed = True
        self.inbox.clear()
        self.network.endpoints.pop(self, None)

    def consumed(self, count: int) -> None:
        """The process has read `count` bytes."""
        self._unreported += count
        if self._unreported >= ACK_BYTES and not self.closed:
            self._send(Segment(Kind.ACK, consumed=self._unreported))
            self._unreported = 0

    # From the peer

    def arrive(self, segment: Segment, attempt: int = 0) -> None:
        world = self.network.world
        ports = (self.local[1], self.remote[1])
        world.trace.segment(world.now, ports, segment.kind.value, segment.data, segment.consumed)
        if not self.host.powered:
            self._retry(segment, attempt)
        elif self.closed:
            # Nobody owns this end any more; FIN and RST need no answer.
            if segment.kind is Kind.DATA:
                self._send(Segment(Kind.RST))
        elif segment.kind is Kind.ACK:
            self._in_flight -= segment.consumed
            if self.transport is not None:
                self.transport.wake_writer()
        else:
            if segment.kind is Kind.RST:
                self.reset = True
            self._hand_over(segment)

    def _retry(self, segment: Segment, attempt: int) -> None:
        if segment.kind is Kind.ACK:
            return
        if attempt < RETRIES:
            delay = min(LONGEST_RETRY_S, FIRST_RETRY_S * 2**attempt)
            self.network.world.at(delay, self.arrive, segment, attempt + 1)
        else:
            self.peer.fail()

    def fail(self) -> None:
        """The connection is broken under this end: reset by the harness, or timed out."""
        if self.closed or self.reset:
            return
        self.reset = True
        self._hand_over(Segment(Kind.RST))

    def _hand_over(self, segment: Segment) -> None:
        self.inbox.append(segment)
        if self.transport is not None:
            self.transport.wake_reader()
            if self.reset:
                # An error wakes also who waits to write, though it may not read.
                self.transport.wake_writer()
