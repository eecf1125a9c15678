"""One client's connection: bytes in, frames to the pipeline, answers out in corked writes."""

from __future__ import annotations

import asyncio
import logging
from typing import Protocol, cast

from ..raftlog.frame_buffer import FrameBuffer, FrameTooLarge
from ..seam import Buffer, OnFatal, TaskScope, frozen
from .budget import RequestBudget
from .caller import Caller
from .dispatch import Dispatcher
from .pipeline import Pipeline

logger = logging.getLogger(__name__)

RECEIVE_CAPACITY = 16 * 1024
"""Bytes of the buffer that a connection always has; a larger request gets one of its own."""

MIN_PROGRESS = 64 * 1024
"""Bytes by which a half-received request must grow within the partial-request timeout."""

WRITE_BUFFER = 256 * 1024
"""Bytes of answers that wait for the client before its next request is started."""

CLOSE_GRACE_S = 2.0
"""How long a closed connection may go on sending the answers it had."""

_LENGTH_SIZE = 4
_UNCORKED_SIZE = 64 * 1024
"""A part this large is handed over by itself: joining it with others would copy it."""


@frozen
class ConnectionLimits:
    max_request_bytes: int
    idle_s: float
    """Negative: for ever, as in Kafka."""
    partial_request_s: float
    max_requests: int = 100
    """Unanswered requests of one connection; no further one is read."""
    max_request_bytes_queued: int = 4 << 20
    """Bytes of unanswered requests of one connection; no further one is read. Enough to keep a
    sync and the network busy; more would let an acks=all producer run ahead of the followers by
    more than they fetch at once, and so out of the ISR."""


class Home(Protocol):
    """The listener, as a connection knows it."""

    limits: ConnectionLimits
    budget: RequestBudget
    dispatcher: Dispatcher
    tasks: TaskScope
    on_fatal: OnFatal

    def admit(self, connection: ClientConnection) -> str | None:
        """Why this connection is not wanted, or None."""
        ...

    def forget(self, connection: ClientConnection) -> None: ...


