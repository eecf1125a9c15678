"""The authenticated, framed connection between two nodes of a cluster (RULES B5).

The quorum and the inter-node Kafka listener use it alike; `service` says what a connection is for.
After the handshake (`handshake.py`) each direction is a sequence of frames

    u32 payload length | u64 sequence | 16-byte MAC | payload

with the MAC over length, sequence and payload under that direction's key. Sequences start at 0 and
grow by one, so a frame is delivered exactly once and in order per connection, or the connection
ends. Anything unexpected (wrong secret, garbage, a pickle, a length beyond `max_frame`, a replayed
or altered frame) closes the connection with one log line. Where the credential holds certificates
all of it travels inside TLS (`tls.py`).
"""

from __future__ import annotations

import asyncio
import logging
import ssl
import struct
from collections.abc import Callable, Sequence
from random import Random
from typing import cast

from ..seam import Buffer, frozen
from .frame_buffer import SHARED_CAPACITY, FrameBuffer, FrameTooLarge
from .frame_mac import MAC_SIZE, FrameMac
from .handshake import (
    MAX_MESSAGE,
    ChannelPeer,
    Credential,
    DialerHandshake,
    HandshakeFailed,
    ListenerHandshake,
    Session,
)
from .tls import TlsTransport, looks_like_tls, told

logger = logging.getLogger(__name__)

MAX_FRAME = 128 * 1024 * 1024
"""Bytes of payload in one frame unless a caller says otherwise."""

MAX_BUFFERED = 256 * 1024 * 1024
"""Bytes waiting to be sent on one channel before its peer counts as lost."""

CLOSE_GRACE_S = 2.0
"""How long a closed channel may go on sending what it had accepted."""

_HEADER = struct.Struct(">IQ")
_HEADER_SIZE = _HEADER.size + MAC_SIZE
_HANDSHAKE_HEADER = struct.Struct(">I")
_CORK_BYTES = 256 * 1024
"""More than this is handed to the transport at once instead of at the end of the loop's turn."""


class ChannelClosed(Exception):
    """The channel can take no more frames; what was sent may or may not have arrived."""


@frozen
class ChannelLimits:
    """Bounds of a listener and of each channel that it accepts."""

    max_frame: int = MAX_FRAME
    max_buffered: int = MAX_BUFFERED
    handshake_s: float = 5.0
    max_unauthenticated: int = 64
    """Connections that have not proven themselves yet; one more and the oldest of them goes."""


