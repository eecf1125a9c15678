"""How many bytes of unanswered requests a node holds for all its clients together."""

from __future__ import annotations

from typing import Protocol


class Paused(Protocol):
    """A connection that stopped reading because the node was full."""

    def resume_after_pause(self) -> None: ...


class RequestBudget:
    """`queued.max.request.bytes`. Connections look at `exhausted` between two requests.

    A request that is being received is let in to its end: stopping it half-way could leave every
    connection waiting for bytes that none may read.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._used = 0
        # A dict: connections go on in the order in which they stopped.
        self._paused: dict[Paused, None] = {}

    @property
    def used(self) -> int:
        return self._used

    @property
    def exhausted(self) -> bool:
        return self._used >= self._limit

    def take(self, size: int) -> None:
        self._used += size

    def give_back(self, size: int) -> None:
        self._used -= size
        while self._paused and not self.exhausted:
            paused = next(iter(self._paused))
            del self._paused[paused]
            paused.resume_after_pause()

    def wait(self, paused: Paused) -> None:
        self._paused[paused] = None

    def forget(self, paused: Paused) -> None:
        self._paused.pop(paused, None)
