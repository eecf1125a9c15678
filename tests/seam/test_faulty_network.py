"""Connections that are cut, slowed down or broken on purpose: what arrives is what was sent, in
order and without a gap."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
import uvloop

from logboat.seam import accept_no_more
from logboat.seam.fault_switches import FaultSwitches
from logboat.seam.faulty_network import faulty
from tests.seam.injected import new_switches
from tests.waiting import until


class Peer(asyncio.BufferedProtocol):
    """One end of a connection between nodes; it knows whom it talks to from the first byte on."""

    def __init__(self, node_id: int | None) -> None:
        self.node_id = node_id
        self._space = bytearray(1024)
        self.received = b""
        self.transport: asyncio.Transport
        self.lost = asyncio.Event()

    @property
    def peer_node_id(self) -> int | None:
        return self.node_id

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]

    def get_buffer(self, sizehint: int) -> bytearray:
        return self._space

    def buffer_updated(self, nbytes: int) -> None:
        self.received += self._space[:nbytes]
        if self.node_id is None:
            self.node_id = self.received[0]

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost.set()


class Pair:
    """Node 1 listens; node 2 has dialled it. Faults are switched at node 2's end."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.switches: FaultSwitches = loop.fault_switches  # type: ignore[attr-defined]
        self.accepted: list[Peer] = []
        self.dialled = Peer(1)

    async def connect(self) -> None:
        loop = asyncio.get_running_loop()

        def accept() -> Peer:
            self.accepted.append(Peer(None))
            return self.accepted[-1]

        self.server = await loop.create_server(accept, "127.0.0.1", 0)
        port = self.server.sockets[0].getsockname()[1]
        await loop.create_connection(lambda: self.dialled, "127.0.0.1", port)

    async def close(self) -> None:
        await accept_no_more(self.server)
        for peer in (self.dialled, *self.accepted):
            peer.transport.abort()
            await peer.lost.wait()


LOOPS = [asyncio.SelectorEventLoop, uvloop.Loop]


def over_a_pair(
    test: Callable[[Pair], Awaitable[None]],
) -> Callable[[type[asyncio.AbstractEventLoop]], None]:
    """The test on a faulty loop of each kind, with two ends of a connection."""

    @pytest.mark.parametrize("kind", LOOPS)
    def run(kind: type[asyncio.AbstractEventLoop]) -> None:
        async def whole() -> None:
            pair = Pair(asyncio.get_running_loop())
            await pair.connect()
            await test(pair)
            await pair.close()

        with asyncio.Runner(loop_factory=faulty(kind, new_switches())) as runner:
            runner.run(whole())

    run.__name__ = test.__name__
    return run


@over_a_pair
async def test_without_faults_everything_passes(pair: Pair) -> None:
    pair.dialled.transport.write(b"\x02hello")
    await until(lambda: pair.accepted and pair.accepted[0].received == b"\x02hello")
    pair.accepted[0].transport.write(b"back")
    await until(lambda: pair.dialled.received == b"back")


@over_a_pair
async def test_a_cut_holds_both_directions_and_loses_nothing(pair: Pair) -> None:
    pair.dialled.transport.write(b"\x02one ")
    await until(lambda: pair.accepted and pair.accepted[0].received == b"\x02one ")
    pair.switches.cut_off(1, 60)
    assert pair.switches.cut == [1]
    pair.dialled.transport.writelines([b"tw", b"o "])
    pair.accepted[0].transport.write(b"answer")
    await asyncio.sleep(0.05)
    assert pair.accepted[0].received == b"\x02one "
    assert pair.dialled.received == b""
    assert pair.dialled.transport.get_write_buffer_size() == 4
    pair.switches.heal()
    pair.dialled.transport.write(b"three")
    await until(lambda: pair.accepted[0].received == b"\x02one two three")
    await until(lambda: pair.dialled.received == b"answer")