class Channel:
    """One proven connection. Not to be constructed: `dial` and `accept_factory` yield them.

    Nothing is read before `set_receiver`. Buffers given to `send` must not change afterwards.
    """

    def __init__(
        self,
        transport: asyncio.Transport,
        buffer: FrameBuffer,
        session: Session,
        *,
        max_frame: int,
        max_buffered: int,
    ) -> None:
        self.peer: ChannelPeer = session.peer
        self._transport = transport
        self._buffer = buffer
        self._max_frame = max_frame
        self._max_buffered = max_buffered
        self._send_mac = FrameMac(session.send_key)
        self._receive_mac = FrameMac(session.receive_key)
        self._next_sent = 0
        self._next_received = 0
        self._corked: list[Buffer] = []
        self._corked_bytes = 0
        self._on_frame: Callable[[memoryview], None] | None = None
        self._on_close: Callable[[], None] | None = None
        self._on_writable: Callable[[], None] | None = None
        self._paused = True
        self._delivering = False
        self._closing = False
        self._lost = False
        self._close_timer: asyncio.TimerHandle | None = None
        self._writable = asyncio.Event()
        self._writable.set()
        transport.pause_reading()

    @property
    def closed(self) -> bool:
        """Whether `send` refuses; `on_close` may still be due."""
        return self._closing

    @property
    def buffered(self) -> int:
        """Bytes accepted by `send` that the operating system has not taken yet."""
        if self._lost:
            return 0
        return self._corked_bytes + self._transport.get_write_buffer_size()

    def send(self, parts: Sequence[Buffer]) -> None:
        """Queue one frame made of `parts`. Raises ChannelClosed, also when the peer is too slow.

        Frames of one turn of the loop leave together.
        """
        if self._closing:
            raise ChannelClosed("the channel is closed")
        length = sum(len(part) for part in parts)
        if length > self._max_frame:
            raise ValueError(f"frame of {length} bytes, at most {self._max_frame} are allowed")
        if self.buffered + length > self._max_buffered:
            self.abort(f"more than {self._max_buffered} bytes wait to be sent")
            raise ChannelClosed("the peer takes its frames too slowly")
        header = _HEADER.pack(length, self._next_sent)
        self._next_sent += 1
        if not self._corked:
            asyncio.get_running_loop().call_soon(self._flush)
        self._corked.append(header + self._send_mac.sign(header, parts))
        self._corked.extend(parts)
        self._corked_bytes += _HEADER_SIZE + length
        if self._corked_bytes >= _CORK_BYTES:
            self._flush()

    @property
    def writable(self) -> bool:
        """False while the transport has piled up so much that it wants no more."""
        return self._writable.is_set()

    async def drained(self) -> None:
        """Wait until the transport wants more bytes, or the channel is lost."""
        await self._writable.wait()

    def set_receiver(
        self,
        on_frame: Callable[[memoryview], None],
        on_close: Callable[[], None],
        on_writable: Callable[[], None] | None = None,
    ) -> None:
        """Start delivery: each payload once, in order; it belongs to the receiver, who may keep it.

        `on_close` comes exactly once and last, also after our own `close`. `on_writable` comes when
        the transport has sent most of what was piled up in it.
        """
        self._on_frame = on_frame
        self._on_close = on_close
        self._on_writable = on_writable
        if self._lost:
            asyncio.get_running_loop().call_soon(on_close)
        else:
            self.resume_reading()

    def pause_reading(self) -> None:
        """Deliver nothing more; the peer's sends back up through TCP."""
        if not self._paused:
            self._paused = True
            if not self._closing and not self._transport.is_closing():
                self._transport.pause_reading()

    def resume_reading(self) -> None:
        if self._paused and not self._closing:
            self._paused = False
            # Frames that were already received come first, and not inside the caller's frame.
            asyncio.get_running_loop().call_soon(self._resume)

    def close(self) -> None:
        """Send what was accepted, then close. Nothing more is delivered."""
        if self._closing:
            return
        self._flush()
        self._closing = True
        self._transport.close()
        if not self._lost:
            loop = asyncio.get_running_loop()
            self._close_timer = loop.call_later(CLOSE_GRACE_S, self._transport.abort)

    def abort(self, reason: str) -> None:
        """Close at once, with one log line."""
        if not self._closing:
            logger.warning(
                "channel %s to node %d closed: %s", self.peer.service, self.peer.node_id, reason
            )
        self._closing = True
        self._corked.clear()
        self._corked_bytes = 0
        self._transport.abort()

    def __repr__(self) -> str:
        return f"Channel({self.peer.service!r}, node {self.peer.node_id})"

    def _flush(self) -> None:
        if self._closing or not self._corked:
            return
        parts, self._corked, self._corked_bytes = self._corked, [], 0
        self._transport.writelines(parts)

    def _resume(self) -> None:
        if self._paused or self._closing:
            return
        self.on_bytes()
        if not self._paused and not self._closing and not self._transport.is_closing():
            self._transport.resume_reading()

    # Called by the protocol.

    def on_bytes(self) -> None:
        """Deliver the whole frames that the buffer holds."""
        if self._delivering or self._on_frame is None:
            return
        self._delivering = True
        try:
            while not self._paused and not self._closing:
                frame = self._buffer.take(_HEADER_SIZE, self._max_frame)
                if frame is None:
                    return
                header, payload = frame
                self._check(header, payload)
                self._next_received += 1
                self._on_frame(payload)
        except (FrameTooLarge, _BadFrame) as error:
            self.abort(str(error))
        finally:
            self._delivering = False

    def on_writable(self, writable: bool) -> None:
        if writable:
            self._writable.set()
            if self._on_writable is not None:
                self._on_writable()
        else:
            self._writable.clear()

    def on_lost(self) -> None:
        self._closing = self._lost = True
        self._corked.clear()
        self._corked_bytes = 0
        self._writable.set()
        if self._close_timer is not None:
            self._close_timer.cancel()
        if self._on_close is not None:
            self._on_close()

    def _check(self, header: bytes, payload: memoryview) -> None:
        _, sequence = _HEADER.unpack_from(header)
        if sequence != self._next_received:
            raise _BadFrame(f"frame {sequence} where {self._next_received} was due")
        signed, mac = header[: _HEADER.size], header[_HEADER.size :]
        if not self._receive_mac.matches(mac, signed, payload):
            raise _BadFrame(f"frame {sequence} has a wrong MAC")


class _BadFrame(Exception):
    """A frame that the proven peer did not send, or not here."""


