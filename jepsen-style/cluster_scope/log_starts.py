"""Where replicas let their logs begin, and whether they may (retention, KIP-107).

A log's start moves forward for three reasons, and never beyond what is committed:

* somebody has asked for it (DeleteRecords);
* **size**: as much stays behind it as `retention.bytes` says;
* **age**: everything before it is older than `retention.ms`, by the clock of that node;

and a follower may begin where another replica was right to begin. What lies below the largest such
start may be missing from anybody from then on. A start that nothing explains has taken records that
were promised; so has one that goes back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..clients.batches import Batch
from ..schedule.schedule import Retention
from .disks import Key, NodeDisk

BatchesAt = Callable[[Key, int], list[Batch]]
"""All that have ever stood at an offset."""


class LogStarts:
    def __init__(
        self,
        retention: Mapping[str, Retention],
        *,
        disks: Mapping[int, NodeDisk],
        batches_at: BatchesAt,
    ) -> None:
        """`retention`: by topic; others keep everything."""
        self._retention = retention
        self._disks = disks
        self._batches_at = batches_at
        self._allowed: dict[Key, int] = {}
        self._committed: dict[Key, int] = {}
        """The largest watermark of any replica so far."""

    def allowed(self, key: Key) -> int:
        """Below, nothing is promised any more."""
        return self._allowed.get(key, 0)

    def may_move(self, key: Key) -> bool:
        """Whether a replica may let records go of its own accord."""
        return key.rpartition("-")[0] in self._retention

    def allow(self, key: Key, before: int) -> None:
        self._allowed[key] = max(before, self.allowed(key))

    def committed(self, key: Key, high_watermark: int) -> None:
        if high_watermark > self._committed.get(key, 0):
            self._committed[key] = high_watermark

    def why_not(self, node_id: int, key: Key, start: int, wall_ms: int) -> str | None:
        """What is wrong with a log that begins there on this node; None: nothing."""
        if start <= self.allowed(key):
            return None
        committed = self._committed.get(key, 0)
        if start > committed:
            return f"only what lies below {committed} was ever committed"
        retention = self._retention.get(key.rpartition("-")[0])
        if retention is None:
            return f"nobody has asked to delete more than what lies below {self.allowed(key)}"
        if self._is_old(key, start, retention, wall_ms):
            return None
        left = sum(b.size for b in self._disks[node_id].batches(key) if b.base_offset >= start)
        if 0 <= retention.size <= left:
            return None
        return f"retention lets more stay than {left} bytes, or what is younger"

    def _is_old(self, key: Key, start: int, retention: Retention, wall_ms: int) -> bool:
        """Everything below `start` that anybody may still miss."""
        if retention.age_ms < 0:
            return False
        latest_ms = wall_ms - retention.age_ms
        return all(
            any(batch.max_timestamp_ms < latest_ms for batch in found)
            for offset in range(self.allowed(key), start)
            if (found := self._batches_at(key, offset))
        )