class ClientConnection(asyncio.BufferedProtocol):
    """Protocol of the client listener (case P05: nothing is reserved for what is only declared)."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._buffer = FrameBuffer(RECEIVE_CAPACITY)
        self._received = 0
        self._taken = 0
        self._progress_mark = (0, 0)
        """(bytes taken, bytes received) at the last look at a half-received request."""
        self._last_byte_at = 0.0
        self._reading = True
        self._cutting = False
        self._closing = False
        self._corked: list[Buffer] = []
        self._corked_bytes = 0
        self._timer: asyncio.TimerHandle | None = None
        self.caller = Caller("", 0)

    # asyncio.BufferedProtocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # By interface: uvloop's and the simulation's transports are not subclasses.
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=WRITE_BUFFER)
        host, port, *_ = transport.get_extra_info("peername") or ("", 0)
        self.caller = Caller(host, port)
        home = self._home
        self._pipeline = Pipeline(
            home.dispatcher,
            self.caller,
            encode=home.dispatcher.encode,
            send=self._send,
            fail=self.fail,
            on_progress=self._on_progress,
            tasks=home.tasks,
            on_fatal=home.on_fatal,
        )
        refusal = home.admit(self)
        if refusal is not None:
            self.fail(refusal)
            return
        self._last_byte_at = asyncio.get_running_loop().time()
        self._look_again_later()

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._buffer.space()

    def buffer_updated(self, nbytes: int) -> None:
        self._buffer.received(nbytes)
        self._received += nbytes
        self._last_byte_at = asyncio.get_running_loop().time()
        self._cut()

    def eof_received(self) -> bool:
        return False

    def pause_writing(self) -> None:
        self._pipeline.hold()

    def resume_writing(self) -> None:
        self._pipeline.release()

    def connection_lost(self, exc: Exception | None) -> None:
        self._closing = True
        if self._timer is not None:
            self._timer.cancel()
        self._corked.clear()
        self._home.budget.forget(self)
        self._home.budget.give_back(self._pipeline.size)
        self._pipeline.abandon()
        self._home.forget(self)

    # Reading

    def _cut(self) -> None:
        """Take the whole requests that have come, as far as the limits allow."""
        if self._cutting:
            return  # A request answered at once frees room within this very loop.
        self._cutting = True
        try:
            while not self._closing and self._may_read():
                taken = self._buffer.take(_LENGTH_SIZE, self._home.limits.max_request_bytes)
                if taken is None:
                    break
                frame = taken[1]
                self._taken += _LENGTH_SIZE + len(frame)
                self._home.budget.take(len(frame))
                self._pipeline.receive(frame)
        except FrameTooLarge as error:
            self.fail(f"{error}{_likely_protocol(error)}")
        finally:
            self._cutting = False

    def _may_read(self) -> bool:
        limits, budget = self._home.limits, self._home.budget
        pipeline = self._pipeline
        if (
            pipeline.count >= limits.max_requests
            or pipeline.size >= limits.max_request_bytes_queued
        ):
            self._stop_reading()
            return False
        if budget.exhausted:
            budget.wait(self)
            self._stop_reading()
            return False
        if not self._reading:
            self._reading = True
            self._transport.resume_reading()
        return True

    def _stop_reading(self) -> None:
        if self._reading:
            self._reading = False
            self._transport.pause_reading()

    def _on_progress(self, released: int) -> None:
        self._home.budget.give_back(released)
        if not self._reading:
            self._cut()

    def resume_after_pause(self) -> None:
        """The node has room again."""
        # Not inside the caller's frame, which may be another connection's.
        asyncio.get_running_loop().call_soon(self._cut)

    # Writing

    def _send(self, parts: list[Buffer]) -> None:
        if self._closing:
            return
        if not self._corked:
            asyncio.get_running_loop().call_soon(self._flush)
        length = sum(map(len, parts))
        self._corked.append(length.to_bytes(_LENGTH_SIZE, "big"))
        self._corked.extend(parts)
        self._corked_bytes += length
        if self._corked_bytes >= WRITE_BUFFER:
            # Now, so that a slow client is noticed before its next request is started.
            self._flush()

    def _flush(self) -> None:
        parts, self._corked, self._corked_bytes = self._corked, [], 0
        first = 0
        for position, part in enumerate(parts):
            if len(part) >= _UNCORKED_SIZE:
                if first < position:
                    self._transport.writelines(parts[first:position])
                self._transport.write(part)
                first = position + 1
        if first < len(parts):
            self._transport.writelines(parts[first:])

    # Ending

    def fail(self, reason: str) -> None:
        """Close, with one log line."""
        if not self._closing:
            logger.warning("closing the connection of %s: %s", self.caller, reason)
            self.close()

    def close(self) -> None:
        """Send the answers that are ready, then end."""
        if self._closing:
            return
        self._closing = True
        self._pipeline.abandon()
        self._flush()
        self._transport.close()
        if self._transport.get_write_buffer_size():
            asyncio.get_running_loop().call_later(CLOSE_GRACE_S, self._transport.abort)

    def _look_again_later(self) -> None:
        limits = self._home.limits
        delay = limits.partial_request_s
        if limits.idle_s >= 0:
            delay = min(delay, limits.idle_s)
        self._timer = asyncio.get_running_loop().call_later(delay, self._look)

    def _look(self) -> None:
        """Is the connection idle, or does a request arrive too slowly?"""
        silent_s = asyncio.get_running_loop().time() - self._last_byte_at
        idle_s = self._home.limits.idle_s
        if self._received > self._taken and self._reading:
            taken, received = self._progress_mark
            if self._taken == taken and self._received < received + MIN_PROGRESS:
                missing = self._received - self._taken
                self.fail(f"a request stopped arriving after {missing} bytes")
                return
            self._progress_mark = (self._taken, self._received)
        elif 0 <= idle_s <= silent_s and self._pipeline.count == 0:
            logger.debug("closing the idle connection of %s", self.caller)
            self.close()
            return
        self._look_again_later()


def _likely_protocol(error: FrameTooLarge) -> str:
    """A hint for people who point a browser, a health check or TLS at this port."""
    first = error.length.to_bytes(_LENGTH_SIZE, "big")
    if first in (b"GET ", b"POST", b"PUT ", b"HEAD", b"DELE", b"OPTI"):
        return " (this looks like HTTP)"
    if first[:2] == b"\x16\x03":
        return " (this looks like TLS)"
    return ""
