"""The port of the other nodes: one handshake, then the quorum's messages or Kafka requests."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from random import Random

from ..metadata.commands import Origin
from ..metadata.controller import ControllerAnswer
from ..metadata.listeners import INTERNODE_LISTENER
from ..raftlog import (
    FEED_SERVICE,
    RAFT_SERVICE,
    Acceptor,
    Channel,
    ChannelClosed,
    Credential,
    accept_factory,
)
from ..seam import Buffer, OnFatal, TaskScope, accept_no_more
from ..wire import DecodeError, Message, Steps
from .addresses import Address
from .caller import Caller
from .dispatch import Dispatcher
from .internode_frame import KAFKA_SERVICE, split_request, with_index
from .listener import bind, port_of
from .pipeline import Pipeline
from .served import Call, Reply

logger = logging.getLogger(__name__)

MAX_UNANSWERED = 1_000
"""Requests of one node on one channel; no further one is read."""

MAX_UNANSWERED_BYTES = 64 << 20

BACKLOG = 128


class InternodeListener:
    """Owns the port and the channels of Kafka requests; those of the quorum go to the quorum."""

    def __init__(
        self,
        address: Address,
        *,
        adopt_raft: Callable[[Channel], None],
        on_channel_closed: Callable[[int], None],
        on_fatal: OnFatal,
    ) -> None:
        """`on_channel_closed` is told the node at the other end, while this listener is open."""
        self._address = address
        self._adopt_raft = adopt_raft
        self._on_channel_closed = on_channel_closed
        self._closing = False
        self._on_fatal = on_fatal
        self._tasks = TaskScope(on_fatal)
        self._server: asyncio.Server | None = None
        self._acceptor: Acceptor | None = None
        self._dispatcher: Dispatcher | None = None
        self._connections: dict[InternodeConnection, None] = {}

    async def bind(self) -> int:
        """Take the port, which is returned; nobody is let in yet. Raises CannotListen."""
        self._server = await bind(
            self._new_protocol, self._address, INTERNODE_LISTENER, backlog=BACKLOG
        )
        return port_of(self._server)

    async def serve(
        self,
        credential: Credential,
        rng: Random,
        dispatcher: Dispatcher,
        *,
        on_gone: Callable[[Caller], None] = lambda _: None,
    ) -> None:
        """`on_gone` is told of each caller whose channel has ended."""
        self._on_gone = on_gone
        assert self._server is not None
        self._acceptor = accept_factory(credential, rng, self._on_channel)
        self._dispatcher = dispatcher
        await self._server.start_serving()

    async def close(self) -> None:
        self._closing = True
        if self._server is not None:
            await accept_no_more(self._server)
        if self._acceptor is not None:
            self._acceptor.close()
        for connection in list(self._connections):
            connection.close()
        await self._tasks.close()

    def _new_protocol(self) -> asyncio.BaseProtocol:
        assert self._acceptor is not None, "a connection before `serve`"
        return self._acceptor()

    def _on_channel(self, channel: Channel) -> None:
        if channel.peer.service in (RAFT_SERVICE, FEED_SERVICE):
            self._adopt_raft(channel)
        elif channel.peer.service == KAFKA_SERVICE:
            assert self._dispatcher is not None
            connection = InternodeConnection(
                channel, self._dispatcher, self._tasks, self._on_fatal, self._forget
            )
            self._connections[connection] = None
        else:
            channel.abort(f"there is no service {channel.peer.service!r}")

    def _forget(self, connection: InternodeConnection) -> None:
        self._connections.pop(connection, None)
        self._on_gone(connection.caller)
        if not self._closing:
            self._on_channel_closed(connection.node_id)


class InternodeConnection:
    """Kafka requests of one other node over one channel."""

    def __init__(
        self,
        channel: Channel,
        dispatcher: Dispatcher,
        tasks: TaskScope,
        on_fatal: OnFatal,
        forget: Callable[[InternodeConnection], None],
    ) -> None:
        self._channel = channel
        self._dispatcher = dispatcher
        self._forget = forget
        self._paused = False
        self.caller = Caller(f"node-{channel.peer.node_id}", 0, channel.peer.node_id)
        self._pipeline = Pipeline(
            dispatcher,
            self.caller,
            encode=self._encode,
            send=self._send,
            fail=self._fail,
            on_progress=self._on_progress,
            tasks=tasks,
            on_fatal=on_fatal,
        )
        channel.set_receiver(self._on_frame, self._on_close)

    @property
    def node_id(self) -> int:
        return self._channel.peer.node_id

    def close(self) -> None:
        self._channel.close()

    def _on_frame(self, payload: memoryview) -> None:
        try:
            broker_epoch, sequence, request = split_request(payload)
        except DecodeError as error:
            self._fail(str(error))
            return
        # Who asks is what the handshake proved, not what the request says (RULES B5).
        node_id = self._channel.peer.node_id
        origin = Origin(node_id, broker_epoch, sequence) if sequence else None
        self._pipeline.receive(request, origin)
        pipeline = self._pipeline
        if pipeline.count >= MAX_UNANSWERED or pipeline.size >= MAX_UNANSWERED_BYTES:
            self._paused = True
            self._channel.pause_reading()

    def _encode(self, call: Call, reply: Reply) -> Steps[list[Buffer]]:
        if isinstance(reply, ControllerAnswer):
            index, response = reply.index, reply.response
        else:
            index, response = 0, reply
        assert isinstance(response, Message)
        return with_index(index, (yield from self._dispatcher.encode(call, response)))

    def _send(self, parts: list[Buffer]) -> None:
        try:
            self._channel.send(parts)
        except ChannelClosed as error:
            logger.debug("an answer to %s was dropped: %s", self.caller, error)

    def _fail(self, reason: str) -> None:
        self._channel.abort(reason)

    def _on_progress(self, released: int) -> None:
        if self._paused:
            self._paused = False
            self._channel.resume_reading()

    def _on_close(self) -> None:
        self._pipeline.abandon()
        self._forget(self)
