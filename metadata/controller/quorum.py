"""What the controller needs from the quorum's log: a small part of `raftlog.RaftLog`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol
from uuid import UUID

from ...raftlog import Outcome


class Quorum(Protocol):
    async def propose(self, command: bytes, deadline: float) -> Outcome:
        """Always answers by `deadline` (loop time)."""
        ...

    async def barrier(self, deadline: float) -> Outcome:
        """When it is `Applied`, everything acknowledged before the call is in this image."""
        ...

    def pin_directories(self, pins: Mapping[int, UUID]) -> None: ...
