"""A listener that closes while a connection is on its way to it."""

from __future__ import annotations

import asyncio
import gc
import socket
from contextlib import closing, suppress

import pytest

from logboat.seam import accept_no_more, more_doors
from logboat.seam.listening import DOORS


def test_a_turn_of_the_loop_takes_many_connections_from_one_port() -> None:
    """uvloop takes one alone from each listener: hundreds that came at once had to wait, and found
    the system's queue full."""
    uvloop = pytest.importorskip("uvloop")
    many = 5 * DOORS
    accepted: list[int] = []
    turns = 0

    class Owner(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            accepted.append(turns)
            transport.close()

    async def scenario() -> None:
        nonlocal turns
        server = await asyncio.get_running_loop().create_server(
            Owner, "127.0.0.1", 0, backlog=many, start_serving=False
        )
        doors = [server, *await more_doors(server, Owner, many)]
        for door in doors:
            await door.start_serving()
        address = server.sockets[0].getsockname()
        clients = [socket.create_connection(address) for _ in range(many)]
        async with asyncio.timeout(30):
            while len(accepted) < many:
                turns += 1
                await asyncio.sleep(0)
        for door in doors:
            await accept_no_more(door)
        for client in clients:
            client.close()

    with closing(uvloop.new_event_loop()) as loop:
        loop.run_until_complete(scenario())
    assert accepted[-1] - accepted[0] < many // 2


@pytest.mark.parametrize("turns", range(6))
async def test_a_connection_is_accepted_and_told_or_not_accepted_at_all(turns: int) -> None:
    told: list[asyncio.BaseTransport] = []

    class Owner(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            told.append(transport)

    server = await asyncio.get_running_loop().create_server(Owner, "127.0.0.1", 0)
    with closing(socket.create_connection(server.sockets[0].getsockname())) as client:
        client.setblocking(False)
        for _ in range(turns):
            await asyncio.sleep(0)
        await accept_no_more(server)
        await accept_no_more(server)
        for transport in told:
            transport.abort()  # type: ignore[attr-defined]
        # Either way the other side learns at once that nobody is there; what nobody closed would
        # be a ResourceWarning now.
        gc.collect()
        with suppress(ConnectionResetError):
            assert await asyncio.get_running_loop().sock_recv(client, 1) == b""
        assert len(told) == (turns >= 2)
