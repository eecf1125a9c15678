"""Requests that HTTP clients sent to the wrong node."""

from __future__ import annotations

import asyncio

import pytest

from logboat.node.http.forwarding import Forwarder
from logboat.node.http.ports import AnswerLost, Unreachable
from logboat.partitions.peer import PeerLost
from logboat.wire import ApiKey
from logboat.wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse


class FakePeer:
    def __init__(self) -> None:
        self.closed = False
        self.lost = False
        self.gate: asyncio.Event | None = None

    async def request(
        self,
        api_key: ApiKey,
        version: int,
        request: object,
        deadline: float,
        *,
        client_id: str = "",
    ) -> object:
        if self.gate is not None:
            await self.gate.wait()
        if self.lost:
            self.closed = True
            raise PeerLost("no answer")
        return ListOffsetsResponse()

    def close(self) -> None:
        self.closed = True


class FakeConnector:
    def __init__(self) -> None:
        self.made: list[FakePeer] = []
        self.refuses = False

    async def connect(self, node_id: int, deadline: float) -> FakePeer:
        if self.refuses:
            raise PeerLost("refused")
        self.made.append(FakePeer())
        return self.made[-1]


async def ask(forwarder: Forwarder, seconds: float = 5.0) -> object:
    deadline = asyncio.get_running_loop().time() + seconds
    return await forwarder.ask(2, ApiKey.LIST_OFFSETS, ListOffsetsRequest(), deadline)


async def test_a_channel_is_used_again() -> None:
    connector = FakeConnector()
    forwarder = Forwarder(connector)
    await ask(forwarder)
    await ask(forwarder)
    assert len(connector.made) == 1
    forwarder.close()
    assert connector.made[0].closed


async def test_a_channel_that_closed_while_idle_is_replaced() -> None:
    connector = FakeConnector()
    forwarder = Forwarder(connector)
    await ask(forwarder)
    connector.made[0].closed = True
    await ask(forwarder)
    assert len(connector.made) == 2


async def test_a_refused_connection_did_not_happen_a_lost_answer_may_have() -> None:
    connector = FakeConnector()
    forwarder = Forwarder(connector)
    await ask(forwarder)
    connector.made[0].lost = True
    with pytest.raises(AnswerLost):
        await ask(forwarder)
    connector.refuses = True
    with pytest.raises(Unreachable):
        await ask(forwarder)


async def test_a_waiting_request_does_not_hold_up_another() -> None:
    connector = FakeConnector()
    forwarder = Forwarder(connector)
    await ask(forwarder)
    gate = connector.made[0].gate = asyncio.Event()
    waiting = asyncio.create_task(ask(forwarder))
    await asyncio.sleep(0)
    await ask(forwarder)
    assert len(connector.made) == 2
    gate.set()
    await waiting


async def test_a_cancelled_request_takes_its_channel_with_it() -> None:
    connector = FakeConnector()
    forwarder = Forwarder(connector)
    await ask(forwarder)
    connector.made[0].gate = asyncio.Event()
    waiting = asyncio.create_task(ask(forwarder))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert connector.made[0].closed


async def test_no_more_channels_than_the_bound() -> None:
    connector = FakeConnector()
    forwarder = Forwarder(connector, max_channels=1)
    await ask(forwarder)
    gate = connector.made[0].gate = asyncio.Event()
    waiting = asyncio.create_task(ask(forwarder))
    await asyncio.sleep(0)
    with pytest.raises(Unreachable, match="in work"):
        await ask(forwarder, seconds=0.05)
    gate.set()
    await waiting