class _ChannelProtocol(asyncio.BufferedProtocol):
    """Runs a handshake, then hands its bytes to the channel that comes of it."""

    def __init__(
        self,
        handshake: DialerHandshake | ListenerHandshake,
        *,
        max_frame: int,
        max_buffered: int,
    ) -> None:
        self._handshake = handshake
        self._max_frame = max_frame
        self._max_buffered = max_buffered
        self._buffer = FrameBuffer(_HANDSHAKE_HEADER.size + MAX_MESSAGE)
        self._transport: asyncio.Transport | None = None
        self._channel: Channel | None = None
        self._tls: TlsTransport | None = None
        self._failed = False

    @property
    def peer_node_id(self) -> int | None:
        """Who the other side is, or has to be; None while that is not known."""
        if self._channel is not None:
            return self._channel.peer.node_id
        return getattr(self._handshake, "expected_node_id", None)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # By interface: uvloop's and the simulation's transports are not subclasses.
        self._transport = cast(asyncio.Transport, transport)
        self._tls = self.secure(self._transport)
        if self._tls is None:
            self._proceed(self._begin)
        else:
            self._transport = self._tls
            self._proceed(self._decrypt)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._buffer.space() if self._tls is None else self._tls.space()

    def buffer_updated(self, nbytes: int) -> None:
        if self._tls is None:
            self._buffer.received(nbytes)
            self._on_bytes()
        else:
            self._tls.received(nbytes)
            self._proceed(self._decrypt)

    def eof_received(self) -> bool:
        return False

    def pause_writing(self) -> None:
        if self._channel is not None:
            self._channel.on_writable(False)

    def resume_writing(self) -> None:
        if self._channel is not None:
            self._channel.on_writable(True)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._channel is not None:
            self._channel.on_lost()
        elif not self._failed:
            self._failed = True
            self.on_failed(HandshakeFailed("the connection ended during the handshake"))

    def fail(self, error: Exception) -> None:
        """Give up before the handshake is over."""
        if self._failed or self._channel is not None:
            return
        self._failed = True
        if self._tls is not None:
            self._tls.refuse()
        elif self._transport is not None:
            self._transport.abort()
        self.on_failed(error)

    def _begin(self) -> None:
        self._reply(self._handshake.first_message())

    def _on_bytes(self) -> None:
        if self._channel is not None:
            self._channel.on_bytes()
        else:
            self._proceed(self._advance)

    def _decrypt(self) -> None:
        """Go on with TLS, and with what it yields."""
        tls = self._tls
        assert tls is not None
        if not tls.established:
            if not tls.shake_hands():
                return
            self._handshake.certified(tls.names)
            self._begin()
        while not tls.is_closing() and (count := tls.read_into(self._buffer.space())):
            self._buffer.received(count)
            self._on_bytes()

    def _proceed(self, step: Callable[[], None]) -> None:
        """Take a step that the other side may have made impossible."""
        try:
            step()
        except HandshakeFailed as error:
            self.fail(error)
        except FrameTooLarge as error:
            tls = looks_like_tls(error.length)
            self.fail(HandshakeFailed("it speaks TLS, this node does not") if tls else error)
        except ssl.SSLError as error:
            if self._channel is not None:
                self._channel.abort(told(error))
            else:
                self.fail(HandshakeFailed(told(error)))

    def _advance(self) -> None:
        while self._channel is None and not self._failed:
            frame = self._buffer.take(_HANDSHAKE_HEADER.size, MAX_MESSAGE)
            if frame is None:
                return
            step = self._handshake.receive(frame[1])
            self._reply(step.reply)
            if step.session is not None:
                self._open(step.session)

    def _open(self, session: Session) -> None:
        assert self._transport is not None
        self._buffer.enlarge(SHARED_CAPACITY)
        self._channel = Channel(
            self._transport,
            self._buffer,
            session,
            max_frame=self._max_frame,
            max_buffered=self._max_buffered,
        )
        self.on_open(self._channel)

    def _reply(self, message: bytes | None) -> None:
        if message is not None and self._transport is not None:
            self._transport.write(_HANDSHAKE_HEADER.pack(len(message)) + message)

    def secure(self, transport: asyncio.Transport) -> TlsTransport | None:
        """TLS over this transport, where it is configured."""
        raise NotImplementedError

    def on_open(self, channel: Channel) -> None:
        raise NotImplementedError

    def on_failed(self, error: Exception) -> None:
        raise NotImplementedError


class _DialerProtocol(_ChannelProtocol):
    """The connecting side: its outcome is a future."""

    def __init__(
        self,
        handshake: DialerHandshake,
        opened: asyncio.Future[Channel],
        *,
        max_frame: int,
        max_buffered: int,
    ) -> None:
        super().__init__(handshake, max_frame=max_frame, max_buffered=max_buffered)
        self._dialer = handshake
        self._opened = opened

    def secure(self, transport: asyncio.Transport) -> TlsTransport | None:
        tls = self._dialer.credential.tls
        return None if tls is None else tls.dial(transport, self._dialer.expected_node_id)

    def on_open(self, channel: Channel) -> None:
        if self._opened.done():
            channel.close()
        else:
            self._opened.set_result(channel)

    def on_failed(self, error: Exception) -> None:
        if not self._opened.done():
            self._opened.set_exception(error)


