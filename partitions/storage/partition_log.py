"""One partition's log on disk: appends, reads, cuts, and which part of it a loss of power spares.

Two ends (RULES C2). `log_end_offset` is the *appended* end: offsets below it are given away for
ever. `synced_offset` follows it by group commit: what lies below survives. In page-cache mode
`synced_offset` is what has been written to the page cache.

Appends are synchronous: check, assign offsets, hold the bytes, update indexes, producers and
epochs, with no await between. The bytes of one turn of the loop are written together at its end, or
before anything reads or syncs them. If that write fails, exactly those batches are taken back
everywhere (`on_rolled_back`): nobody has seen them, nothing of them was acknowledged, and the log
goes on when there is room again.

Cuts (`truncate_to`, `truncate_fully`, `advance_log_start`, `close`, `delete`) wait for the sync in
flight and exclude appends while they run. One that the disk refuses in the middle leaves the log
`half_cut` (decision 0031).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from random import Random
from uuid import UUID

from ...seam import Buffer, Clock, Disk, Fatal, OnFatal, TaskScope, offload
from ...wire.records import (
    HEADER_SIZE,
    OVERHEAD,
    BatchHeader,
    RecordsError,
    assign_offsets,
    parse_header,
)
from .batch_contents import LeaderBatch
from .control_marker import marker_of
from .damaged_ranges import DamagedRanges
from .delayed_deletes import DelayedDeletes
from .epoch_cache import EpochCache
from .errors import BatchDamaged, OffsetOutOfRange, StorageFailed
from .fetched_batches import fetched_batches
from .folder_names import folder_name
from .group_commit import PASSING_ERRORS, GroupCommit
from .header_trust import HeaderTrust
from .leader_batch import (
    check_batch,
    check_batch_beside_the_loop,
    stamped,
    takes_long,
)
from .log_config import LogConfig
from .log_reads import LogReads
from .open_files import OpenFiles
from .opening import recover_log
from .producer_recovery import producer_batch, rebuild_producers, remove_snapshots
from .producer_states import Origin, ProducerStates
from .recovery import DAMAGE_FOUND, Recovered, note_damage_found
from .retention import Outlived, outlived
from .segment import MAX_RELATIVE_OFFSET, Segment
from .segment_list import SegmentList
from .segment_replacement import SegmentReplacement
from .sync_debt import SyncDebt
from .sync_round import SyncRound
from .sync_waiters import SyncWaiters
from .transaction_index import AbortedTransaction
from .values import Appended, Damage, FoundOffset, LogRead
from .verification import VerificationGuard
from .write_buffer import WriteBuffer

logger = logging.getLogger(__name__)

CLOSE_PATIENCE_SECONDS = 3.0
"""For a full disk to find room when a log is closed: an orderly stop must come to its end."""

BeforeTruncation = Callable[[int, int], Awaitable[None]]
"""(recovery point, log start offset): checkpoint both, durably, before the log is cut."""


class PartitionLog:
    """Opened with `await PartitionLog.open(...)`; closed with `close`, `delete` or by a crash."""

    def __init__(
        self,
        directory: str,
        *,
        topic: str,
        partition: int,
        topic_id: UUID,
        config: LogConfig,
        disk: Disk,
        files: OpenFiles,
        clock: Clock,
        rng: Random | None,
        on_fatal: OnFatal,
        before_truncation: BeforeTruncation | None,
        recovered: Recovered,
        producers: ProducerStates,
        log_start_offset: int,
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.topic_id = topic_id
        self.directory = directory
        self.config = config
        self._disk = disk
        self._files = files
        self._clock = clock
        self._rng = rng
        self._on_fatal = on_fatal
        self._before_truncation = before_truncation

        self._segments = SegmentList(recovered.segments, parked=recovered.parked)
        self.damaged_ranges = DamagedRanges.of_files(disk.list(directory))
        """What was set aside, also by processes before this one: nobody reads there."""
        self.damage: Damage | None = recovered.damage
        """Set by `open` and by whoever reads damaged bytes first; cleared by `truncate_to` and
        `truncate_fully`. Until then the log ends where the damage begins, and takes no appends."""
        self.on_damaged: Callable[[], None] | None = None
        """Called, inside the call that found out, when `damage` was set by a reader: from then on
        the replica has lost what it may have confirmed (RULES C1)."""
        self.epochs: EpochCache = recovered.epochs
        self.producers: ProducerStates = producers

        self.log_start_offset = log_start_offset
        self.log_end_offset = self._segments.active.next_offset
        self._written_offset = self.log_end_offset
        self.recovery_point = self.log_end_offset
        """All below is on the device, in both modes; recovery has just made it so."""
        if self.damage is not None:
            self.recovery_point = self.damage.offset
        self._draw_jitter(self._segments.active)
        self._synced_mode = config.synced
        """Fixed for the life of the log (RULES C1)."""
        self.on_synced: Callable[[int], None] | None = None
        """Called on the loop with `synced_offset` whenever it has moved."""
        self.on_rolled_back: Callable[[int], None] | None = None
        """Called with the new log end, inside the call that found out, when appended batches could
        not be written (full disk) and were taken back. Whoever waits for an offset at or above it
        is told KAFKA_STORAGE_ERROR, and must not be acknowledged by a later batch there. Without a
        callback taking back is fatal."""

        self._header_trust = HeaderTrust()
        self._held = WriteBuffer()
        self._flush_scheduled = False
        self._debt = SyncDebt(
            directory,
            self._segments,
            self.epochs,
            disk=disk,
            files=files,
            epochs_behind=recovered.epochs_behind,
        )
        self._notified_offset = self.synced_offset
        self._future_segment: int | None = None
        """Base offset of the one last warned of."""
        self._refuse: str | None = None
        """Why appends are refused now."""
        self.half_cut: str | None = None
        """A cut had changed the files when the disk refused to go on. Nothing of this object is to
        be believed until the log is opened again: recovery leaves what a crash at that moment
        would have left, a log that ends between where it ended and where it was to be cut."""
        self._cut_begun = False
        self.left_open: str | None = None
        """Why a log that is closed lacks indexes, producers or epochs on disk: the next start has
        to read its batches, as after a crash. None that was acknowledged is missing."""
        self._closed = False
        self._exclusive = asyncio.Lock()
        self._waiters = SyncWaiters()
        self._scope = TaskScope(on_fatal)
        self._deletes = DelayedDeletes(
            disk, self._scope, delay_ms=lambda: self.config.file_delete_delay_ms
        )
        self._reads = LogReads(
            self._segments, self.damaged_ranges, note_damage=self.note_damage, name=str(self)
        )
        self._replacement = SegmentReplacement(
            directory,
            self._segments,
            self._deletes,
            disk=disk,
            files=files,
            exclusive=self._exclusive,
            scope=self._scope,
            is_refused=lambda: self._refuse is not None,
            is_damaged=lambda: self.damage is not None,
            finished=self._delete_below_start,
            name=str(self),
        )
        self._commit: GroupCommit[SyncRound] = GroupCommit(
            begin=self._begin_round,
            finish=self._finish_round,
            turns=files.sync_turns,
            scope=self._scope,
            name=str(self),
        )

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"

    @classmethod
    async def open(
        cls,
        directory: str,
        *,
        topic: str,
        partition: int,
        topic_id: UUID,
        config: LogConfig,
        disk: Disk,
        clock: Clock,
        on_fatal: OnFatal,
        clean: bool = False,
        recovery_point: int = 0,
        log_start_offset: int = 0,
        compacted: bool = False,
        files: OpenFiles | None = None,
        rng: Random | None = None,
        before_truncation: BeforeTruncation | None = None,
    ) -> PartitionLog:
        """Recover what is in `directory` (which exists) and open it; an empty one begins anew.

        `recovery_point`, `log_start_offset` and whether the log was ever `compacted` come from the
        checkpoints. Look at `damage` before
        the replica takes up its old place.
        """
        files = files or OpenFiles(disk)
        recovered, producers = await recover_log(
            directory,
            disk=disk,
            files=files,
            config=config,
            clock=clock,
            clean=clean,
            recovery_point=recovery_point,
            log_start_offset=log_start_offset,
            compacted=compacted,
        )
        log = cls(
            directory,
            topic=topic,
            partition=partition,
            topic_id=topic_id,
            config=config,
            disk=disk,
            files=files,
            clock=clock,
            rng=rng,
            on_fatal=on_fatal,
            before_truncation=before_truncation,
            recovered=recovered,
            producers=producers,
            log_start_offset=max(log_start_offset, recovered.segments[0].base_offset),
        )
        if log.damage is None:
            log._forget_ranges()
        log._commit.request()
        return log

    @property
    def synced_offset(self) -> int:
        """RULES C2: the end that counts for watermark, acks=1 and a follower's next fetch."""
        return self.recovery_point if self._synced_mode else self._written_offset

    @property
    def size_bytes(self) -> int:
        return self._segments.size_bytes

    @property
    def synced_segments(self) -> tuple[Segment, ...]:
        """What retention may delete and compaction may replace."""
        return self._segments.synced

    @property
    def segment_base_offsets(self) -> tuple[int, ...]:
        return tuple(self._segments.bases)

    def at_rest(self) -> list[tuple[Segment, int]]:
        """What is on the device, by segment and how many of its bytes: it does not change unless
        the log is cut. The active segment is left out while something is not synced yet. A damaged
        log has nothing of the kind."""
        if self._refuse is not None or self.damage is not None:
            return []
        synced = self._segments.synced
        if not self._segments.unsynced and self.recovery_point == self.log_end_offset:
            synced = (*synced, self._segments.active)
        return [(segment, segment.size) for segment in synced]

    def has_segment(self, segment: Segment) -> bool:
        """Not deleted, replaced or cut off."""
        return self._segments.holds(segment)

    def update_config(self, config: LogConfig) -> None:
        """New settings from the next append on. The durability mode stays (RULES C1)."""
        self.config = config
        for segment in self._segments.all:
            segment.use_config(config)

    # Appending.

    def takes_long_to_check(self, records: Buffer) -> bool:
        """Whether `append_as_leader` would hold the loop with this batch of a client; then it is to
        go through `check` first (RULES F1)."""
        return takes_long(records, self.config, self._header_trust, self._clock)

    async def check(self, records: Buffer) -> LeaderBatch:
        """A client's batch, fit for `append_as_leader`. Raises RecordsRejected."""
        return await check_batch_beside_the_loop(
            records, self.config, now_ms=self._clock.now_ms(), trust=self._header_trust
        )

    def append_as_leader(
        self,
        records: Buffer | LeaderBatch,
        *,
        leader_epoch: int,
        now_ms: int,
        from_client: bool = True,
        transaction_version: int = 0,
        guard: VerificationGuard | None = None,
    ) -> Appended:
        """Append exactly one batch. `records` must stay unchanged until the next turn of the loop.
        `guard`: of a transactional batch, see `begin_verification`; None: nobody was to be asked.

        Raises RecordsRejected or StorageFailed; then nothing was appended. A duplicate of one of
        the producer's last batches is answered with the first copy's offsets.
        """
        self._check_writable()
        if self.log_end_offset < self.log_start_offset:
            raise StorageFailed(f"{self}: ends below its start, see `begin_amid`")
        if isinstance(records, LeaderBatch):
            batch = records
        else:
            batch = check_batch(
                records,
                self.config,
                now_ms=now_ms,
                from_client=from_client,
                trust=self._header_trust,
            )
        # Not before: what was checked first need not be appended first.
        header, data = stamped(batch, now_ms) if self.config.log_append_time else batch
        duplicate = self._check_producer(
            header,
            data,
            from_client=from_client,
            transaction_version=transaction_version,
            guard=guard,
        )
        if duplicate is not None:
            return duplicate
        size = header.batch_length + OVERHEAD
        base_offset = self.log_end_offset
        last_offset = base_offset + header.last_offset_delta
        segment = self._segments.active
        if segment.must_roll_before(size, last_offset, header.max_timestamp, now_ms):
            segment = self._roll(base_offset, now_ms)
        view = memoryview(data)
        head = bytearray(view[:HEADER_SIZE])
        assign_offsets(head, header, base_offset=base_offset, leader_epoch=leader_epoch)
        self._held.hold(segment, (head, view[HEADER_SIZE:]), size)
        self._account(segment, header, base_offset, leader_epoch, size, data)
        self._after_append()
        return Appended(
            base_offset,
            last_offset,
            now_ms if self.config.log_append_time else -1,
            self.log_start_offset,
            leader_epoch,
            size,
        )

    def begin_verification(
        self, header: BatchHeader, *, supports_epoch_bump: bool
    ) -> VerificationGuard:
        """To be called before a transaction's coordinator is asked whether this batch may come.
        Raises RecordsRejected."""
        return self.producers.begin_verification(
            header.producer_id,
            header.producer_epoch,
            header.base_sequence,
            supports_epoch_bump=supports_epoch_bump,
            now_ms=self._clock.now_ms(),
        )

    def continues(self, header: BatchHeader) -> bool:
        """Does a client's batch follow what its producer has in this log, or repeat its end?"""
        return self.producers.continues(producer_batch(header, 0))

    def _check_producer(
        self,
        header: BatchHeader,
        data: Buffer,
        *,
        from_client: bool,
        transaction_version: int,
        guard: VerificationGuard | None,
    ) -> Appended | None:
        if header.producer_id < 0:
            return None
        if header.is_control:
            marker = marker_of(data)
            if marker is not None:
                self.producers.check_marker(marker, transaction_version)
            return None
        origin = Origin.CLIENT if from_client else Origin.COORDINATOR
        first = self.producers.check(producer_batch(header, 0), origin, guard)
        if first is None:
            return None
        return Appended(
            base_offset=first.base_offset,
            last_offset=first.last_offset,
            log_append_time_ms=first.timestamp_ms if self.config.log_append_time else -1,
            log_start_offset=self.log_start_offset,
            leader_epoch=self.epochs.epoch_for_offset(first.base_offset),
            size=0,
            duplicate=True,
        )

    def append_as_follower(self, records: Buffer, *, committed: int = 0) -> Appended | None:
        """Append the whole batches in `records`, as the leader sent them; a batch cut off at the
        end is left out. None when there is no whole batch.

        `committed`: the leader's watermark. Below it compaction may have left gaps, also in a topic
        that is not compacted any more.

        `records` must stay unchanged until the next turn of the loop. Raises CorruptBatch or
        OffsetGap; then nothing was appended. StorageFailed: perhaps the first ones were,
        `log_end_offset` tells.
        """
        self._check_writable()
        headers = fetched_batches(
            records,
            expected=self.log_end_offset,
            compacts=self.config.compact,
            committed=committed,
        )
        if not headers:
            return None
        now_ms = self._clock.now_ms()
        view = memoryview(records)
        position = 0
        try:
            for header in headers:
                size = header.batch_length + OVERHEAD
                data = view[position : position + size]
                segment = self._segments.active
                if segment.must_roll_before(size, header.last_offset, header.max_timestamp, now_ms):
                    segment = self._roll_to(header, now_ms)
                self._held.hold(segment, (data,), size)
                self._account(
                    segment, header, header.base_offset, header.partition_leader_epoch, size, data
                )
                position += size
        finally:
            # Also when a roll failed behind the first batches: they must be written and synced,
            # or the follower never asks on (RULES C2).
            self._after_append()
        return Appended(
            base_offset=headers[0].base_offset,
            last_offset=headers[-1].last_offset,
            log_append_time_ms=-1,
            log_start_offset=self.log_start_offset,
            leader_epoch=headers[-1].partition_leader_epoch,
            size=position,
        )

    def begins_amid(self, records: Buffer) -> bool:
        """Is the log empty, and does it begin in the middle of the first batch in `records`? That
        is so where somebody has deleted records up to there, and a leader sends whole batches."""
        if self.log_start_offset < self.log_end_offset or not len(records):
            return False
        try:
            first = parse_header(records)
        except RecordsError:
            return False
        return first.base_offset < self.log_end_offset < first.next_offset

    async def begin_amid(self, records: Buffer, *, committed: int) -> Appended | None:
        """As `append_as_follower`, where the log `begins_amid` the first batch (KAFKA-6975): it is
        made anew from that batch's base offset on, and its start stays where it is. A crash before
        the batch is on the device leaves an empty log at that start.

        Raises as `append_as_follower` and `truncate_to`; then the log may end below its start: it
        takes no appends of a leader, and is to start over.
        """
        base_offset = parse_header(records).base_offset
        compacts = self.config.compact
        fetched_batches(records, expected=base_offset, compacts=compacts, committed=committed)
        async with self._cutting("the log is being begun anew"):
            await self._start_anew(base_offset, log_start_offset=self.log_start_offset)
        return self.append_as_follower(records, committed=committed)

    def _roll_to(self, header: BatchHeader, now_ms: int) -> Segment:
        """The new segment begins where the old one ends, not at a gap behind it: then a segment
        that is missing is told from one that compaction emptied."""
        reach = header.last_offset - self.log_end_offset
        within = self.log_end_offset > self._segments.active.base_offset
        near = within and reach <= MAX_RELATIVE_OFFSET
        return self._roll(self.log_end_offset if near else header.base_offset, now_ms)

    def _check_writable(self) -> None:
        if self._refuse is not None:
            raise StorageFailed(f"{self}: {self._refuse}")
        if self.damage is not None:
            raise StorageFailed(str(self.damage))

    def _roll(self, base_offset: int, now_ms: int) -> Segment:
        """Begin a segment. The old one's indexes, the producer snapshot and the new name reach the
        device with the next round of group commit."""
        self._write_held()
        if base_offset == self._segments.active.base_offset:
            raise Fatal(f"{self}: roll of an empty segment at {base_offset}")
        try:
            segment = Segment.create(self.directory, base_offset, self._files, self.config, now_ms)
        except OSError as error:
            raise StorageFailed(f"{self}: no new segment at {base_offset}: {error}") from error
        self._draw_jitter(segment)
        self._debt.seal(base_offset, self.producers.capture())
        self._segments.use([*self._segments.all, segment])
        return segment

    def _draw_jitter(self, segment: Segment) -> None:
        """Partitions made together need not roll together (segment.jitter.ms)."""
        if self._rng is not None and self.config.segment_jitter_ms > 0:
            segment.jitter_ms = self._rng.randrange(self.config.segment_jitter_ms)

    def _account(
        self,
        segment: Segment,
        header: BatchHeader,
        base_offset: int,
        leader_epoch: int,
        size: int,
        data: Buffer,
    ) -> None:
        """The batch has its place: let indexes, epochs, producers and the end know.

        `header` is as it came; a leader's batch has its offset and epoch from here.
        """
        last_offset = base_offset + header.last_offset_delta
        segment.note(last_offset, size, header.max_timestamp)
        if leader_epoch != self.epochs.latest_epoch and leader_epoch >= 0:
            self.epochs.assign(leader_epoch, base_offset)
        if header.producer_id >= 0:
            if header.is_control:
                marker = marker_of(data)
                if marker is not None:
                    placed = marker._replace(offset=last_offset)
                    undo, completed = self.producers.apply_marker(placed)
                    self._held.undos.append(undo)
                    segment.note_completed(completed)
            else:
                batch = producer_batch(header, base_offset)
                self._held.undos.append(self.producers.apply(batch))
        self.log_end_offset = self.producers.map_end_offset = last_offset + 1

    def _after_append(self) -> None:
        if not self._flush_scheduled:
            self._flush_scheduled = True
            asyncio.get_running_loop().call_soon(self._flush)
            # Its first step comes right behind the write, in the next turn.
            self._commit.request()
        if self._held.full:
            self._write_held()

    # Writing.

    def _flush(self) -> None:
        """End of the turn: write what it appended; a sync then covers it."""
        self._flush_scheduled = False
        self._try_write()
        self._notify()

    def _try_write(self) -> None:
        # Who appended is told through `on_rolled_back`.
        with suppress(StorageFailed):
            self._write_held()

    def _write_held(self) -> None:
        """Raises StorageFailed after taking the held batches back."""
        if not self._held:
            return
        try:
            self._held.write()
        except OSError as error:
            self._take_back(error)
            raise StorageFailed(f"{self}: {error}") from error
        self._written_offset = self.log_end_offset

    def _take_back(self, error: OSError) -> None:
        taken_back = self.log_end_offset
        try:
            _, mark, undos = self._held.take_back()
        except OSError as second:
            self._fail(Fatal(f"{self}: {error}; then the file could not be cut: {second}"))
            return
        self.log_end_offset = mark.next_offset
        self.producers.roll_back(undos, mark.next_offset)
        self.epochs.truncate_from_end(mark.next_offset)
        logger.error(
            "%s: %s; offsets %d to %d are taken back", self, error, mark.next_offset, taken_back - 1
        )
        self._waiters.fail(StorageFailed(f"{self}: {error}"), above=mark.next_offset)
        if error.errno not in PASSING_ERRORS:
            self._fail(Fatal(f"{self}: {error}"))
        elif self.on_rolled_back is None:
            self._fail(Fatal(f"{self}: {error}, and nobody can tell who waits"))
        else:
            self.on_rolled_back(mark.next_offset)

    def _fail(self, fatal: Fatal) -> None:
        self._refuse = str(fatal)
        self._on_fatal(fatal)

    # Group commit.

    def _begin_round(self) -> SyncRound | None:
        if self._refuse is not None or self.damage is not None:
            return None
        self._try_write()
        active_behind = self._synced_mode and self.recovery_point < self._written_offset
        if not active_behind and not self._debt.is_due:
            return None
        return self._round(sync_active=self._synced_mode)

    def _round(self, *, sync_active: bool) -> SyncRound:
        return self._debt.round(written_offset=self._written_offset, sync_active=sync_active)

    def _finish_round(self, round_: SyncRound) -> None:
        self._debt.pay(round_)
        if self.damage is not None:
            return
        self.recovery_point = max(self.recovery_point, round_.end_offset)
        if round_.sealed and not self._exclusive.locked():
            self._delete_below_start()
        self._notify()

    def _notify(self) -> None:
        synced_offset = self.synced_offset
        if synced_offset <= self._notified_offset:
            return
        self._notified_offset = synced_offset
        self._waiters.reached(synced_offset)
        if self.on_synced is not None:
            self.on_synced(synced_offset)

    async def wait_synced(self, offset: int) -> None:
        """Return when `synced_offset` has reached `offset`. Raises StorageFailed when what was
        appended below it has been taken back, cut off or closed.

        To be called in the turn of the append: later, another batch may be at that offset.
        """
        if offset <= self.synced_offset:
            return
        if offset > self.log_end_offset:
            raise StorageFailed(f"{self}: nothing is appended below {offset} any more")
        await self._waiters.wait(offset)

    # Reading.

    def read(self, offset: int, *, max_bytes: int, upper_bound: int, at_least_one: bool) -> LogRead:
        """Whole batches from `offset` on, below `upper_bound`, of one segment.

        At most `max_bytes`, but with `at_least_one` the first batch whatever its size (KIP-74).
        The first batch may begin below `offset`. Raises OffsetOutOfRange; StorageFailed where the
        bytes cannot be read or are not what was written, RecordsDamaged where that is known.
        """
        if not self.log_start_offset <= offset <= self.log_end_offset:
            raise OffsetOutOfRange(
                offset=offset,
                log_start_offset=self.log_start_offset,
                log_end_offset=self.log_end_offset,
            )
        # Also where only older batches are wanted: a walk to their end looks at what follows, and
        # bytes that are not there yet would pass for damage.
        self._try_write()
        upper_bound = min(upper_bound, self._written_offset)
        return self._reads.read(
            offset, max_bytes=max_bytes, upper_bound=upper_bound, at_least_one=at_least_one
        )

    def offset_for_timestamp(
        self, timestamp_ms: int, *, upper_bound: int | None = None
    ) -> FoundOffset | None:
        """The first record not older than `timestamp_ms`, below `upper_bound` (default: all).

        Where a damaged range may hold it, that: whoever begins there is refused, and not led past
        it. Raises StorageFailed.
        """
        self._try_write()
        return self._reads.by_timestamp(
            timestamp_ms,
            log_start_offset=self.log_start_offset,
            upper_bound=self.log_end_offset if upper_bound is None else upper_bound,
        )

    def offset_of_max_timestamp(self, *, upper_bound: int | None = None) -> FoundOffset | None:
        """The first record with the largest timestamp, below `upper_bound` (default: all).

        Raises StorageFailed.
        """
        self._try_write()
        return self._reads.by_max_timestamp(
            log_start_offset=self.log_start_offset,
            upper_bound=self.log_end_offset if upper_bound is None else upper_bound,
        )

    def note_damage(self, found: BatchDamaged) -> StorageFailed:
        """A reader met bytes that are not what was written: the log ends before them from now on,
        as if it had been opened like that, and `on_damaged` is called. Returns what to raise.

        Nothing is cut: that waits until nobody counts on this replica any more (RULES C1). Where
        only an index had led astray, or the device failed in passing, the same question will be
        answered the next time. A log that is damaged already may turn out to be so earlier.
        """
        if self._closed:
            # Whoever still reads here may see files that are no longer this log's.
            return StorageFailed(f"{self}: {self._refuse}")
        self._try_write()
        if found.base_offset in self._segments.bases:
            number = self._segments.bases.index(found.base_offset)
            segment = self._segments.all[number]
            sealed = segment is not self._segments.active
            try:
                damage = segment.look_again(found, sealed=sealed)
            except OSError as error:
                return StorageFailed(f"{self} cannot be read: {error}")
            if damage is None:
                logger.warning("%s is whole, its index made anew: %s", self, found)
            else:
                self._end_damaged(number, damage.reason)
        return StorageFailed(f"{self}: {self.damage or found}")

    def _end_damaged(self, number: int, reason: str) -> None:
        """Segment `number` ends before the damage; those behind it wait to be removed."""
        segment = self._segments.all[number]
        offset = segment.next_offset
        known = self.damage
        self.damage = Damage(
            segment.log_path,
            segment.size,
            offset,
            self.recovery_point if known is None else known.recovery_point,
            reason,
            self.log_end_offset if known is None else known.log_end_offset,
        )
        logger.error("%s", self.damage)
        self._segments.end_with(number)
        self.log_end_offset = self._written_offset = self.recovery_point = offset
        self._notified_offset = min(self._notified_offset, offset)
        self._waiters.fail(StorageFailed(str(self.damage)), above=offset)
        self._scope.spawn(self._note_damage_found(), name=f"damage in {self}")
        if self.on_damaged is not None and known is None:
            self.on_damaged()

    async def _note_damage_found(self) -> None:
        try:
            await note_damage_found(self._disk, self.directory)
        except OSError as error:
            # Without the file the next start finds the damage when it is read again.
            logger.warning("%s: %s is not written: %s", self, DAMAGE_FOUND, error)

    def last_stable_offset(self, high_watermark: int) -> int:
        """What a read_committed consumer may read up to; the high watermark while no transaction
        is open. One whose head was deleted is still open, but nothing below the start is read."""
        return max(self.producers.last_stable_offset(high_watermark), self.log_start_offset)

    def aborted_transactions(self, start_offset: int, end_offset: int) -> list[AbortedTransaction]:
        """What a reader of committed data must know who has just read [start_offset, end_offset):
        to be asked in the turn of the read, before compaction takes aborted data away."""
        return self._reads.aborted_transactions(start_offset, end_offset)

    # Cutting, closing.

    @asynccontextmanager
    async def _exclusively(self, refuse: str) -> AsyncIterator[None]:
        """No sync in flight and no appends. When the body fails, appends stay refused: memory and
        disk may differ, only opening the log again makes them agree."""
        async with self._exclusive:
            if self._refuse is not None:
                raise StorageFailed(f"{self}: {self._refuse}")
            await self._commit.pause()
            self._refuse = refuse
            try:
                yield
            except BaseException as error:
                if self._refuse == refuse:
                    self._refuse = f"interrupted while {refuse}: {error!r}"
                raise
            self._refuse = None
            self._commit.resume()

    @asynccontextmanager
    async def _cutting(self, refuse: str) -> AsyncIterator[None]:
        """As `_exclusively`, for a body that looks, then checkpoints, then changes files.

        Raises StorageFailed, and nothing has happened, when it does not come to the changes; or the
        log is `half_cut`. Fatal: the disk is broken.
        """
        failed: BatchDamaged | OSError | None = None
        async with self._exclusively(refuse):
            self._cut_begun = False
            try:
                await self._replacement.finish()
                yield
            except (BatchDamaged, OSError) as error:
                if self._cut_begun:
                    raise self._note_half_cut(error) from error
                failed = error
        if isinstance(failed, BatchDamaged):
            raise self.note_damage(failed) from None
        if failed is not None:
            raise StorageFailed(f"{self} is not cut: {failed}") from failed

    def _note_half_cut(self, error: BatchDamaged | OSError) -> StorageFailed | Fatal:
        if isinstance(error, OSError) and error.errno not in PASSING_ERRORS:
            return Fatal(f"{self}: {error} while {self._refuse}")
        self.half_cut = self._refuse = f"half cut, to be opened again: {error}"
        logger.error("%s: %s", self, self._refuse)
        self._waiters.fail(StorageFailed(f"{self}: {self._refuse}"), above=-1)
        return StorageFailed(f"{self}: {self._refuse}")

    async def truncate_to(self, offset: int) -> None:
        """Cut off everything from `offset` on, durably, with epochs, producers and indexes.

        A batch that holds `offset` goes as a whole. Also heals `damage`: the log then ends at the
        damaged offset or below. Raises StorageFailed, also where it meets damage: then nothing is
        cut, or the log is `half_cut`.
        """
        async with self._cutting("the log is being cut"):
            self._try_write()
            if offset >= self.log_end_offset and self.damage is None:
                # An epoch that began at the end and wrote nothing is forgotten, too.
                self.epochs.truncate_from_end(self.log_end_offset)
            elif self._batch_start(offset) <= self.log_start_offset:
                # Nothing that can be read is left.
                await self._start_anew(min(offset, self.log_start_offset))
            else:
                await self._cut(min(offset, self.log_end_offset))

    async def truncate_fully(self, start_offset: int) -> None:
        """Throw everything away and begin anew, empty, at `start_offset`. Raises StorageFailed as
        `truncate_to` does."""
        async with self._cutting("the log is being emptied"):
            self._try_write()
            await self._start_anew(start_offset)

    def _batch_start(self, offset: int) -> int:
        """Base offset of the batch that holds `offset`: where a cut there really ends the log."""
        number = self._segments.number_at(offset)
        if number < 0:
            return offset
        segment = self._segments.all[number]
        position = segment.locate(offset)
        if position is None:
            return offset
        return min(offset, int.from_bytes(segment.file().read_at(position, 8), "big"))

    async def _cut(self, offset: int) -> None:
        recovery_point = min(self.recovery_point, self._batch_start(offset))
        # A recovery point above the end would look like damage after a crash.
        await self._checkpoint(recovery_point, self.log_start_offset)
        self._remove_parked()
        segments = list(self._segments.all)
        # Newest first: a crash in between leaves a log without holes.
        while len(segments) > 1 and segments[-1].base_offset > offset:
            self._deletes.condemn(segments.pop())
        self._segments.use(segments)
        active = self._segments.active
        if self.damage is not None:
            active.file().truncate(active.size)
        active.thaw_indexes()
        active.truncate(offset)
        await self._end_at(active.next_offset)
        self.producers = await rebuild_producers(
            self._disk, self.directory, segments, self.log_end_offset
        )

    async def _start_anew(self, start_offset: int, *, log_start_offset: int | None = None) -> None:
        """`log_start_offset`: another one than where the first segment begins."""
        recovery_point = min(self.recovery_point, self._segments.bases[0], start_offset)
        first = start_offset if log_start_offset is None else log_start_offset
        await self._checkpoint(recovery_point, first)
        self._remove_parked()
        for segment in reversed(self._segments.all):
            self._deletes.condemn(segment)
        remove_snapshots(self._disk, self.directory, lambda _: True)
        self._debt.forget_snapshots()
        now_ms = self._clock.now_ms()
        self._segments.use(
            [Segment.create(self.directory, start_offset, self._files, self.config, now_ms)]
        )
        self.epochs.clear()
        self.producers.clear(start_offset)
        await self._end_at(start_offset)

    async def _end_at(self, end_offset: int) -> None:
        """The segments now end here: let everything else follow, and make it durable."""
        self.damage = None
        if self._disk.exists(f"{self.directory}/{DAMAGE_FOUND}"):
            self._disk.remove(f"{self.directory}/{DAMAGE_FOUND}")
        self.log_end_offset = self._written_offset = self._notified_offset = end_offset
        self.recovery_point = min(self.recovery_point, end_offset)
        self.epochs.truncate_from_end(end_offset)
        remove_snapshots(self._disk, self.directory, lambda offset: offset > end_offset)
        self._debt.cut_to(end_offset)
        self._waiters.fail(StorageFailed(f"{self} was cut to {end_offset}"), above=end_offset)
        await self._commit.run_once(self._round(sync_active=True))
        # Only now: before, a crash could bring back what was cut, and not the note about it. And
        # before anything grows there that the note would tell lies about.
        if self._forget_ranges():
            await self._disk.sync_dir(self.directory)

    async def _checkpoint(self, recovery_point: int, log_start_offset: int) -> None:
        """The last step before files change. OSError: it passes, and nothing has happened."""
        if self._before_truncation is not None:
            try:
                await self._before_truncation(recovery_point, log_start_offset)
            except OSError as error:
                if error.errno not in PASSING_ERRORS:
                    raise Fatal(f"{self}: no checkpoint before a cut: {error}") from error
                raise
        self.recovery_point = recovery_point
        self.log_start_offset = log_start_offset
        self._cut_begun = True

    def _remove_parked(self) -> None:
        for base_offset in reversed(self._segments.parked):
            self._deletes.condemn(Segment(self.directory, base_offset, self._files, self.config))
        self._segments.parked = []

    async def advance_log_start(self, offset: int) -> None:
        """Records below `offset` are deleted: whole segments go, the rest is hidden.

        Never goes back. Raises OffsetOutOfRange above the log end. After a crash the start may be
        an older one, as in Kafka: it is checkpointed now and then.
        """
        if offset <= self.log_start_offset:
            return
        if offset > self.log_end_offset:
            raise OffsetOutOfRange(
                offset=offset,
                log_start_offset=self.log_start_offset,
                log_end_offset=self.log_end_offset,
            )
        self.log_start_offset = offset
        self.epochs.truncate_from_start(offset)
        async with self._exclusive:
            self._delete_below_start()

    async def delete_outlived(self, *, high_watermark: int) -> Outlived:
        """Retention: see `outlived`. Moves the log start; what cannot go yet goes later."""
        now_ms = self._clock.now_ms()
        found = outlived(
            self._segments.all,
            self.config,
            log_start_offset=self.log_start_offset,
            high_watermark=high_watermark,
            now_ms=now_ms,
        )
        self._warn_of_future(found.blocked_by_future)
        if found.count == 0 or self._refuse is not None or self.damage is not None:
            return found
        if found.count == len(self._segments.all):
            try:
                self._roll(self.log_end_offset, now_ms)
            except StorageFailed as failed:  # No room: the others can go all the same.
                logger.warning("%s: the last segment stays: %s", self, failed)
            self._commit.request()
        first_kept = min(found.count, len(self._segments.all) - 1)
        start_offset = max(self.log_start_offset, self._segments.bases[first_kept])
        if found.count > found.below_start:
            logger.info(
                "%s: retention moves the start from %d to %d (segments by size %d, by age %d)",
                self,
                self.log_start_offset,
                start_offset,
                found.by_size,
                found.by_age,
            )
        self.log_start_offset = start_offset
        self.epochs.truncate_from_start(start_offset)
        async with self._exclusive:
            self._delete_below_start()
        return found

    def _warn_of_future(self, base_offset: int | None) -> None:
        if base_offset is not None and base_offset != self._future_segment:
            logger.warning(
                "%s: segment %d holds a record from the future: it and those behind it are not "
                "deleted by age (retention.ms)",
                self,
                base_offset,
            )
        self._future_segment = base_offset

    def _delete_below_start(self) -> None:
        """Segments wholly below the log start go; one that is not synced yet goes after its sync,
        so that the segment behind it is sure to be there after a loss of power."""
        if self._refuse is not None or self.damage is not None or self.swap_unfinished:
            return
        doomed = self._segments.synced[: self._segments.number_at(self.log_start_offset)]
        # Oldest first, and out of the list one by one: a crash in between, and a disk that
        # refuses, leave a log without holes.
        for segment in doomed:
            try:
                self._deletes.condemn(segment)
            except OSError as error:
                logger.error("%s: segment %d stays: %s", self, segment.base_offset, error)
                break
            self._segments.use(self._segments.all[1:])
        if not doomed:
            return
        try:
            first = self._segments.bases[0]
            remove_snapshots(self._disk, self.directory, lambda offset: offset < first)
            self._forget_ranges()
        except OSError as error:
            # They say nothing about what is left, and go at the next start.
            logger.warning("%s: files about what was deleted stay: %s", self, error)
        self._debt.note_names()
        self._commit.request()

    def _forget_ranges(self) -> bool:
        """The notes of what was set aside where the log no longer is. True if some went; durable
        after a sync of the directory."""
        gone = self.damaged_ranges.forget_outside(self._segments.bases[0], self.log_end_offset)
        for found in gone:
            self._disk.remove(f"{self.directory}/{found.file_name}")
        if gone:
            self._debt.note_names()
        return bool(gone)

    async def replace_segments(self, old: Sequence[Segment], new: Segment) -> bool:
        """Put `new` in the place of `old`, durably; a crash leaves the one or the other whole.

        `old`: neighbours among `synced_segments`; `new`: in state CLEANED, with the base offset of
        the first of `old` and a last batch, be it empty, that ends where `old` end: recovery knows
        by it that nothing is torn off. False, and `new` is removed, when `old` are not all there
        any more: retention or a cut came first. OSError: `swap_unfinished` tells whether something
        is left to be done, which the log then does as soon as it can.
        """
        return await self._replacement.replace(old, new)

    def discard_segment(self, made: Segment) -> None:
        """One that compaction was making: removed, now or as soon as the disk allows it."""
        self._replacement.discard(made)

    @property
    def swap_unfinished(self) -> bool:
        """See `SegmentReplacement.unfinished`."""
        return self._replacement.unfinished

    async def close(self) -> None:
        """Write, sync and close everything; the log is then clean and `recovery_point` its end. One
        that is `half_cut` stays as it is on disk; where the disk has no room, see `left_open`."""
        try:
            async with self._exclusively("the log is closed"):
                await self._replacement.finish_at_the_end()
                await self._sync_all()
        except StorageFailed:
            if self.half_cut is None:
                raise
        await self._end("the log is closed")

    async def _sync_all(self) -> None:
        self._try_write()
        if self.damage is not None:
            return
        self._debt.seal(self.log_end_offset, self.producers.capture())
        try:
            await self._commit.run_once(
                self._round(sync_active=True), patience_s=CLOSE_PATIENCE_SECONDS
            )
        except OSError as error:
            if error.errno not in PASSING_ERRORS:
                raise
            self.left_open = str(error)
            await self._sync_batches()

    async def _sync_batches(self) -> None:
        """What needs no room. In synced mode all that was acknowledged is on the device already."""
        for segment in self._segments.unsynced:
            try:
                await self._files.sync(segment.log_path)
            except OSError as error:
                logger.warning("%s is left to the kernel: %s", segment.log_path, error)

    async def delete(self, sync_names: Callable[[], Awaitable[None]] | None = None) -> None:
        """Remove the log: renamed to `<name>.<topic id>-delete`, which counts durably, then freed.
        `sync_names`: of the folder above, shared with others who change names there.

        A crash in between leaves the renamed folder, which is removed at the next start.
        """
        async with self._exclusive:
            await self._commit.pause()
            await self._end("the log is deleted")
        parent = self.directory.rpartition("/")[0]
        name = folder_name(self.topic, self.partition, f"{self.topic_id.hex}-delete")
        doomed = f"{parent}/{name}"
        self._disk.remove_tree(doomed)
        self._disk.rename(self.directory, doomed)
        await (self._disk.sync_dir(parent) if sync_names is None else sync_names())
        await offload(lambda: self._disk.remove_tree(doomed))

    async def _end(self, why: str) -> None:
        self._refuse = why
        self._closed = True
        self._waiters.fail(StorageFailed(f"{self}: {why}"), above=-1)
        await self._scope.close()
        for segment in self._segments.all:
            segment.forget_files()
