"""Do `leader-epoch-checkpoint` and the batch headers tell the same lineage?

No checksum covers either: Kafka's file has none, and a batch's leader epoch lies before the bytes
that its own covers. Truncation goes by the lineage (RULES D6), so one changed digit could cut off
what was acknowledged, let a diverging tail stay, or claim an epoch that no leader has had. Each is
therefore held against the other when a log is opened:

* `agrees` looks at the headers on both sides of every beginning of an epoch, and at the log's last
  one: two short walks an entry. One changed number in the file cannot pass, whatever it was.
* Where they disagree, `HeaderLineage` takes in all headers. If their epochs rise, the file is
  made anew from them. If they fall, or if one batch alone stands against a file that knows of no
  beginning beside it, the batch is not what was written: what counts as synced has its epoch in the
  file (C6). The log then ends before that batch, as before any other damage.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from operator import attrgetter
from typing import NamedTuple

from ...wire.records import BatchHeader
from .batch_scan import PlacedBatch
from .epoch_cache import EpochCache
from .errors import BatchDamaged
from .segment import Segment

SLICE_ENTRIES = 50
"""Entries looked at between two turns of the loop (RULES F1)."""

_base_offset = attrgetter("base_offset")


async def agrees(epochs: EpochCache, segments: Sequence[Segment]) -> bool:
    """Whether the headers around every entry, and the last one, bear the epochs that it says."""
    end_offset = segments[-1].next_offset
    beginnings = [entry.start_offset for entry in epochs.entries if entry.start_offset < end_offset]
    try:
        for number, start_offset in enumerate(beginnings):
            around = (
                _last_before(segments, start_offset) if number else None,
                _first_from(segments, start_offset),
            )
            if not all(_fits(epochs, header) for header in around):
                return False
            if number % SLICE_ENTRIES == SLICE_ENTRIES - 1:
                await asyncio.sleep(0)
        return _fits(epochs, _last_before(segments, end_offset))
    except BatchDamaged:
        # Whoever reads there first finds it again and says so; of the file it tells nothing.
        return True


def _fits(epochs: EpochCache, header: BatchHeader | None) -> bool:
    if header is None or header.partition_leader_epoch < 0:
        return True
    if epochs.entries and header.last_offset < epochs.entries[0].start_offset:
        return True  # Deleted: nothing is told of it any more.
    return header.partition_leader_epoch == _told(epochs, header)


def _told(epochs: EpochCache, header: BatchHeader) -> int:
    """The batch's epoch according to `epochs`, for which a log may start in the middle of one."""
    return epochs.epoch_for_offset(header.last_offset)


def _first_from(segments: Sequence[Segment], offset: int) -> BatchHeader | None:
    """The first batch that holds `offset` or lies above it."""
    for segment in segments[max(bisect_right(segments, offset, key=_base_offset) - 1, 0) :]:
        position = segment.locate(offset)
        if position is not None:
            return next((batch.header for batch in segment.walk(position)), None)
    return None


def _last_before(segments: Sequence[Segment], offset: int) -> BatchHeader | None:
    """The last batch that begins below `offset`."""
    for segment in reversed(segments[: bisect_left(segments, offset, key=_base_offset)]):
        last: BatchHeader | None = None
        for batch in segment.walk(segment.offset_index.lookup(offset - 1).position):
            if batch.header.base_offset >= offset:
                break
            last = batch.header
        if last is not None:
            return last
    return None


class Liar(NamedTuple):
    """The batch that is not what was written."""

    segment: int
    """Number of its segment."""
    position: int
    reason: str


class HeaderLineage:
    """The lineage that the headers tell, all of which are taken in, in order.

    `told`: what the file said, when it could be read; it must know the epochs of all batches below
    `recovery_point`.
    """

    def __init__(self, told: EpochCache | None, recovery_point: int) -> None:
        self.epochs = EpochCache()
        self._told = told
        self._recovery_point = recovery_point
        self._before: tuple[int, PlacedBatch] | None = None
        self._fall: Liar | None = None
        self._against: list[tuple[int, PlacedBatch]] = []
        """The first two synced batches of which the file says something else."""

    def take(self, segment: int, batch: PlacedBatch) -> None:
        header = batch.header
        epoch = header.partition_leader_epoch
        if epoch < 0:
            return
        self.epochs.advance(epoch, header.base_offset)
        if self._before is not None and self._fall is None:
            number, before = self._before
            if epoch < before.header.partition_leader_epoch:
                reason = (
                    f"leader epoch {before.header.partition_leader_epoch} before a batch of {epoch}"
                )
                self._fall = Liar(number, before.position, reason)
        self._before = segment, batch
        if len(self._against) < 2 and self._stands_against(header):
            self._against.append((segment, batch))

    def _stands_against(self, header: BatchHeader) -> bool:
        synced = header.next_offset <= self._recovery_point
        return synced and self._told is not None and not _fits(self._told, header)

    def liar(self) -> Liar | None:
        """The first of two batches whose epochs fall; else the one that alone stands against the
        file."""
        return self._fall or self._alone()

    def _alone(self) -> Liar | None:
        if self._told is None or len(self._against) != 1:
            return None
        ((number, batch),) = self._against
        header = batch.header
        beside = {header.base_offset, header.next_offset}
        if any(entry.start_offset in beside for entry in self._told.entries):
            # A changed number in the file does this, too.
            return None
        told = _told(self._told, header)
        reason = f"leader epoch {header.partition_leader_epoch}, the checkpoint knows {told}"
        return Liar(number, batch.position, reason)
