"""The quorum's connections: one to each peer for what we say, one from each for what it says.

An outgoing link is a FIFO. Each message in it carries the journal position that it depends on and
leaves, in order, once that is synced (RULES E2). Appends that follow each other are joined while
they wait, so a burst of proposals travels as one message. A link whose peer takes nothing for too
long ends (RULES E6). A connection that is lost loses what was in it; the engine finds out by
itself.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from random import Random
from uuid import UUID

from .channel import Channel, ChannelClosed, dial
from .handshake import Credential, HandshakeFailed
from .messages import (
    Append,
    BadMessage,
    Message,
    Ping,
    Pong,
    SnapshotChunk,
    decode_message,
    encode_message,
)
from .settings import RaftSettings
from .snapshots import SnapshotId

logger = logging.getLogger(__name__)

SERVICE = "raft"

_FRAME_OVERHEAD = 1 << 20
"""Added to the bytes of an append or chunk: other fields, terms, array headers."""

_CHANNEL_HIGH = 512 * 1024
"""Bytes handed to a channel ahead of what its peer has taken."""

_PUMP_BYTES = 1 << 20
"""Signed and sent in one turn of the loop (RULES F1)."""

_UNANSWERED_PINGS = 3


def max_frame(settings: RaftSettings) -> int:
    """Largest frame of the quorum's service."""
    largest = settings.append_bytes + settings.max_command_bytes
    return max(largest, settings.snapshot_chunk_bytes) + _FRAME_OVERHEAD


@dataclass(slots=True)
class SnapshotStream:
    """A snapshot to be sent, chunk by chunk, while we lead in `term`."""

    term: int
    commit_index: int
    id: SnapshotId
    data: memoryview | None = None
    offset: int = 0
    reading: bool = False


@dataclass(slots=True)
class _Queued:
    item: Message | SnapshotStream
    after: int
    size: int


class Link:
    """What we say to one peer."""

    def __init__(
        self,
        peer: int,
        address: tuple[str, int],
        *,
        credential: Credential,
        settings: RaftSettings,
        rng: Random,
        synced: Callable[[], int],
        leading_in: Callable[[int], bool],
        read_snapshot: Callable[[SnapshotStream], None],
        on_connected: Callable[[int, bool], None],
        on_refused: Callable[[int], None],
    ) -> None:
        self.peer = peer
        self._address = address
        self._credential = credential
        self._settings = settings
        self._rng = rng
        self._synced = synced
        self._leading_in = leading_in
        self._read_snapshot = read_snapshot
        self._on_connected = on_connected
        self._on_refused = on_refused
        self._channel: Channel | None = None
        self._queue: deque[_Queued] = deque()
        self._queued_bytes = 0
        self._pump_due = False
        self._hurry = asyncio.Event()
        self._closed = asyncio.Event()
        self._pongs = 0
        self._problem: str | None = None
        """Why the peer was refused, as last logged: a repeated failure is told once."""

    @property
    def connected(self) -> bool:
        return self._channel is not None

    @property
    def sending_snapshot(self) -> bool:
        return any(isinstance(queued.item, SnapshotStream) for queued in self._queue)

    def send(self, item: Message | SnapshotStream, *, after: int) -> bool:
        """Queue for sending; False when there is no connection. Never blocks."""
        if self._channel is None:
            return False
        size = _size(item)
        self._queued_bytes += size
        if not (isinstance(item, Append) and self._joined(item, after, size)):
            self._queue.append(_Queued(item, after, size))
        if self._queued_bytes > self._settings.outbox_bytes:
            self._channel.abort(f"more than {self._settings.outbox_bytes} bytes wait for it")
            self._down()
            return False
        self.pump_soon()
        return True

    def pump_soon(self) -> None:
        """Send what may leave, at the end of this turn of the loop."""
        if not self._pump_due and self._queue:
            self._pump_due = True
            asyncio.get_running_loop().call_soon(self._pump)

    def hurry(self) -> None:
        """The peer is there: do not wait with the next attempt to connect."""
        self._hurry.set()

    async def run(self) -> None:
        """Connect, serve, connect again; until cancelled."""
        pause = self._settings.redial_min_s
        while True:
            if await self._connect():
                pause = self._settings.redial_min_s
                await self._watch()
            self._hurry.clear()
            try:
                async with asyncio.timeout(pause * (0.5 + self._rng.random())):
                    await self._hurry.wait()
            except TimeoutError:
                pause = min(2 * pause, self._settings.redial_max_s)

    def close(self) -> None:
        if self._channel is not None:
            self._channel.close()
        self._channel = None
        self._queue.clear()

    async def _connect(self) -> bool:
        loop = asyncio.get_running_loop()
        host, port = self._address
        try:
            channel = await dial(
                host,
                port,
                credential=self._credential,
                service=SERVICE,
                expected_node_id=self.peer,
                rng=self._rng,
                deadline=loop.time() + self._settings.dial_timeout_s,
                max_frame=max_frame(self._settings),
                max_buffered=self._settings.outbox_bytes,
            )
        except ConnectionRefusedError:
            self._on_refused(self.peer)
            return False
        except HandshakeFailed as error:
            if self._problem != str(error):
                self._problem = str(error)
                logger.warning("no quorum connection to node %d: %s", self.peer, error)
            return False
        except OSError as error:
            # TimeoutError among them.
            logger.debug("no quorum connection to node %d: %s", self.peer, error)
            return False
        self._closed.clear()
        self._pongs = 0
        self._problem = None
        self._channel = channel
        channel.set_receiver(self._on_frame, self._on_close, self.pump_soon)
        self._on_connected(self.peer, True)
        return True

    async def _watch(self) -> None:
        """Return when the connection is lost, also one whose peer has silently gone."""
        sent, seen, unanswered = 0, 0, 0
        while self._channel is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._settings.ping_s):
                    await self._closed.wait()
            if self._channel is None:
                return
            unanswered = 0 if self._pongs != seen else unanswered + 1
            seen = self._pongs
            if unanswered > _UNANSWERED_PINGS:
                self._channel.abort("it does not answer")
                self._down()
                return
            sent += 1
            try:
                self._channel.send([encode_message(Ping(sent))])
            except ChannelClosed:
                self._down()

    def _on_frame(self, payload: memoryview) -> None:
        try:
            message = decode_message(payload)
        except BadMessage as error:
            self._abort(str(error))
            return
        if not isinstance(message, Pong):
            self._abort("a peer speaks on our connection")
            return
        self._pongs += 1

    def _abort(self, reason: str) -> None:
        if self._channel is not None:
            self._channel.abort(reason)
            self._down()

    def _on_close(self) -> None:
        if self._channel is not None and self._channel.closed:
            self._down()

    def _down(self) -> None:
        if self._channel is None:
            return
        self._channel = None
        self._queue.clear()
        self._queued_bytes = 0
        self._closed.set()
        self._on_connected(self.peer, False)

    def _joined(self, item: Append, after: int, size: int) -> bool:
        """Extend the last waiting append by one that continues it."""
        if not self._queue:
            return False
        last = self._queue[-1]
        waiting = last.item
        if (
            not isinstance(waiting, Append)
            or waiting.term != item.term
            or waiting.prev_index + len(waiting.entries) != item.prev_index
            or last.size + size > self._settings.append_bytes
        ):
            return False
        last_term = waiting.entries[-1][2] if waiting.entries else waiting.prev_term
        if last_term != item.prev_term:
            return False
        waiting.entries.extend(item.entries)
        waiting.commit_index = item.commit_index
        last.after = max(last.after, after)
        last.size += size
        return True

    def _pump(self) -> None:
        self._pump_due = False
        sent = 0
        while self._queue and self._channel is not None:
            head = self._queue[0]
            if head.after > self._synced():
                return  # The sync calls `pump_soon`.
            if self._channel.buffered > _CHANNEL_HIGH and not self._channel.writable:
                return  # The channel calls `pump_soon`.
            if sent > _PUMP_BYTES or self._channel.buffered > _CHANNEL_HIGH:
                self.pump_soon()
                return
            try:
                if isinstance(head.item, SnapshotStream):
                    if not self._leading_in(head.item.term):
                        self._pop()
                    elif head.item.data is None:
                        if not head.item.reading:
                            head.item.reading = True
                            self._read_snapshot(head.item)
                        return  # Whoever reads it calls `pump_soon`.
                    else:
                        sent += self._send_chunk(head.item, head.item.data)
                else:
                    self._pop()
                    self._channel.send([encode_message(head.item)])
                    sent += head.size
            except ChannelClosed:
                self._down()

    def _pop(self) -> None:
        self._queued_bytes -= self._queue.popleft().size

    def _send_chunk(self, stream: SnapshotStream, data: memoryview) -> int:
        assert self._channel is not None
        piece = bytes(data[stream.offset : stream.offset + self._settings.snapshot_chunk_bytes])
        chunk = SnapshotChunk(
            stream.term,
            stream.commit_index,
            stream.id.index,
            stream.id.term,
            len(data),
            stream.offset,
            piece,
        )
        self._channel.send([encode_message(chunk)])
        stream.offset += len(piece)
        if stream.offset >= len(data):
            self._pop()
        return len(piece)


