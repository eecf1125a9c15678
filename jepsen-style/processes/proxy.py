"""A TCP proxy in front of one listener of a node; what it does to the bytes, its links say."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from random import Random

from ...seam import accept_no_more
from ..schedule import sealed_frames as sealed
from .frames import Conversation, Piece, SealedConversation
from .links import CLIENTS, Link, Links, Party, party

LOOPBACK = "127.0.0.1"

HELD_PIECES = 64
"""On their way in one direction of one connection; the sender waits beyond that."""

MAX_HELLO_BYTES = 1 << 10


async def read_hello(reader: asyncio.StreamReader) -> bytes:
    """A node's first message to another, with its length. Raises EOFError, or Broken when it is
    none."""
    prefix = await reader.readexactly(sealed.LENGTH_BYTES)
    size = int.from_bytes(prefix, "big")
    if not sealed.HELLO.size <= size <= MAX_HELLO_BYTES:
        raise Broken
    return prefix + await reader.readexactly(size)


def dialer_of(hello: bytes) -> Party:
    """Who opens an inter-node connection."""
    return party(sealed.dialing_node(hello[sealed.LENGTH_BYTES :]))


class Broken(Exception):
    """The connection ends here, both ways."""


class Proxy:
    """One listener. `between_nodes`: of the inter-node listener, whose frames are sealed: whoever
    misses one ends the connection, so the first that is lost is the last that is carried."""

    def __init__(
        self,
        links: Links,
        node_id: int,
        upstream: tuple[str, int],
        dice: Random,
        *,
        between_nodes: bool = False,
    ) -> None:
        self._links = links
        self._node = party(node_id)
        self._upstream = upstream
        self._dice = dice
        self._between_nodes = between_nodes
        self._server: asyncio.Server | None = None
        self._connections: dict[asyncio.Task[None], list[asyncio.StreamWriter]] = {}
        self._closed = False
        self.lost_frames = 0
        self.torn_frames = 0

    async def start(self, host: str = LOOPBACK) -> tuple[str, int]:
        """Where it listens."""
        self._server = await asyncio.start_server(self._accept, host, 0)
        host, port = self._server.sockets[0].getsockname()
        return host, port

    async def close(self) -> None:
        self._closed = True
        if self._server is not None:
            await accept_no_more(self._server)
        connections = dict(self._connections)
        for task in connections:
            task.cancel()
        await asyncio.gather(*connections, return_exceptions=True)
        # A task that was cancelled before its first step has run nothing, its end neither.
        for writers in connections.values():
            _abort(writers)

    def reset(self) -> None:
        """End every connection at once, whatever is under way."""
        for writers in self._connections.values():
            _abort(writers)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers = [writer]
        if self._closed:
            # It was on its way through the loop when the listener closed.
            _abort(writers)
            return
        task = asyncio.get_running_loop().create_task(self._serve(reader, writers))
        self._connections[task] = writers
        task.add_done_callback(lambda ended: self._connections.pop(ended, None))

    async def _serve(
        self, reader: asyncio.StreamReader, writers: list[asyncio.StreamWriter]
    ) -> None:
        try:
            hello = await read_hello(reader) if self._between_nodes else b""
            dialer = dialer_of(hello) if hello else CLIENTS
            there, back = self._links.link(dialer, self._node), self._links.link(self._node, dialer)
            await there.passable()
            node_reader, node_writer = await asyncio.open_connection(*self._upstream)
            writers.append(node_writer)
            node_writer.write(hello)
            conversation = SealedConversation(hello) if hello else Conversation()
            asked = conversation.requests(reader)
            answered = conversation.answers(node_reader)
            async with asyncio.TaskGroup() as both:
                both.create_task(self._flow(asked, writers[1], there))
                both.create_task(self._flow(answered, writers[0], back))
        except* (OSError, EOFError, Broken):
            pass
        finally:
            _abort(writers)

    async def _flow(
        self, source: AsyncIterator[Piece], target: asyncio.StreamWriter, link: Link
    ) -> None:
        """Raises Broken at the end of the stream: nobody here half-closes a connection."""
        on_its_way: asyncio.Queue[tuple[float, Piece | None]] = asyncio.Queue(HELD_PIECES)
        async with asyncio.TaskGroup() as ends:
            ends.create_task(self._take(source, link, on_its_way))
            ends.create_task(self._deliver(on_its_way, target, link))

    async def _take(
        self,
        source: AsyncIterator[Piece],
        link: Link,
        on_its_way: asyncio.Queue[tuple[float, Piece | None]],
    ) -> None:
        now = asyncio.get_running_loop().time
        with contextlib.suppress(OSError):
            async for piece in source:
                due = now() + link.latency_s + link.jitter_s * self._dice.random()
                await on_its_way.put((due, piece))
        # An end travels like bytes do, so a cut link hides it.
        await on_its_way.put((now(), None))

    async def _deliver(
        self,
        on_its_way: asyncio.Queue[tuple[float, Piece | None]],
        target: asyncio.StreamWriter,
        link: Link,
    ) -> None:
        swallowing = False
        while True:
            due, piece = await on_its_way.get()
            await asyncio.sleep(due - asyncio.get_running_loop().time())
            await link.passable()
            if piece is None:
                target.close()
                raise Broken
            if piece.begins and not (swallowing and self._between_nodes):
                swallowing = self._is_lost(piece, link)
                if not swallowing and self._dice.random() < link.loss:
                    self.torn_frames += 1
                    target.write(piece.data[: len(piece.data) // 2])
                    await target.drain()
                    target.close()
                    raise Broken
            if not swallowing:
                target.write(piece.data)
                await target.drain()

    def _is_lost(self, piece: Piece, link: Link) -> bool:
        silently = None if piece.api is None else link.lost_apis.get(piece.api)
        if silently is None:
            return False
        self.lost_frames += 1
        if not silently:
            raise Broken
        return True


def _abort(writers: Sequence[asyncio.StreamWriter]) -> None:
    for writer in writers:
        writer.transport.abort()
