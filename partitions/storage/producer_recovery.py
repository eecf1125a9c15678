"""Producer state from the bytes of the log: at start and after a cut.

From the newest usable `.snapshot` at or below the end, the batches above it are applied. A snapshot
holds one batch per producer, so the windows are refilled from the batches just below it.

What a walk of recovery could not know is filled in on the way: the transaction indexes of segments
that were walked. Then the states must be those at the first such segment, not the newest ones.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence

from ...seam import Disk, offload, read_file
from ...wire.records import BatchHeader
from .batch_scan import PlacedBatch
from .control_marker import marker_of
from .producer_states import Marker, ProducerBatch, ProducerStates, SnapshotDamaged
from .segment import Segment, file_name

logger = logging.getLogger(__name__)

SNAPSHOT_SUFFIX = ".snapshot"

WINDOW_REFILL_BYTES = 16 << 20
"""How far below a snapshot windows are refilled: what a client may still retry is young."""

INLINE_BYTES = 64 << 10
"""Snapshots up to here, 1,400 producers, are decoded on the loop."""

SLICE_BATCHES = 500
"""Batches walked between two turns of the loop (RULES F1)."""


def snapshot_offsets(disk: Disk, directory: str) -> list[int]:
    """Offsets of the `.snapshot` files, rising."""
    return [
        int(stem)
        for name in disk.list(directory)
        for stem, _, suffix in [name.partition(".")]
        if "." + suffix == SNAPSHOT_SUFFIX and stem.isdecimal()
    ]


def snapshot_path(directory: str, offset: int) -> str:
    return f"{directory}/{file_name(offset, SNAPSHOT_SUFFIX)}"


def remove_snapshots(disk: Disk, directory: str, doomed: Callable[[int], bool]) -> None:
    """Those whose offsets are `doomed`. Raises OSError."""
    for offset in snapshot_offsets(disk, directory):
        if doomed(offset):
            disk.remove(snapshot_path(directory, offset))


def producer_batch(header: BatchHeader, base_offset: int) -> ProducerBatch:
    """What a data batch at `base_offset` says of its producer; only where producer_id >= 0."""
    return ProducerBatch(
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
        base_offset,
        base_offset + header.last_offset_delta,
        header.max_timestamp,
        header.is_transactional,
    )


async def rebuild_producers(
    disk: Disk, directory: str, segments: Sequence[Segment], end_offset: int
) -> ProducerStates:
    """The state of all batches below `end_offset`, which ends the log `segments`.

    Snapshots that are damaged, that claim offsets beyond the end (RULES C2: the loss of power took
    what they counted), or that belong to no segment any more are removed. Raises BatchDamaged.
    """
    unknown = [segment.base_offset for segment in segments if not segment.transactions.known]
    states = await _newest_snapshot(disk, directory, min([end_offset, *unknown]), end_offset)
    if states is None:
        states = ProducerStates(segments[0].base_offset)
    else:
        states.refill_windows(
            [
                producer_batch(batch.header, batch.header.base_offset)
                async for _, batch in _walk_back(segments, states.map_end_offset)
                if batch.header.producer_id >= 0 and not batch.header.is_control
            ]
        )
    async for segment, batch in walk(segments, states.map_end_offset):
        apply_batch(states, segment, batch)
    states.map_end_offset = end_offset
    await _store_transactions(segments)
    _remove_strays(disk, directory, segments)
    return states


async def _newest_snapshot(
    disk: Disk, directory: str, limit: int, end_offset: int
) -> ProducerStates | None:
    """The newest whole one at or below `limit`."""
    for offset in reversed(snapshot_offsets(disk, directory)):
        path = snapshot_path(directory, offset)
        if limit < offset <= end_offset:
            continue
        if offset <= limit:
            try:
                return await _load(read_file(disk, path), offset)
            except SnapshotDamaged as damage:
                logger.warning("%s is damaged (%s): the one before it is used", path, damage)
        disk.remove(path)
    return None


async def _load(data: bytes, offset: int) -> ProducerStates:
    if len(data) <= INLINE_BYTES:
        return ProducerStates.load(data, offset)
    return await offload(lambda: ProducerStates.load(data, offset))


async def _store_transactions(segments: Sequence[Segment]) -> None:
    """The rebuilt transaction indexes are known now; those of sealed segments go to the device."""
    for number, segment in enumerate(segments):
        if not segment.transactions.known:
            segment.transactions.known = True
            if number + 1 < len(segments):
                await segment.store_transactions()


def _remove_strays(disk: Disk, directory: str, segments: Sequence[Segment]) -> None:
    """As Kafka: a snapshot lives as long as the segment that begins at its offset, and the newest
    one in any case."""
    bases = {segment.base_offset for segment in segments}
    for offset in snapshot_offsets(disk, directory)[:-1]:
        if offset not in bases:
            disk.remove(snapshot_path(directory, offset))


def apply_batch(states: ProducerStates, segment: Segment, batch: PlacedBatch) -> None:
    """Replication and recovery: the log is the truth, nothing is checked."""
    header = batch.header
    if header.producer_id < 0:
        return
    if header.is_control:
        marker = read_marker(segment, batch)
        if marker is not None:
            _, completed = states.apply_marker(marker)
            if not segment.transactions.known:
                segment.note_completed(completed)
    else:
        states.apply(producer_batch(header, header.base_offset))


def read_marker(segment: Segment, batch: PlacedBatch) -> Marker | None:
    return marker_of(batch.data or segment.read_batch(batch))


async def walk(
    segments: Sequence[Segment], offset: int
) -> AsyncIterator[tuple[Segment, PlacedBatch]]:
    """All batches at or above `offset`, yielding to the loop now and then. Raises BatchDamaged."""
    walked = 0
    for number, segment in enumerate(segments):
        if number + 1 < len(segments) and segments[number + 1].base_offset <= offset:
            continue
        start = segment.locate(offset) if offset > segment.base_offset else 0
        if start is None:
            continue
        for batch in segment.walk(start, read_bytes=1 << 18):
            yield segment, batch
            walked += 1
            if walked % SLICE_BATCHES == 0:
                await asyncio.sleep(0)


async def _walk_back(
    segments: Sequence[Segment], end_offset: int
) -> AsyncIterator[tuple[Segment, PlacedBatch]]:
    """Batches in the WINDOW_REFILL_BYTES below `end_offset`, in order."""
    left = WINDOW_REFILL_BYTES
    first_offset = segments[0].base_offset
    for segment in reversed(segments):
        if segment.base_offset >= end_offset:
            continue
        end = segment.locate(end_offset) if end_offset < segment.next_offset else segment.size
        start = (end or 0) - left
        if start > 0:
            first_offset = segment.offset_index.lookup_position(start).last_offset
            break
        left = -start
        first_offset = segment.base_offset
        if left <= 0:
            break
    async for segment, batch in walk(segments, first_offset):
        if batch.header.base_offset >= end_offset:
            return
        yield segment, batch