async def dial(
    host: str,
    port: int,
    *,
    credential: Credential,
    service: str,
    expected_node_id: int,
    rng: Random,
    deadline: float,
    max_frame: int = MAX_FRAME,
    max_buffered: int = MAX_BUFFERED,
) -> Channel:
    """Connect to a node and prove each other's membership by `deadline` (loop time).

    Raises ConnectionRefusedError when nobody listens (RULES B4 makes use of that), other OSErrors
    of the network, TimeoutError, or HandshakeFailed when the other side is not that node.
    """
    loop = asyncio.get_running_loop()
    opened: asyncio.Future[Channel] = loop.create_future()
    handshake = DialerHandshake(credential, rng, service=service, expected_node_id=expected_node_id)
    protocol = _DialerProtocol(handshake, opened, max_frame=max_frame, max_buffered=max_buffered)
    try:
        async with asyncio.timeout_at(deadline):
            await loop.create_connection(lambda: protocol, host, port)
            return await opened
    except BaseException:
        # Cancelled or late: whatever the handshake still does, nobody waits for its channel.
        if opened.done() and not opened.cancelled() and opened.exception() is None:
            opened.result().close()
        opened.cancel()
        protocol.fail(HandshakeFailed("given up"))
        raise


class ChannelServerProtocol(_ChannelProtocol):
    """The accepting side of one connection."""

    def __init__(self, acceptor: Acceptor) -> None:
        limits = acceptor.limits
        super().__init__(
            ListenerHandshake(acceptor.credential, acceptor.rng),
            max_frame=limits.max_frame,
            max_buffered=limits.max_buffered,
        )
        self._acceptor = acceptor
        self._deadline: asyncio.TimerHandle | None = None
        self._address: object = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._address = transport.get_extra_info("peername")
        loop = asyncio.get_running_loop()
        self._deadline = loop.call_later(
            self._acceptor.limits.handshake_s,
            self.fail,
            HandshakeFailed("the handshake took too long"),
        )
        self._acceptor.on_connection(self)
        super().connection_made(transport)

    def secure(self, transport: asyncio.Transport) -> TlsTransport | None:
        tls = self._acceptor.credential.tls
        return None if tls is None else tls.accept(transport)

    def on_open(self, channel: Channel) -> None:
        self._forget()
        self._acceptor.on_channel(channel)

    def on_failed(self, error: Exception) -> None:
        self._forget()
        logger.warning("inter-node connection from %s refused: %s", self._address, error)

    def _forget(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._acceptor.on_decided(self)


class Acceptor:
    """Protocol factory of a listener: bounds what strangers may hold, yields proven channels."""

    def __init__(
        self,
        credential: Credential,
        rng: Random,
        on_channel: Callable[[Channel], None],
        limits: ChannelLimits,
    ) -> None:
        self.credential = credential
        self.rng = rng
        self.on_channel = on_channel
        self.limits = limits
        # Oldest first. A dict, since the order decides who is dropped.
        self._unauthenticated: dict[ChannelServerProtocol, None] = {}

    def __call__(self) -> ChannelServerProtocol:
        return ChannelServerProtocol(self)

    def close(self) -> None:
        """Drop the connections whose handshake is under way; channels belong to their receivers."""
        for protocol in list(self._unauthenticated):
            protocol.fail(HandshakeFailed("the listener closes"))

    def on_connection(self, protocol: ChannelServerProtocol) -> None:
        self._unauthenticated[protocol] = None
        if len(self._unauthenticated) > self.limits.max_unauthenticated:
            # The oldest and not the newest: peers need one round trip, so a flood of silent
            # strangers pushes out strangers.
            next(iter(self._unauthenticated)).fail(HandshakeFailed("too many strangers"))

    def on_decided(self, protocol: ChannelServerProtocol) -> None:
        self._unauthenticated.pop(protocol, None)


def accept_factory(
    credential: Credential,
    rng: Random,
    on_channel: Callable[[Channel], None],
    limits: ChannelLimits | None = None,
) -> Acceptor:
    """What `loop.create_server` takes as its protocol factory; TLS comes with the credential.

    `on_channel` gets each proven channel once and must call its `set_receiver` or `close` it.
    """
    return Acceptor(credential, rng, on_channel, limits or ChannelLimits())
