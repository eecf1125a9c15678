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

    def pin_directories(self, pins: Mapping[int, UUID]) -> None: ...
