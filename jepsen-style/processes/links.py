"""The network between nodes and clients as it is now: a link for each direction of each pair."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

Party = str
"""`clients`, or a node by `party`."""

CLIENTS: Party = "clients"


def party(node_id: int) -> Party:
    return f"node-{node_id}"


@dataclass(slots=True)
class Link:
    """One direction. Cuts are counted: it is open again when the last one is healed."""

    latency_s: float = 0.0
    jitter_s: float = 0.0
    loss: float = 0.0
    """Chance that a frame breaks off in its middle and takes its connection with it: what is left
    of a lost packet on TCP."""
    lost_apis: dict[int, bool] = field(default_factory=dict)
    """Frames of these API keys never arrive; the value says whether silently, or with a reset."""
    _cuts: int = 0
    _open: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self._open.set()

    @property
    def is_open(self) -> bool:
        return self._open.is_set()

    def cut(self) -> None:
        """What is under way waits, as TCP's retransmissions do."""
        self._cuts += 1
        self._open.clear()

    def join(self) -> None:
        self._cuts -= 1
        if self._cuts == 0:
            self._open.set()

    async def passable(self) -> None:
        await self._open.wait()


class Links:
    """All links, made when first asked for."""

    def __init__(self) -> None:
        self._links: dict[tuple[Party, Party], Link] = {}

    def link(self, source: Party, target: Party) -> Link:
        return self._links.setdefault((source, target), Link())

    @property
    def known(self) -> Mapping[tuple[Party, Party], Link]:
        return self._links