def _size(item: Message | SnapshotStream) -> int:
    if isinstance(item, Append):
        return 64 + sum(len(command) + 16 for command, _, _ in item.entries)
    return 64


class Inbox:
    """What the peers say to us."""

    def __init__(
        self,
        *,
        on_message: Callable[[int, Message], None],
        on_peer: Callable[[int], None],
    ) -> None:
        self._on_message = on_message
        self._on_peer = on_peer
        self._channels: dict[int, Channel] = {}

    def adopt(self, channel: Channel) -> None:
        """Hear this peer over this connection, and no longer over an earlier one.

        Frames of the earlier one that are still on their way would arrive out of order.
        """
        peer = channel.peer.node_id
        earlier = self._channels.get(peer)
        self._channels[peer] = channel
        if earlier is not None:
            earlier.close()
        channel.set_receiver(
            lambda payload: self._on_frame(peer, channel, payload),
            lambda: self._on_close(peer, channel),
        )
        self._on_peer(peer)

    def directory_of(self, peer: int) -> UUID | None:
        channel = self._channels.get(peer)
        return None if channel is None else channel.peer.directory_id

    def drop(self, peer: int, reason: str) -> None:
        channel = self._channels.get(peer)
        if channel is not None:
            channel.abort(reason)

    def close(self) -> None:
        for channel in self._channels.values():
            channel.close()
        self._channels.clear()

    def _on_frame(self, peer: int, channel: Channel, payload: memoryview) -> None:
        if self._channels.get(peer) is not channel:
            return
        try:
            message = decode_message(payload)
        except BadMessage as error:
            channel.abort(str(error))
            return
        if isinstance(message, Ping):
            try:
                channel.send([encode_message(Pong(message.number))])
            except ChannelClosed:
                return
        else:
            self._on_message(peer, message)

    def _on_close(self, peer: int, channel: Channel) -> None:
        if self._channels.get(peer) is channel:
            del self._channels[peer]
