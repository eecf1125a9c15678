"""The asyncio transport over one simulated connection; behaves as the selector transport does."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable, Iterable
from contextvars import copy_context
from typing import TYPE_CHECKING, Any

from .segment import MAX_SEGMENT_BYTES, Kind

if TYPE_CHECKING:
    from .endpoint import Endpoint
    from .server import SimServer

READ_BYTES = 256 * 1024
"""Most that one read hands to a protocol."""

HIGH_WATER_BYTES = 64 * 1024


class SimTransport(asyncio.Transport):
    def __init__(
        self,
        endpoint: Endpoint,
        protocol: asyncio.BaseProtocol,
        *,
        server: SimServer | None = None,
        on_made: Callable[[], None] | None = None,
    ) -> None:
        # No "socket": code must allow for its absence.
        super().__init__({"peername": endpoint.remote, "sockname": endpoint.local})
        self._endpoint = endpoint
        self._loop = endpoint.loop
        self._server = server
        self._context = copy_context()
        self._buffer = bytearray()
        self._made = False
        self._reading = True
        self._read_scheduled = False
        self._write_scheduled = False
        self._eof = False
        self._closing = False
        self._lost = False
        self._protocol_paused = False
        self._high = HIGH_WATER_BYTES
        self._low = HIGH_WATER_BYTES // 4
        self.set_protocol(protocol)
        endpoint.transport = self
        self._soon(self._connection_made, on_made)

    def _soon(self, callback: Callable[..., object], *args: Any) -> None:
        self._loop.call_soon(callback, *args, context=self._context)

    def _connection_made(self, on_made: Callable[[], None] | None) -> None:
        if self._lost:
            return
        try:
            self._protocol.connection_made(self)
        finally:
            # Only now may data reach the protocol, however long ago it arrived.
            self._made = True
            self.wake_reader()
            if on_made is not None:
                on_made()

    # Protocol

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._protocol = protocol

    def get_protocol(self) -> asyncio.BaseProtocol:
        return self._protocol

    def is_closing(self) -> bool:
        # Nobody of a dead process can be blamed for not closing.
        return self._closing or self._loop.dead

    # Reading

    def is_reading(self) -> bool:
        return self._reading and not self._closing

    def pause_reading(self) -> None:
        self._reading = False

    def resume_reading(self) -> None:
        if not self._reading:
            self._reading = True
            self.wake_reader()

    def wake_reader(self) -> None:
        """There may be something to read."""
        wanted = self._made and self._reading and not self._closing and self._endpoint.inbox
        if wanted and not self._read_scheduled:
            self._read_scheduled = True
            self._soon(self._read)

    def _read(self) -> None:
        self._read_scheduled = False
        inbox = self._endpoint.inbox
        if not inbox or not self._reading or self._closing:
            return
        kind = inbox[0].kind
        if kind is Kind.RST:
            inbox.popleft()
            self._force_close(ConnectionResetError(errno.ECONNRESET, "Connection reset by peer"))
            return
        try:
            if kind is Kind.FIN:
                inbox.popleft()
                self._read_eof()
            elif isinstance(self._protocol, asyncio.BufferedProtocol):
                self._read_into(self._protocol)
            else:
                data = self._take(READ_BYTES)
                self._protocol.data_received(data)  # type: ignore[attr-defined]
        except Exception as error:
            self._fail(error, "Fatal error: the protocol raised while it was handed data")
        self.wake_reader()

    def _read_eof(self) -> None:
        if not self._protocol.eof_received():  # type: ignore[attr-defined]
            self.close()

    def _read_into(self, protocol: asyncio.BufferedProtocol) -> None:
        buffer = memoryview(protocol.get_buffer(-1))
        if not len(buffer):
            raise RuntimeError("get_buffer() returned an empty buffer")
        data = self._take(min(len(buffer), READ_BYTES))
        buffer[: len(data)] = data
        protocol.buffer_updated(len(data))

    def _take(self, limit: int) -> bytes:
        """Up to `limit` bytes that have arrived, over the borders of segments."""
        inbox = self._endpoint.inbox
        pieces: list[bytes] = []
        size = 0
        while inbox and inbox[0].kind is Kind.DATA and size < limit:
            data = inbox[0].data
            room = limit - size
            if len(data) > room:
                inbox[0] = inbox[0]._replace(data=data[room:])
                data = data[:room]
            else:
                inbox.popleft()
            pieces.append(data)
            size += len(data)
        self._endpoint.consumed(size)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    # Writing

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self._eof:
            raise RuntimeError("Cannot call write() after write_eof()")
        if not isinstance(data, (bytes, bytearray, memoryview)):
            raise TypeError(f"data must be bytes-like, not {type(data).__name__}")
        # Bytes written after close() are lost in any case; here always, so that it shows.
        if not len(data) or self._lost or self._closing or self._loop.dead:
            return
        if self._endpoint.reset:
            self._force_close(ConnectionResetError(errno.ECONNRESET, "Connection reset by peer"))
            return
        if self._buffer:
            self._buffer += data
        else:
            sent = self._send(memoryview(data).cast("B"))
            self._buffer += memoryview(data).cast("B")[sent:]
        self._maybe_pause_protocol()

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview]) -> None:
        self.write(b"".join(list_of_data))

    def _send(self, data: memoryview) -> int:
        """Hand to the kernel what it takes; returns the number of bytes."""
        sent = 0
        while sent < len(data) and (room := self._endpoint.room()) > 0:
            size = min(len(data) - sent, MAX_SEGMENT_BYTES, room)
            size = self._endpoint.link.split_at(size)
            self._endpoint.send_data(bytes(data[sent : sent + size]))
            sent += size
        return sent

    def wake_writer(self) -> None:
        """The kernel may have room again."""
        if self._buffer and not self._write_scheduled:
            self._write_scheduled = True
            self._soon(self._flush)

    def _flush(self) -> None:
        self._write_scheduled = False
        if self._lost or not self._buffer:
            return
        if self._endpoint.reset:
            self._force_close(ConnectionResetError(errno.ECONNRESET, "Connection reset by peer"))
            return
        with memoryview(self._buffer) as view:
            sent = self._send(view)
        del self._buffer[:sent]
        self._maybe_resume_protocol()
        if self._buffer:
            return
        if self._closing:
            self._soon(self._connection_lost, None)
        elif self._eof:
            self._endpoint.send_fin()

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        if self._closing or self._eof:
            return
        self._eof = True
        if not self._buffer:
            self._endpoint.send_fin()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        if high is None:
            high = HIGH_WATER_BYTES if low is None else 4 * low
        if low is None:
            low = high // 4
        if not high >= low >= 0:
            raise ValueError(f"high ({high!r}) must be >= low ({low!r}) must be >= 0")
        self._high = high
        self._low = low
        self._maybe_pause_protocol()

    def get_write_buffer_limits(self) -> tuple[int, int]:
        return self._low, self._high

    def get_write_buffer_size(self) -> int:
        return len(self._buffer)

    def _maybe_pause_protocol(self) -> None:
        if len(self._buffer) > self._high and not self._protocol_paused:
            self._protocol_paused = True
            self._protocol.pause_writing()

    def _maybe_resume_protocol(self) -> None:
        if self._protocol_paused and len(self._buffer) <= self._low:
            self._protocol_paused = False
            self._protocol.resume_writing()

    # Closing

    def close(self) -> None:
        if self._closing:
            return
        self._closing = True
        if not self._buffer:
            self._soon(self._connection_lost, None)

    def abort(self) -> None:
        self._force_close(None)

    def _fail(self, error: Exception, message: str) -> None:
        self._loop.call_exception_handler(
            {
                "message": message,
                "exception": error,
                "transport": self,
                "protocol": self._protocol,
            }
        )
        self._force_close(error)

    def _force_close(self, error: Exception | None) -> None:
        if self._lost:
            return
        self._buffer.clear()
        self._closing = True
        self._soon(self._connection_lost, error)

    def _connection_lost(self, error: Exception | None) -> None:
        if self._lost:
            return
        self._lost = True
        try:
            self._protocol.connection_lost(error)
        finally:
            self._endpoint.close()
            if self._server is not None:
                self._server.connection_ended()
