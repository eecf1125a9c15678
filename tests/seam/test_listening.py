"""A listener that closes while a connection is on its way to it."""

from __future__ import annotations

import asyncio
import gc
import socket
from contextlib import closing, suppress

import pytest

from logboat.seam import accept_no_more


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
