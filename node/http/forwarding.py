"""Requests to other nodes, for HTTP clients that asked this one.

A channel answers in the order it was asked, and a fetch may wait for a minute: each request has a
channel to itself while it lasts, and idle ones are kept for the next.
"""

from __future__ import annotations

import asyncio
from typing import Protocol

from ...partitions.peer import PeerLost
from ...wire import ApiKey, Message, api
from ..peers import INTERNODE_CLIENT_ID
from .ports import AnswerLost, Unreachable

MAX_CHANNELS = 32
"""To one node at the same time; further requests wait for one until their deadline."""

MAX_CALLS = 128
"""To one node at the same time, of the kind that waits for records: half of all HTTP requests that
this node takes on."""

MAX_IDLE = 4


class ClosablePeer(Protocol):
    """What is needed of `node.peers.InternodePeer`."""

    @property
    def closed(self) -> bool: ...

    async def request(
        self,
        api_key: ApiKey,
        version: int,
        request: object,
        deadline: float,
        *,
        client_id: str = INTERNODE_CLIENT_ID,
    ) -> object:
        """`client_id` may be named: who asks, for the requests that show it."""
        ...

    def close(self) -> None: ...


class Connector(Protocol):
    """What is needed of `node.peers.Peers`."""

    async def connect(self, node_id: int, deadline: float) -> ClosablePeer: ...


class Forwarder:
    """Sends requests to other nodes. `close` ends the idle channels; those in use end with their
    requests."""

    def __init__(self, peers: Connector, *, max_channels: int = MAX_CHANNELS) -> None:
        self._peers = peers
        self._max_channels = max_channels
        self._idle: dict[int, list[ClosablePeer]] = {}
        self._room: dict[int, asyncio.Semaphore] = {}
        self._closed = False

    async def ask(
        self,
        node_id: int,
        api_key: ApiKey,
        request: Message,
        deadline: float,
        *,
        client_id: str = INTERNODE_CLIENT_ID,
    ) -> Message:
        """The response of that node. Raises Unreachable or AnswerLost by `deadline`."""
        room = self._room.setdefault(node_id, asyncio.Semaphore(self._max_channels))
        try:
            async with asyncio.timeout_at(deadline):
                await room.acquire()
        except TimeoutError:
            raise Unreachable(
                f"{self._max_channels} requests to node {node_id} are in work"
            ) from None
        try:
            return await self._ask(node_id, api_key, request, deadline, client_id=client_id)
        finally:
            room.release()

    def close(self) -> None:
        self._closed = True
        for peers in self._idle.values():
            for peer in peers:
                peer.close()
        self._idle.clear()

    async def _ask(
        self,
        node_id: int,
        api_key: ApiKey,
        request: Message,
        deadline: float,
        *,
        client_id: str = INTERNODE_CLIENT_ID,
    ) -> Message:
        peer = await self._channel(node_id, deadline)
        try:
            version = api(api_key).max_stable_version
            response = await peer.request(api_key, version, request, deadline, client_id=client_id)
        except PeerLost as error:
            raise AnswerLost(str(error)) from error
        except BaseException:
            # Cancelled: the answer is still to come, and would be taken for the next request's.
            peer.close()
            raise
        self._keep(node_id, peer)
        assert isinstance(response, Message)
        return response

    async def _channel(self, node_id: int, deadline: float) -> ClosablePeer:
        idle = self._idle.get(node_id, [])
        while idle:
            peer = idle.pop()
            if not peer.closed:
                return peer
        try:
            return await self._peers.connect(node_id, deadline)
        except PeerLost as error:
            raise Unreachable(str(error)) from error

    def _keep(self, node_id: int, peer: ClosablePeer) -> None:
        idle = self._idle.setdefault(node_id, [])
        if self._closed or len(idle) >= MAX_IDLE:
            peer.close()
        else:
            idle.append(peer)
