"""The end of a listener: every connection that was accepted has an owner."""

from __future__ import annotations

import asyncio


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
