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
        self._due: dict[Awaited, tuple[int, int]] = {}
        """Deadline, serial."""
        self._queue: list[tuple[int, int]] = []
        """All of those, and some that no longer hold."""
        self._holding: dict[int, None] = {}
        """The serials of `_due`."""
        self._serials = itertools.count()

    def __contains__(self, awaited: Awaited) -> bool:
        return awaited in self._due

    def set(self, awaited: Awaited, due_ms: int) -> None:
        """Instead of the one before, if there was one."""
        serial = next(self._serials)
        before = self._due.get(awaited)
        if before is not None:
            if before[0] == due_ms:
                return
            del self._holding[before[1]]
        self._due[awaited] = (due_ms, serial)
        self._holding[serial] = None
        heapq.heappush(self._queue, (due_ms, serial))
        if len(self._queue) > OUTDATED_AT_LEAST + 2 * len(self._due):
            self._queue = [entry for entry in self._queue if entry[1] in self._holding]
            heapq.heapify(self._queue)

    def drop(self, awaited: Awaited) -> None:
        before = self._due.pop(awaited, None)
        if before is not None:
            del self._holding[before[1]]

    def next_ms(self) -> int | None:
        while self._queue and self._queue[0][1] not in self._holding:
            heapq.heappop(self._queue)
        return self._queue[0][0] if self._queue else None

    def overdue(self, now_ms: int) -> list[str]:
        """Members that let a deadline pass."""
        late = [member_id for (member_id, _), (due_ms, _) in self._due.items() if due_ms <= now_ms]
        return list(dict.fromkeys(late))
