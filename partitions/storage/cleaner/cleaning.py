"""One round of compaction over one log.

First the map: of every key in the dirty part, the offset of its last record. Then, from the log's
first segment on, group by group: what outlives the round is copied into a new segment, which takes
the place of the group in one crash-safe step. A crash between two groups leaves a log that is
partly cleaned; the round is done again, and finds the same.

Nothing here holds the loop: see `pace`. Old segments stay readable until they are replaced; that
they are still in the log is checked when they are.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Sequence
from typing import NamedTuple

from ....seam import frozen
from ....wire.records import NO_EPOCH, BatchHeader, parse_header
from ..batch_scan import PlacedBatch, Scan
from ..control_marker import marker_of
from ..errors import BatchDamaged
from ..open_files import OpenFiles
from ..partition_log import PartitionLog
from ..raw_records import RawRecord, read_records
from ..segment import CLEANED, Segment
from ..spacer import is_spacer, sealed, spacer
from ..transaction_index import AbortedTransaction
from .batch_rebuild import emptied, kept_body
from .bodies import packed, unpacked
from .cleanable import Cleanable, grouped
from .key_map import NO_OFFSET, KeyMap
from .pace import Pace
from .retention import LastOfProducer, Retention, Verdict
from .transactions import CleanedTransactions

logger = logging.getLogger(__name__)

READ_BYTES = 64 << 10
WRITE_BYTES = 64 << 10
"""Gathered before they are written: so much a slice takes in a fraction of a millisecond."""

SLICE_RECORDS = 150

SYNC_BYTES = 1 << 20
"""New segments reach the device in pieces: one large sync would hold up those of the logs."""


class RoundOver(Exception):
    """The log was cut, deleted or closed meanwhile: what is done stays, the rest is for later."""


@frozen
class RoundResult:
    cleaned_offset: int
    """Below it every key has one record now."""
    bytes_before: int
    bytes_after: int
    longest_slice_s: float


class _Placed(NamedTuple):
    """A batch on its way into the new segment."""

    last_offset: int
    size: int
    max_timestamp: int


class _NewSegment:
    """A segment being made, with what is not yet written of it."""

    def __init__(self, segment: Segment, files: OpenFiles, pace: Pace) -> None:
        self.segment = segment
        self._files = files
        self._pace = pace
        self._held = bytearray()
        self._placed: list[_Placed] = []
        self._unsynced = 0

    async def add(self, header: BatchHeader, batch: bytes | bytearray | memoryview) -> None:
        self._held += batch
        self._placed.append(_Placed(header.last_offset, len(batch), header.max_timestamp))
        if len(self._held) >= WRITE_BYTES:
            await self.flush()

    async def end_at(self, end_offset: int, leader_epoch: int) -> None:
        """All is added. A segment that ended before the next one begins would look torn to
        recovery, so the offsets lost at the end get an empty batch of nobody."""
        next_offset = self._placed[-1].last_offset + 1 if self._placed else self.segment.next_offset
        if next_offset < end_offset:
            empty = spacer(end_offset - 1, end_offset, leader_epoch)
            await self.add(parse_header(empty), empty)
        await self.flush()

    async def flush(self) -> None:
        if not self._held:
            return
        self.segment.file().append([self._held])
        for placed in self._placed:
            self.segment.note(*placed)
        size = len(self._held)
        self._held = bytearray()
        self._placed = []
        self._unsynced += size
        await self._pace.spend(size=size)
        if self._unsynced >= SYNC_BYTES:
            self._unsynced = 0
            await self._pace.beside(self._files.sync(self.segment.log_path))


class CleaningRound:
    """Made for one log and thrown away."""

    def __init__(
        self,
        log: PartitionLog,
        target: Cleanable,
        *,
        files: OpenFiles,
        keys: KeyMap,
        pace: Pace,
        now_ms: int,
    ) -> None:
        self._log = log
        self._target = target
        self._files = files
        self._keys = keys
        self._pace = pace
        self._now_ms = now_ms
        self._transactions = CleanedTransactions()

    async def run(self) -> RoundResult:
        """Raises RoundOver, BatchDamaged, OSError (disk full: everything is as it was, but for
        groups already replaced, and one whose turn it was may be replaced later)."""
        try:
            await self._fill_map()
            end_offset = self._keys.latest_offset + 1
            segments = [s for s in self._target.segments if s.base_offset < end_offset]
            before, after = sum(segment.size for segment in segments), 0
            for group in grouped(segments, self._log.config):
                after += await self._clean_group(group)
        except FileNotFoundError as error:
            # Retention deleted it and its delay is over.
            raise RoundOver(str(error)) from error
        return RoundResult(end_offset, before, after, self._pace.longest_slice_s)

    # The map.

    async def _fill_map(self) -> None:
        first_dirty = self._target.first_dirty_offset
        transactions = CleanedTransactions()
        dirty = [s for s in self._target.segments if s.next_offset > first_dirty]
        transactions.expect(self._log.aborted_transactions(first_dirty, self._target.end_offset))
        for segment in dirty:
            position = segment.offset_index.lookup(first_dirty).position
            async for batch in self._batches(segment, position):
                header = batch.header
                if header.is_control:
                    _discard_marker(transactions, batch)
                elif not (
                    transactions.on_batch(header)
                    or header.last_offset < first_dirty
                    or await self._map_records(batch, first_dirty)
                ):
                    return  # The map is full.
                if header.last_offset >= first_dirty:
                    self._keys.covered_up_to(header.last_offset)
            self._keys.covered_up_to(segment.next_offset - 1)

    async def _map_records(self, batch: PlacedBatch, first_dirty: int) -> bool:
        """False when the map is full; the batch then counts as not seen."""
        header, data, keys = batch.header, batch.data, self._keys
        assert data is not None
        body = await unpacked(header, data, self._pace)
        left, position = header.records_count, 0
        while left > 0:
            records = read_records(body, position, min(left, SLICE_RECORDS))
            for number, record in enumerate(records):
                offset = header.base_offset + record.offset_delta
                if record.key is None or offset < first_dirty or keys.put(record.key, offset):
                    continue
                if keys.latest_offset != NO_OFFSET:
                    return False
                keys.make_room(left - number)
                keys.put(record.key, offset)
            left -= len(records)
            position = records[-1].end
            await self._pace.spend(records=len(records))
        return True

    # The copy.

    async def _clean_group(self, group: Sequence[Segment]) -> int:
        """Returns the size of what takes its place."""
        log, config = self._log, self._log.config
        rules = Retention(
            keys=self._keys,
            now_ms=self._now_ms,
            delete_retention_ms=config.delete_retention_ms,
            producers=_KnownProducers(log),
            end_offset=self._target.end_offset,
        )
        made = Segment.create(
            log.directory,
            group[0].base_offset,
            self._files,
            config,
            self._now_ms,
            state=CLEANED,
        )
        try:
            new = _NewSegment(made, self._files, self._pace)
            changed = len(group) > 1
            end_offset, leader_epoch = group[-1].next_offset, NO_EPOCH
            for segment in group:
                # Also those whose marker lies in a later segment.
                self._transactions.expect(
                    log.aborted_transactions(segment.base_offset, segment.next_offset)
                )
                async for batch in self._batches(segment):
                    if is_spacer(batch.header) and batch.header.next_offset == end_offset:
                        continue  # It comes again, if it is needed.
                    changed |= await self._clean_batch(batch, rules, new)
                    leader_epoch = batch.header.partition_leader_epoch
            await new.end_at(end_offset, leader_epoch)
        except BaseException:
            log.discard_segment(made)
            raise
        if not changed:
            log.discard_segment(made)
            if log.swap_unfinished:
                raise RoundOver(f"{made.log_path} is in the way")
            return group[0].size
        size = made.size
        if not await self._pace.beside(log.replace_segments(group, made)):
            raise RoundOver(f"{log} has changed under the cleaner")
        return size

    async def _clean_batch(self, batch: PlacedBatch, rules: Retention, new: _NewSegment) -> bool:
        """Whether the batch does not stay as it is."""
        header, data = batch.header, batch.data
        assert data is not None
        if header.is_control:
            discard, entry = _discard_marker(self._transactions, batch)
            if entry is not None:
                new.segment.transactions.append(entry)
        else:
            discard = self._transactions.on_batch(header)
        verdict = rules.verdict(header, discard=discard)
        if verdict is Verdict.COPY:
            await new.add(header, data)
            return False
        if verdict is Verdict.DROP:
            return True
        if verdict is Verdict.EMPTY:
            await new.add(header, emptied(header))
            return True
        return await self._filter_batch(batch, rules, verdict, new)

    async def _filter_batch(
        self, batch: PlacedBatch, rules: Retention, verdict: Verdict, new: _NewSegment
    ) -> bool:
        header, data = batch.header, batch.data
        assert data is not None
        body = await unpacked(header, data, self._pace)
        judge = verdict is not Verdict.AGE
        kept, mortal = await self._judge(header, body, rules if judge else None)
        if not kept:
            if verdict is Verdict.FILTER_KEEP:
                await new.add(header, data if header.records_count == 0 else emptied(header))
                return header.records_count > 0
            return True
        horizon = rules.horizon_for(header, mortal=mortal or not judge)
        if len(kept) == header.records_count and (horizon is None or header.has_delete_horizon):
            await new.add(header, data)
            return False
        rebuilt, records = kept_body(header, body, kept, horizon)
        payload = await packed(rebuilt, records, self._pace)
        await new.add(rebuilt, sealed(rebuilt, payload))
        return True

    async def _judge(
        self, header: BatchHeader, body: bytes, rules: Retention | None
    ) -> tuple[list[RawRecord], bool]:
        """The records that stay (all of them without `rules`), and whether one is a tombstone."""
        kept: list[RawRecord] = []
        mortal = False
        left, position = header.records_count, 0
        while left > 0:
            records = read_records(body, position, min(left, SLICE_RECORDS))
            for record in records:
                if rules is None or rules.keeps(header, record):
                    kept.append(record)
                    mortal = mortal or not record.has_value
            left -= len(records)
            position = records[-1].end
            await self._pace.spend(records=len(records))
        return kept, mortal

    # Both.

    async def _batches(self, segment: Segment, position: int = 0) -> AsyncIterator[PlacedBatch]:
        """With their bytes, checksums tested. Raises BatchDamaged."""
        size = segment.size
        scan = Scan(_Reopened(segment), position, size, verify_from=0, read_bytes=READ_BYTES)
        for batch in scan:
            await self._pace.spend(batches=1, size=batch.header.size)
            yield batch
        if scan.fault is not None:
            raise BatchDamaged(
                base_offset=segment.base_offset, position=scan.end, reason=scan.fault
            )


class _KnownProducers:
    """What must stay of each, as of when a batch is judged: what was last then is in the log."""

    def __init__(self, log: PartitionLog) -> None:
        self._log = log

    def get(self, producer_id: int, /) -> LastOfProducer | None:
        entry = self._log.producers.entry(producer_id)
        if entry is None:
            return None
        return LastOfProducer(entry.last_data_offset, entry.producer_epoch)


class _Reopened:
    """A segment's file, looked up for each read: between two it may be closed for others' sake."""

    def __init__(self, segment: Segment) -> None:
        self._segment = segment

    def read_at(self, position: int, length: int) -> bytes:
        return self._segment.file().read_at(position, length)


def _discard_marker(
    transactions: CleanedTransactions, batch: PlacedBatch
) -> tuple[bool, AbortedTransaction | None]:
    assert batch.data is not None
    marker = marker_of(batch.data)
    return transactions.on_marker(batch.header, None if marker is None else marker.aborted)