@over_a_pair
async def test_a_cut_ends_by_itself(pair: Pair) -> None:
    pair.switches.cut_off(1, 0.05)
    pair.dialled.transport.write(b"\x02late")
    await until(lambda: pair.accepted and pair.accepted[0].received == b"\x02late")
    assert pair.switches.cut == []


@over_a_pair
async def test_a_node_that_is_cut_off_cannot_be_dialled_until_it_is_healed(pair: Pair) -> None:
    pair.switches.cut_off(1, 60)
    port = pair.server.sockets[0].getsockname()[1]
    loop = asyncio.get_running_loop()
    again = Peer(1)
    dialling = asyncio.create_task(loop.create_connection(lambda: again, "127.0.0.1", port))
    await asyncio.sleep(0.05)
    assert not dialling.done()
    pair.switches.heal()
    await asyncio.wait_for(dialling, 30)
    again.transport.abort()


@over_a_pair
async def test_who_dials_in_is_cut_as_soon_as_it_has_said_who_it_is(pair: Pair) -> None:
    pair.switches.cut_off(2, 60)
    pair.dialled.transport.write(b"\x02")
    await until(lambda: pair.accepted and pair.accepted[0].node_id == 2)
    pair.dialled.transport.write(b"more")
    pair.accepted[0].transport.write(b"answer")
    await asyncio.sleep(0.05)
    assert pair.accepted[0].received == b"\x02"
    assert pair.dialled.received == b""
    pair.switches.heal()
    await until(lambda: pair.accepted[0].received == b"\x02more")
    await until(lambda: pair.dialled.received == b"answer")


@over_a_pair
async def test_a_delay_keeps_the_order(pair: Pair) -> None:
    loop = asyncio.get_running_loop()
    pair.switches.delay(1, 0.1, 60)
    assert pair.switches.delays == {1: 0.1}
    began = loop.time()
    pair.dialled.transport.write(b"\x02a")
    await asyncio.sleep(0.02)
    pair.dialled.transport.write(b"b")
    await until(lambda: pair.accepted and pair.accepted[0].received == b"\x02ab")
    assert loop.time() - began > 0.11


@over_a_pair
async def test_what_is_dropped_ends_its_connection_in_the_middle(pair: Pair) -> None:
    pair.dialled.transport.write(b"\x02one ")
    await until(lambda: pair.accepted and pair.accepted[0].received == b"\x02one ")
    pair.switches.lose(1, 1.0, 60)
    assert pair.switches.losses == {1: 1.0}
    pair.dialled.transport.write(b"two three ")
    await asyncio.wait_for(pair.dialled.lost.wait(), 30)
    await asyncio.wait_for(pair.accepted[0].lost.wait(), 30)
    assert pair.accepted[0].received in (b"\x02one ", b"\x02one two t")
    pair.switches.heal()
    assert not any(pair.switches.loses(1) for _ in range(100))


@over_a_pair
async def test_some_is_dropped_and_the_rest_passes(pair: Pair) -> None:
    pair.switches.lose(1, 0.3, 60)
    lost = sum(pair.switches.loses(1) for _ in range(1000))
    assert 200 < lost < 400
    assert not any(pair.switches.loses(2) for _ in range(100))


@over_a_pair
async def test_a_pause_stops_everything_a_moment_later(pair: Pair) -> None:
    loop = asyncio.get_running_loop()
    pair.switches.pause(0.5)
    began = loop.time()
    await asyncio.sleep(0)
    assert loop.time() - began < 0.5
    await asyncio.sleep(0.06)
    assert loop.time() - began > 0.5


@over_a_pair
async def test_other_protocols_are_left_alone(pair: Pair) -> None:
    class Plain(asyncio.Protocol):
        transport: asyncio.BaseTransport

        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            self.transport = transport

    plain = Plain()
    port = pair.server.sockets[0].getsockname()[1]
    transport, _ = await asyncio.get_running_loop().create_connection(
        lambda: plain, "127.0.0.1", port
    )
    assert plain.transport is transport
    assert type(transport).__name__ != "_Link"
    transport.abort()
