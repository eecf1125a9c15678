"""A process that is gone is noticed when its connections end, not when its session does.

A node's channel to this one has closed: if nobody listens at its address any more, that is proof of
death, and the active controller fences it at once (RULES B4). If somebody listens, or nobody
answers, nothing is proven and the session decides.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ..partitions import PeerLost
from ..seam import TaskScope
from .peers import Peers

DIAL_S = 0.5

LOOKS = 3
"""A dying process closes its connections one after another, its listener perhaps last."""

BETWEEN_LOOKS_S = 0.05


class DeathWatch:
    """`Peers` reports each refused connection; here it is only made sure that somebody dials."""

    def __init__(self, *, peers: Peers, worthwhile: Callable[[], bool], tasks: TaskScope) -> None:
        """`worthwhile`: whether this node could do anything about a death."""
        self._peers = peers
        self._worthwhile = worthwhile
        self._tasks = tasks
        self._looking: dict[int, None] = {}

    def on_channel_closed(self, node_id: int) -> None:
        if node_id not in self._looking and self._worthwhile():
            self._looking[node_id] = None
            self._tasks.spawn(self._look(node_id), name=f"is node {node_id} dead")

    async def _look(self, node_id: int) -> None:
        try:
            for _ in range(LOOKS):
                deadline = asyncio.get_running_loop().time() + DIAL_S
                try:
                    (await self._peers.connect(node_id, deadline)).close()
                except PeerLost:
                    return
                await asyncio.sleep(BETWEEN_LOOKS_S)
        finally:
            del self._looking[node_id]
