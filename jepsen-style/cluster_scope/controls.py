"""Bugs put into the product from outside, to show that the scope sees them.

Each undoes one rule by replacing one or two of the product's functions for the length of a run.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from ...metadata.apply import leaders as apply_leaders
from ...metadata.draft import ImageDraft
from ...metadata.image import NO_LEADER, PartitionImage
from ...metadata.steps import Steps
from ...partitions.leader import Effect, HighWatermarkAdvanced, LeaderState
from ...partitions.partition import ACKS_ALL, ACKS_LEADER, Partition
from ...partitions.storage.group_commit import GroupCommit
from ...partitions.storage.sync_round import SyncRound
from ...seam import Fatal
from ...wire import ErrorCode
from .group_controls import GROUP_BUGS
from .late_controls import LATE_BUGS
from .lifetime_controls import LIFETIME_BUGS
from .producer_controls import PRODUCER_BUGS
from .replacing import replaced
from .replication_controls import REPLICATION_BUGS

RETRY_S = 0.02


def _truncate_to_high_watermark() -> contextlib.AbstractContextManager[None]:
    """As before KIP-101: who follows cuts what it does not know committed (RULES D6)."""

    def put(original: Callable[..., None]) -> Callable[..., None]:
        def become_follower(self: Partition, image: PartitionImage) -> None:
            original(self, image)
            state = self.follower
            assert state is not None
            watermark = state.high_watermark

            async def cut() -> None:
                if state is self.follower and not self._cuts_running and not self.closed:
                    await self._cut(state, lambda: self.log.truncate_to(watermark))

            if image.leader != NO_LEADER and watermark < self.log.log_end_offset:
                asyncio.ensure_future(cut())  # noqa: RUF006 - the host's loop keeps its tasks

        return become_follower

    return replaced(Partition, "_become_follower", put)


def _ack_before_isr() -> contextlib.AbstractContextManager[None]:
    """`acks=all` is answered when the leader has synced (RULES D5)."""

    def put(original: Callable[..., None]) -> Callable[..., None]:
        def await_answer(self: Partition, appended: Any, *, acks: int, **rest: Any) -> None:
            original(self, appended, acks=ACKS_LEADER if acks == ACKS_ALL else acks, **rest)

        return await_answer

    return replaced(Partition, "await_answer", put)


def _hw_from_leader_alone() -> contextlib.AbstractContextManager[None]:
    """The high watermark is the leader's own synced end (RULES D1)."""

    def put(_: Callable[..., list[Effect]]) -> Callable[..., list[Effect]]:
        def advance(self: LeaderState, now_ms: int) -> list[Effect]:
            if self.under_min_isr or self.synced_offset <= self.high_watermark:
                return []
            self.high_watermark = self.synced_offset
            return [HighWatermarkAdvanced(self.synced_offset)]

        return advance

    return replaced(LeaderState, "_advance_high_watermark", put)


@contextlib.contextmanager
def _no_epoch_fencing() -> Iterator[None]:
    """Nobody looks at leader epochs: of requests, of fetched batches, of ISR changes (KIP-101,
    KIP-320, RULES D6)."""

    def refusal(original: Callable[..., ErrorCode]) -> Callable[..., ErrorCode]:
        def without_epochs(draft: Any, proposer: int, partition: Any, change: Any) -> ErrorCode:
            change = replace(
                change,
                leader_epoch=partition.leader_epoch,
                partition_epoch=partition.partition_epoch,
            )
            return original(draft, proposer, partition, change)

        return without_epochs

    def check_epoch(_: Any) -> Any:
        return lambda self, current_leader_epoch: ErrorCode.NONE

    def diverges(_: Any) -> Any:
        return lambda self, fetch_offset, last_fetched_epoch: None

    with (
        replaced(Partition, "check_epoch", check_epoch),
        replaced(Partition, "diverges", diverges),
        replaced(apply_leaders, "_refusal", refusal),
    ):
        yield


def _isr_shrink_not_persisted() -> contextlib.AbstractContextManager[None]:
    """A shrink counts as soon as it is proposed (RULES D2)."""

    def put(_: property) -> property:
        def maximal_isr(self: LeaderState) -> tuple[int, ...]:
            return self.isr if self.in_flight is None else self.in_flight.members

        return property(maximal_isr)

    return replaced(LeaderState, "maximal_isr", put)


def _fsync_dropped_on_roll() -> contextlib.AbstractContextManager[None]:
    """What was written to a segment between its last sync and the roll is never synced (C4, C5)."""

    def put(original: Callable[..., Any]) -> Callable[..., Any]:
        async def sync(self: SyncRound) -> None:
            for segment in self.sealed:
                segment.seal_indexes()
            await original(replace(self, sealed=()))

        return sync

    return replaced(SyncRound, "sync", put)


def _same_epoch_after_restart() -> contextlib.AbstractContextManager[None]:
    """A restarted leader goes on in the epoch it led before (RULES B1)."""

    def put(original: Callable[..., Steps[None]]) -> Callable[..., Steps[None]]:
        def take_away(self: ImageDraft, node_id: int, **lost: bool) -> Steps[None]:
            # Only registrations say whether something was lost.
            if not lost or lost["lost_disk"]:
                yield from original(self, node_id, **lost)

        return take_away

    return replaced(ImageDraft, "take_away", put)


def _failed_sync_retried() -> contextlib.AbstractContextManager[None]:
    """A log's failed sync is tried again, and believed (RULES C4)."""

    def put(original: Callable[..., Any]) -> Callable[..., Any]:
        async def carry_out(self: GroupCommit[Any], round_: Any, **how: Any) -> Any:
            while True:
                try:
                    return await original(self, round_, **how)
                except Fatal:
                    await asyncio.sleep(RETRY_S)

        return carry_out

    return replaced(GroupCommit, "_carry_out", put)


BUGS: Mapping[str, Callable[[], contextlib.AbstractContextManager[None]]] = {
    "truncate-to-high-watermark": _truncate_to_high_watermark,
    "ack-before-isr": _ack_before_isr,
    "hw-from-leader-alone": _hw_from_leader_alone,
    "no-epoch-fencing": _no_epoch_fencing,
    "isr-shrink-not-persisted": _isr_shrink_not_persisted,
    "fsync-dropped-on-roll": _fsync_dropped_on_roll,
    "same-epoch-after-restart": _same_epoch_after_restart,
    "failed-sync-retried": _failed_sync_retried,
    **REPLICATION_BUGS,
    **LATE_BUGS,
    **LIFETIME_BUGS,
    **PRODUCER_BUGS,
    **GROUP_BUGS,
}
"""By name."""


@contextlib.contextmanager
def broken_by(bug: str | None) -> Iterator[None]:
    """The product has this bug meanwhile. Raises KeyError for one that is not there."""
    if bug is None:
        yield
        return
    with BUGS[bug]():
        yield
