"""The end of a listener: every connection that was accepted has an owner."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

DOORS = 16
"""How many connections a turn of the loop takes from one port, where each listener takes one."""


async def more_doors(
    server: asyncio.AbstractServer, factory: Callable[[], asyncio.BaseProtocol], backlog: int
) -> list[asyncio.AbstractServer]:
    """More listeners at the server's port, whose queue they share; nobody is let in yet.

    uvloop (libuv) takes one connection in each turn from each listener. When hundreds come within a
    second, turns are longer than the time between two of them; what the system's queue does not
    hold it drops, and that client tries again after one second, three, or seven.
    """
    if isinstance(server, asyncio.Server):
        return []  # takes all that wait
    loop = asyncio.get_running_loop()
    return [
        await loop.create_server(
            factory,
            sock=socket.fromfd(listener.fileno(), listener.family, listener.type),
            backlog=backlog,
            start_serving=False,
        )
        for listener in getattr(server, "sockets", ())
        if hasattr(listener, "fileno")  # the simulation's are no sockets, and it takes all, too
        for _ in range(DOORS - 1)
    ]


async def accept_no_more(server: asyncio.AbstractServer) -> None:
    """Close the listener. Afterwards every connection that it accepted was told to its protocol,
    so that the owner of the protocols finds it; may be called twice.

    asyncio hands a connection over in the turns after it was accepted, and drops it unclosed when
    the listener was closed meanwhile: neither its protocol hears of it nor, until the collector
    comes by, the other side.
    """
    if not isinstance(server, asyncio.Server):
        # uvloop and the simulation hand over in the turn in which they accept.
        server.close()
        return
    for listener in server.sockets:
        server.get_loop().remove_reader(listener.fileno())
    await asyncio.sleep(0)  # The transports of those are made,
    server.close()
    await asyncio.sleep(0)  # and their protocols told.
