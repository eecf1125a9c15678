"""Silent brokers are fenced, and their partitions get other leaders in the same command (B4)."""

from __future__ import annotations

import asyncio
import contextlib

from ..commands import FenceBroker
from .office import Office

FENCE_RETRY = 0.2
"""Seconds until a fencing of unknown outcome is proposed again."""


async def watch_sessions(office: Office) -> None:
    """Runs as long as this node is in office."""
    loop = asyncio.get_running_loop()
    sessions, changed = office.sessions, office.sessions_changed
    assert sessions is not None
    assert changed is not None
    while True:
        changed.clear()
        unsettled = False
        for node_id, broker_epoch in sessions.expired(loop.time()):
            unsettled |= not await _fence(office, node_id, broker_epoch)
        planned = loop.time() + (FENCE_RETRY if unsettled else _pause(office))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout_at(planned):
                await changed.wait()
        late = loop.time() - planned
        if late > office.settings.heartbeat_interval:
            # The loop stood still: heartbeats of that time wait unread in the sockets.
            sessions.forgive(late)


def _pause(office: Office) -> float:
    """Until a session can end. Sessions only grow by themselves, so looking then is enough."""
    assert office.sessions is not None
    deadline = office.sessions.next_deadline()
    shortest = min(office.settings.session_timeout, office.settings.short_session)
    if deadline is None:
        return shortest
    return min(max(deadline - asyncio.get_running_loop().time(), 0.0), shortest)


async def _fence(office: Office, node_id: int, broker_epoch: int) -> bool:
    """Whether the session is settled: the broker is fenced, gone, or alive after all."""
    broker = office.image.brokers.get(node_id)
    sessions = office.sessions
    assert sessions is not None
    if broker is None or broker.broker_epoch != broker_epoch or broker.fenced:
        sessions.end(node_id)
        return True
    decided = await office.propose(
        lambda epoch: FenceBroker(epoch, node_id, broker_epoch), office.own_deadline()
    )
    if decided.index == 0:
        return False
    if (node_id, broker_epoch) in sessions.expired(asyncio.get_running_loop().time()):
        sessions.end(node_id)
    return True
