"""The way to the other nodes: authenticated channels that carry Kafka requests."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from random import Random
from typing import cast

from ..metadata.commands import Origin
from ..metadata.controller import ControllerAnswer
from ..metadata.image import ClusterImage
from ..partitions import PeerLost
from ..raftlog import Channel, ChannelClosed, Credential, HandshakeFailed, dial
from ..seam import Buffer, with_pauses
from ..wire import (
    ApiKey,
    Message,
    RequestHeader,
    WireError,
    decode_response_in_steps,
    encode_request_in_steps,
)
from .addresses import Address
from .internode_frame import KAFKA_SERVICE, split_answer, with_origin

MAX_WAITING = 10_000
"""Unanswered requests on one channel; further ones raise PeerLost."""

INTERNODE_CLIENT_ID = "internode"


class InternodePeer:
    """`partitions.peer.Peer` over one channel. Closed by its first failure or missed deadline:
    answers come in order, so nothing behind a lost one can be waited for in time."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._next_correlation = 0
        self._waiting: deque[asyncio.Future[memoryview]] = deque()
        """For their answers, in the order in which the requests were sent."""
        self._lost: str | None = None
        channel.set_receiver(self._on_frame, self._on_close)

    @property
    def closed(self) -> bool:
        return self._lost is not None

    async def request(
        self,
        api_key: ApiKey,
        version: int,
        request: object,
        deadline: float,
        *,
        client_id: str = INTERNODE_CLIENT_ID,
    ) -> object:
        """The decoded response; `deadline` is the loop's time. Raises PeerLost."""
        answer = await self.ask(
            api_key, version, cast(Message, request), deadline, client_id=client_id
        )
        return answer.response

    async def ask(
        self,
        api_key: ApiKey,
        version: int,
        request: Message,
        deadline: float,
        origin: Origin | None = None,
        client_id: str = INTERNODE_CLIENT_ID,
    ) -> ControllerAnswer[Message]:
        """The response with the metadata index it depends on. Raises PeerLost.

        A long request is encoded, and a long answer decoded, over several turns of the loop (RULES
        F1): meanwhile it must not change, and others may be sent before it.
        """
        if self._lost is not None:
            raise PeerLost(self._lost)
        if len(self._waiting) >= MAX_WAITING:
            raise PeerLost(f"{MAX_WAITING} requests wait for {self._channel}")
        header = RequestHeader(
            api_key=api_key,
            api_version=version,
            correlation_id=self._next_correlation,
            client_id=client_id,
        )
        self._next_correlation = (self._next_correlation + 1) & 0x7FFF_FFFF
        epoch, sequence = (origin.broker_epoch, origin.sequence) if origin else (0, 0)
        parts = await with_pauses(encode_request_in_steps(header, request))
        payload = await self._answer_to(with_origin(epoch, sequence, parts), deadline, api_key)
        try:
            index, body = split_answer(payload)
            response = await with_pauses(decode_response_in_steps(header, body))
        except WireError as error:
            self._lose(f"a malformed answer: {error}")
            raise PeerLost(f"a malformed answer: {error}") from error
        return ControllerAnswer(response, index)

    async def _answer_to(self, parts: list[Buffer], deadline: float, api_key: ApiKey) -> memoryview:
        if self._lost is not None:
            raise PeerLost(self._lost)  # In the turns in which the request was encoded.
        try:
            self._channel.send(parts)
        except ChannelClosed as error:
            self._lose(str(error))
            raise PeerLost(str(error)) from error
        loop = asyncio.get_running_loop()
        answered: asyncio.Future[memoryview] = loop.create_future()
        self._waiting.append(answered)
        timer = loop.call_at(deadline, self._lose, f"no answer to {api_key.name} in time")
        try:
            return await answered
        finally:
            timer.cancel()

    def close(self) -> None:
        self._lose("closed here")

    def _on_frame(self, payload: memoryview) -> None:
        if not self._waiting:
            self._lose("an answer to nothing")
            return
        answered = self._waiting.popleft()
        if not answered.done():
            answered.set_result(payload)

    def _on_close(self) -> None:
        self._lose("the channel was closed")

    def _lose(self, reason: str) -> None:
        if self._lost is not None:
            return
        self._lost = f"node {self._channel.peer.node_id}: {reason}"
        self._channel.close()
        waiting, self._waiting = self._waiting, deque()
        for answered in waiting:
            if not answered.done():
                answered.set_exception(PeerLost(self._lost))


class Peers:
    """`partitions.peer.PeerConnector`: finds and dials nodes. Every channel is its caller's own."""

    def __init__(
        self,
        *,
        credential: Credential,
        voters: Mapping[int, Address],
        image: Callable[[], ClusterImage],
        rng: Random,
        on_refused: Callable[[int], None],
    ) -> None:
        self._credential = credential
        self._voters = voters
        self._image = image
        self._rng = rng
        self._on_refused = on_refused

    async def connect(self, node_id: int, deadline: float) -> InternodePeer:
        """Raises PeerLost."""
        host, port = self._address_of(node_id)
        try:
            channel = await dial(
                host,
                port,
                credential=self._credential,
                service=KAFKA_SERVICE,
                expected_node_id=node_id,
                rng=self._rng,
                deadline=deadline,
            )
        except ConnectionRefusedError as error:
            # Nobody listens: the process is dead, and the controller may say so (RULES B4).
            self._on_refused(node_id)
            raise PeerLost(f"node {node_id} at {host}:{port} refuses connections") from error
        except (OSError, TimeoutError, HandshakeFailed) as error:
            raise PeerLost(f"node {node_id} at {host}:{port}: {error}") from error
        return InternodePeer(channel)

    def _address_of(self, node_id: int) -> tuple[str, int]:
        broker = self._image().brokers.get(node_id)
        if broker is not None:
            return broker.internode.host, broker.internode.port
        # Before its first registration a voter is known from the configuration.
        voter = self._voters.get(node_id)
        if voter is None:
            raise PeerLost(f"node {node_id} is not known")
        return voter.host, voter.port
