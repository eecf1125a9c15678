"""Bugs of replication that one fault alone hardly shows: each needs the faults that its test names.

Like those of `controls`, they are put into the product from outside.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ...metadata import elections
from ...partitions import offset_for_leader_epoch as epoch_ends
from ...partitions.follower import FetchPosition, FollowerState
from ...partitions.leader import LeaderState
from ...partitions.partition import Partition
from ...partitions.storage import PartitionLog
from ...wire import ErrorCode
from .replacing import replaced

MORE_THAN_ANY_ISR = 1 << 10


def _producers_survive_a_cut() -> contextlib.AbstractContextManager[None]:
    """A log that is cut back still knows the batches that were cut (RULES D6)."""

    def put(original: Callable[..., Any]) -> Callable[..., Any]:
        async def cut(self: PartitionLog, offset: int) -> None:
            kept = self.producers
            await original(self, offset)
            kept.map_end_offset = self.log_end_offset
            self.producers = kept

        return cut

    return replaced(PartitionLog, "_cut", put)


@contextlib.contextmanager
def _follower_confirms_unsynced() -> Iterator[None]:
    """A follower asks on when it has written, not when it has synced (RULES C2)."""

    def position(original: Callable[..., FetchPosition | None]) -> Callable[..., Any]:
        def unsynced(self: FollowerState, lineage: Any, **ends: int) -> FetchPosition | None:
            return original(self, lineage, **{**ends, "synced_offset": ends["log_end_offset"]})

        return unsynced

    def wait_synced(_: Callable[..., Any]) -> Callable[..., Any]:
        async def at_once(self: PartitionLog, offset: int) -> None:
            return

        return at_once

    with (
        replaced(FollowerState, "position", position),
        replaced(PartitionLog, "wait_synced", wait_synced),
    ):
        yield


def _deposed_leader_acks() -> contextlib.AbstractContextManager[None]:
    """Who waits when the lead is taken away is told that all is well (RULES D5)."""

    def put(original: Callable[..., None]) -> Callable[..., None]:
        def fail_waiting(self: Partition, error: ErrorCode) -> None:
            self.commit_room.fail_all(ErrorCode.NONE)
            original(self, error)

        return fail_waiting

    return replaced(Partition, "_fail_waiting", put)


def _duplicate_acked_at_once() -> contextlib.AbstractContextManager[None]:
    """A batch that was sent again need not wait as the first copy does (RULES D5)."""

    def put(original: Callable[..., None]) -> Callable[..., None]:
        def await_answer(self: Partition, appended: Any, **rest: Any) -> None:
            if appended.duplicate:
                rest["on_answer"](ErrorCode.NONE)
            else:
                original(self, appended, **rest)

        return await_answer

    return replaced(Partition, "await_answer", put)


def _elr_not_cleared() -> contextlib.AbstractContextManager[None]:
    """Who was eligible stays so although the watermark moves on (RULES D8)."""

    def put(original: Callable[..., Any]) -> Callable[..., Any]:
        def eligible(partition: Any, minimum: int, *rest: Any) -> Any:
            return original(partition, MORE_THAN_ANY_ISR, *rest)

        return eligible

    return replaced(elections, "_eligible", put)


def _watermark_below_min_isr() -> contextlib.AbstractContextManager[None]:
    """What waits when the ISR shrinks below its minimum is committed by those who are left (D1)."""

    def put(original: Callable[..., Any]) -> Callable[..., Any]:
        def advance(self: LeaderState, now_ms: int) -> Any:
            minimum, self._min_insync_replicas = self._min_insync_replicas, 1
            try:
                return original(self, now_ms)
            finally:
                self._min_insync_replicas = minimum

        return advance

    return replaced(LeaderState, "_advance_high_watermark", put)


def _lineage_forgotten() -> contextlib.AbstractContextManager[None]:
    """A consumer who asks where an earlier leader's epoch ends is told that nothing was written in
    it (KIP-320)."""

    def put(original: Callable[..., Any]) -> Callable[..., Any]:
        def answer(finder: Any, topic: str, asked: Any) -> Any:
            found = original(finder, topic, asked)
            if found.leader_epoch < asked.current_leader_epoch:
                found.end_offset = min(found.end_offset, 0)
            return found

        return answer

    return replaced(epoch_ends, "_answer", put)


REPLICATION_BUGS: Mapping[str, Callable[[], contextlib.AbstractContextManager[None]]] = {
    "producers-survive-a-cut": _producers_survive_a_cut,
    "follower-confirms-unsynced": _follower_confirms_unsynced,
    "deposed-leader-acks": _deposed_leader_acks,
    "duplicate-acked-at-once": _duplicate_acked_at_once,
    "elr-not-cleared": _elr_not_cleared,
    "watermark-below-min-isr": _watermark_below_min_isr,
    "lineage-forgotten": _lineage_forgotten,
}
"""By name."""
