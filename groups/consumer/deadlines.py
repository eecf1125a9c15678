"""What members must do in time; the next deadline of hundreds is known at once.

Nearly every heartbeat puts one off, and each asks for the first of all.
"""

from __future__ import annotations

import heapq
import itertools
from enum import Enum


class Wait(Enum):
    """What a member must do in time, or it is fenced."""

    SESSION = "heartbeat"
    REVOKE = "give up partitions"
    JOIN = "join again"
    """Classic members only: told to, within the rebalance timeout."""
    SYNC = "sync"
    """Classic members only: after a join."""


Awaited = tuple[str, Wait]
"""(member id, what it must do)."""

OUTDATED_AT_LEAST = 64
"""Of the queue's entries so many, or as many as hold, may be put off or gone."""


class Deadlines:
    """Times are milliseconds of the loop's clock."""

    def __init__(self) -> None:
        self._due: dict[Awaited, int] = {}
        self._queue: list[tuple[int, int, Awaited]] = []
        """(deadline, serial, what) with all of `_due`, and deadlines that no longer hold."""
        self._serials = itertools.count()

    def __contains__(self, awaited: Awaited) -> bool:
        return awaited in self._due

    def set(self, awaited: Awaited, due_ms: int) -> None:
        """Instead of the one before, if there was one."""
        if self._due.get(awaited) == due_ms:
            return
        self._due[awaited] = due_ms
        heapq.heappush(self._queue, (due_ms, next(self._serials), awaited))
        if len(self._queue) > OUTDATED_AT_LEAST + 2 * len(self._due):
            self._queue = [entry for entry in self._queue if self._holds(entry)]
            heapq.heapify(self._queue)

    def _holds(self, entry: tuple[int, int, Awaited]) -> bool:
        due_ms, _, awaited = entry
        return self._due.get(awaited) == due_ms

    def drop(self, awaited: Awaited) -> None:
        self._due.pop(awaited, None)

    def next_ms(self) -> int | None:
        while self._queue and not self._holds(self._queue[0]):
            heapq.heappop(self._queue)
        return self._queue[0][0] if self._queue else None

    def overdue(self, now_ms: int) -> list[str]:
        """Members that let a deadline pass."""
        late = [member_id for (member_id, _), due_ms in self._due.items() if due_ms <= now_ms]
        return list(dict.fromkeys(late))
