"""One `.log` file and its two indexes: a run of batches that begins at its base offset.

The segment counts what was handed to it (`size`, `next_offset`); the bytes themselves are written
by the log's `WriteBuffer`, which may hold the newest ones back until the end of the loop's turn.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from errno import EIO
from typing import NamedTuple

from ...seam import Disk, File
from ...wire.records import HEADER_SIZE, BatchHeader, RecordsError, parse_header
from .batch_scan import PlacedBatch, Scan
from .errors import BatchDamaged
from .first_reads import FirstReads, first_fault
from .index_table import IndexDamaged
from .log_config import LogConfig
from .offset_index import SUFFIX as INDEX_SUFFIX
from .offset_index import OffsetIndex, OffsetPosition
from .open_files import OpenFiles
from .producer_states import CompletedTransaction
from .time_index import NO_TIMESTAMP, TimeIndex
from .time_index import SUFFIX as TIME_INDEX_SUFFIX
from .transaction_index import SUFFIX as TRANSACTION_INDEX_SUFFIX
from .transaction_index import AbortedTransaction, TransactionIndex
from .values import LogRead

logger = logging.getLogger(__name__)

LOG_SUFFIX = ".log"
SEGMENT_SUFFIXES = (LOG_SUFFIX, INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX)
"""The files that make a segment; only the first is always there."""

IN_USE = ""
CLEANED = ".cleaned"
"""Being made by compaction: counts for nothing yet."""
SWAP = ".swap"
"""Complete and durable: takes the place of what it covers, now or when the log is opened next."""
DELETED = ".deleted"
"""No longer of the log; freed after file.delete.delay.ms, or at the next start."""

MAX_RELATIVE_OFFSET = 2**31 - 1
"""Indexes hold offsets relative to the base in 31 bits."""

WALK_BYTES = 8192
"""Read size of short walks between two index entries."""

RECENT_STARTS = 64
"""Batch positions remembered: readers at the tail ask for exactly these."""


def file_name(offset: int, suffix: str) -> str:
    return f"{offset:020d}{suffix}"


class SegmentMark(NamedTuple):
    """A state to return to when batches could not be written."""

    size: int
    next_offset: int
    max_timestamp: int
    offset_of_max_timestamp: int
    bytes_since_index: int
    first_timestamp: int


class Segment:
    """Invariant: batches lie in [0, size), offsets in [base_offset, next_offset)."""

    __slots__ = (
        "_config",
        "_files",
        "_renamed",
        "_starts",
        "base_offset",
        "bytes_since_index",
        "created_at_ms",
        "directory",
        "first_reads",
        "first_timestamp",
        "jitter_ms",
        "log_path",
        "max_timestamp",
        "next_offset",
        "offset_index",
        "offset_of_max_timestamp",
        "size",
        "state",
        "time_index",
        "transactions",
    )

    def __init__(
        self,
        directory: str,
        base_offset: int,
        files: OpenFiles,
        config: LogConfig,
        *,
        state: str = IN_USE,
    ) -> None:
        self.directory = directory
        self.state = state
        """What the names of all its files end with."""
        self._renamed: dict[str, str] = {}
        """Suffix -> state of those that are ahead: the disk refused to rename the others."""
        self.base_offset = base_offset
        self._files = files
        self._config = config
        self.log_path = self.path(LOG_SUFFIX)
        self.size = 0
        self.next_offset = base_offset
        self.max_timestamp = NO_TIMESTAMP
        self.offset_of_max_timestamp = base_offset
        """Last offset of the batch that brought `max_timestamp`."""
        self.bytes_since_index = 0
        self.first_timestamp = NO_TIMESTAMP
        """Largest timestamp of the first batch: the segment's age counts from it (segment.ms)."""
        self.created_at_ms = NO_TIMESTAMP
        self.jitter_ms = 0
        self._starts: dict[int, int] = {}
        self.first_reads = FirstReads()
        self.clear_indexes()

    def path(self, suffix: str) -> str:
        return self.path_in(self._renamed.get(suffix, self.state), suffix)

    def path_in(self, state: str, suffix: str) -> str:
        return f"{self.directory}/{file_name(self.base_offset, suffix)}{state}"

    def file(self) -> File:
        return self._files.get(self.log_path)

    def index_paths(self) -> tuple[str, str]:
        return self.path(INDEX_SUFFIX), self.path(TIME_INDEX_SUFFIX)

    def written_indexes(self) -> list[str]:
        """Paths of what `seal_indexes` wrote."""
        extra = [self.transactions.table.path] if self.transactions.has_file else []
        return [*self.index_paths(), *extra]

    def paths(self) -> list[str]:
        """Of all files that the segment may have, the `.log` first."""
        return [self.path(suffix) for suffix in SEGMENT_SUFFIXES]

    def forget_files(self) -> None:
        """Close those that are open."""
        for path in self.paths():
            self._files.forget(path)

    # Making and opening.

    @classmethod
    def create(
        cls,
        directory: str,
        base_offset: int,
        files: OpenFiles,
        config: LogConfig,
        now_ms: int,
        *,
        state: str = IN_USE,
    ) -> Segment:
        """A new, empty file; its name is durable after a sync of the directory."""
        segment = cls(directory, base_offset, files, config, state=state)
        files.create(segment.log_path)
        segment.created_at_ms = now_ms
        return segment

    def clear_indexes(self) -> None:
        """Empty indexes in memory, to be filled by `note`."""
        self._clear_offset_indexes()
        self.transactions = TransactionIndex.new(self.path(TRANSACTION_INDEX_SUFFIX), self._files)

    def _clear_offset_indexes(self) -> None:
        index_path, time_index_path = self.index_paths()
        limit = self._config.segment_index_bytes
        self.offset_index = OffsetIndex.new(index_path, self.base_offset, limit, self._files)
        self.time_index = TimeIndex.new(time_index_path, self.base_offset, limit, self._files)
        self.bytes_since_index = 0

    def open_indexes(self) -> None:
        """Use the index files on disk. Raises IndexDamaged: then `clear_indexes` and scan."""
        index_path, time_index_path = self.index_paths()
        limit = self._config.segment_index_bytes
        self.offset_index = OffsetIndex.open(
            index_path, self.base_offset, limit, self._files, log_size=self.size
        )
        self.time_index = TimeIndex.open(time_index_path, self.base_offset, limit, self._files)
        self.transactions = TransactionIndex.open(
            self.path(TRANSACTION_INDEX_SUFFIX), self.base_offset, self._files
        )
        self._check_last_entry()
        self.max_timestamp, self.offset_of_max_timestamp = self.time_index.last

    def _check_last_entry(self) -> None:
        """The last entry must point at the batch that it names."""
        last = self.offset_index.lookup_position(self.size)
        if self.size == 0 or last.position == 0:
            return
        head = self.file().read_at(last.position, HEADER_SIZE)
        try:
            found = parse_header(head).last_offset
        except RecordsError as error:
            raise IndexDamaged(f"no batch at byte {last.position}: {error}") from None
        if found != last.last_offset:
            raise IndexDamaged(f"batch at byte {last.position} ends at {found}, not as it says")

    # Growing.

    def note(self, last_offset: int, size: int, max_timestamp: int) -> None:
        """A batch of `size` bytes that ends at `last_offset` was appended at `self.size`."""
        position = self.size
        if position == 0:
            self.first_timestamp = max_timestamp
        if max_timestamp > self.max_timestamp:
            self.max_timestamp = max_timestamp
            self.offset_of_max_timestamp = last_offset
        if self.bytes_since_index > self._config.index_interval_bytes:
            self.offset_index.append(last_offset, position)
            self.time_index.maybe_append(self.max_timestamp, self.offset_of_max_timestamp)
            self.bytes_since_index = 0
        starts = self._starts
        if len(starts) >= RECENT_STARTS:
            del starts[next(iter(starts))]
        starts[self.next_offset] = position
        self.bytes_since_index += size
        self.size = position + size
        self.next_offset = last_offset + 1

    def note_completed(self, completed: CompletedTransaction | None) -> None:
        """What the marker in the batch just noted ended."""
        if completed is not None and completed.aborted:
            self.transactions.append(
                AbortedTransaction(
                    producer_id=completed.producer_id,
                    first_offset=completed.first_offset,
                    last_offset=completed.last_offset,
                    last_stable_offset=completed.last_stable_offset,
                )
            )

    def must_roll_before(
        self, size: int, last_offset: int, max_timestamp: int, now_ms: int
    ) -> bool:
        """Whether a batch of `size` bytes belongs into a new segment."""
        if self.size == 0:
            # An empty segment takes any batch, unless its offset is out of the indexes' reach.
            return last_offset - self.base_offset > MAX_RELATIVE_OFFSET
        config = self._config
        if self.size + size > config.segment_bytes:
            return True
        if self.first_timestamp >= 0 and max_timestamp >= 0:
            age_ms = max_timestamp - self.first_timestamp
        else:
            age_ms = now_ms - self.created_at_ms
        return (
            age_ms > config.segment_ms - self.jitter_ms
            or self.offset_index.full
            or self.time_index.full
            or last_offset - self.base_offset > MAX_RELATIVE_OFFSET
        )

    def newest_ms(self) -> int:
        """Its largest timestamp; where records bear none, when the file was last written."""
        if self.max_timestamp >= 0:
            return self.max_timestamp
        return self.file().modified_ms()

    def use_config(self, config: LogConfig) -> None:
        self._config = config

    def mark(self) -> SegmentMark:
        return SegmentMark(
            self.size,
            self.next_offset,
            self.max_timestamp,
            self.offset_of_max_timestamp,
            self.bytes_since_index,
            self.first_timestamp,
        )

    def return_to(self, mark: SegmentMark) -> None:
        """Forget the batches noted since `mark`; their bytes are the caller's to cut."""
        self.offset_index.truncate(mark.size)
        self.time_index.truncate(mark.next_offset)
        self.transactions.truncate(mark.next_offset)
        (
            self.size,
            self.next_offset,
            self.max_timestamp,
            self.offset_of_max_timestamp,
            self.bytes_since_index,
            self.first_timestamp,
        ) = mark
        self._starts.clear()

    def seal_indexes(self) -> None:
        """Enter the newest timestamp and write the index files (not synced)."""
        self.time_index.maybe_append(self.max_timestamp, self.offset_of_max_timestamp)
        self.offset_index.table.write()
        self.time_index.table.write()
        self.transactions.write()

    def freeze_indexes(self) -> None:
        """The files are synced: the memory is no longer needed."""
        self.offset_index.table.freeze()
        self.time_index.table.freeze()
        self.transactions.freeze()
        self._starts.clear()

    async def store_transactions(self) -> None:
        """Of a sealed segment whose transaction index was rebuilt after the others."""
        self.transactions.write()
        if self.transactions.has_file:
            await self._files.sync(self.transactions.table.path)
        self.transactions.freeze()

    def thaw_indexes(self) -> None:
        self.offset_index.table.thaw()
        self.time_index.table.thaw()
        self.transactions.table.thaw()

    def change_state(self, disk: Disk, state: str) -> None:
        """Rename the files, where the last one to come or the first one to go is the `.log`: a
        crash in between leaves index files without a log, which nobody takes for a segment.

        Raises OSError; then some may have their new names, by which they are known from now on. It
        may be asked for again.
        """
        self.forget_files()
        try:
            for suffix in SEGMENT_SUFFIXES if state == DELETED else reversed(SEGMENT_SUFFIXES):
                old, new = self.path(suffix), self.path_in(state, suffix)
                if old != new and disk.exists(old):
                    disk.rename(old, new)
                self._renamed[suffix] = state
            self.state = state
            self._renamed.clear()
        finally:
            self.log_path = self.path(LOG_SUFFIX)
            self.offset_index.table.path, self.time_index.table.path = self.index_paths()
            self.transactions.table.path = self.path(TRANSACTION_INDEX_SUFFIX)

    def remove(self, disk: Disk) -> None:
        """The `.log` first: what is then left over is an orphan, and orphans go at start."""
        self.forget_files()
        for path in self.paths():
            if disk.exists(path):
                disk.remove(path)

    # Looking up. Everything up to `size` has been written when these are called. All of them raise
    # BatchDamaged.

    def scan(self, position: int = 0, *, read_bytes: int = WALK_BYTES) -> Scan:
        return Scan(self.file(), position, self.size, read_bytes=read_bytes)

    def walk(self, position: int = 0, *, read_bytes: int = WALK_BYTES) -> Iterator[PlacedBatch]:
        """As `scan`, where nothing but the end is a reason to stop."""
        scan = self.scan(position, read_bytes=read_bytes)
        try:
            yield from scan
        except OSError as error:
            raise self._unreadable(scan.end, error) from None
        if scan.fault is not None:
            raise self._damaged(scan.end, scan.fault)

    def _walk_from(self, entry: OffsetPosition) -> Iterator[PlacedBatch]:
        """From the batch that the entry names: an entry that names another one would lead past
        records as if compaction had taken them. So would a base offset that has fallen, which no
        checksum covers."""
        expected = self.base_offset
        for batch in self.walk(entry.position):
            header = batch.header
            if batch.position == entry.position > 0:
                found = header.last_offset
                if found != entry.last_offset:
                    raise self._damaged(
                        entry.position, f"{found} where {entry.last_offset} is said"
                    )
            elif header.base_offset < expected:
                raise self._damaged(batch.position, f"{header.base_offset} behind {expected - 1}")
            expected = header.next_offset
            yield batch

    def _read_batches(self, start: int, end: int) -> bytes:
        """Whole batches. Where the device refuses, each is read alone: one may be unreadable, and
        if it is none, the refusal was a passing one (OSError if it comes again)."""
        try:
            return self.file().read_at(start, end - start)
        except OSError as error:
            if error.errno != EIO:
                raise
        for batch in self.walk(start):
            if batch.position >= end:
                break
            try:
                self.file().read_at(batch.position, batch.header.size)
            except OSError as error:
                raise self._unreadable(batch.position, error) from None
        return self.file().read_at(start, end - start)

    def _unreadable(self, position: int, error: OSError) -> OSError | BatchDamaged:
        """A sector that cannot be read is lost like one that was changed; what else may fail (no
        descriptors) says nothing about the bytes."""
        return self._damaged(position, str(error)) if error.errno == EIO else error

    def _damaged(self, position: int, reason: str) -> BatchDamaged:
        return BatchDamaged(base_offset=self.base_offset, position=position, reason=reason)

    def locate(self, offset: int) -> int | None:
        """Position of the first batch whose last offset is not below `offset`."""
        position = self._starts.get(offset)
        if position is not None:
            return position
        passed: PlacedBatch | None = None
        for batch in self._walk_from(self.offset_index.lookup(offset)):
            header = batch.header
            if header.last_offset >= offset:
                if header.base_offset > offset:
                    self._test_before_gap(passed)
                return batch.position
            passed = batch
        self._test_before_gap(passed)
        return None

    def _test_before_gap(self, batch: PlacedBatch | None) -> None:
        """Compaction leaves gaps, but a gap may also be a batch that claims to end too early."""
        if batch is not None:
            self._test(batch)

    def _test(self, batch: PlacedBatch) -> None:
        end = batch.position + batch.header.size
        if self.first_reads.untested(batch.position, end):
            self._read_tested(batch.position, end)

    def walk_tested(self, position: int) -> Iterator[PlacedBatch]:
        """As `walk`, for those who believe more of a header than where the next one is: it may be
        an earlier process's, and changed since."""
        for batch in self.walk(position):
            self._test(batch)
            yield batch

    def read(
        self, offset: int, *, max_bytes: int, upper_bound: int, at_least_one: bool
    ) -> LogRead | None:
        """Whole batches from the one that holds `offset` (or the next one) on, all of them below
        `upper_bound`. None when this segment has nothing at or above `offset`.

        Kafka may cut the last batch at `max_bytes`; clients then throw the piece away. Here the
        answer ends with a whole batch, found through the index and one short walk.
        """
        start = self.locate(offset)
        if start is None:
            return None
        end, next_offset = self.size, self.next_offset
        if upper_bound < next_offset:
            end, next_offset = self._end_below(upper_bound, start, offset)
        if end - start > max_bytes:
            end, next_offset = self._end_within(start, max_bytes, offset, at_least_one=at_least_one)
        if end <= start:
            return LogRead(next_offset=offset)
        data = self._read_tested(start, end)
        self._remember(next_offset, end)
        return LogRead(
            parts=[data],
            size=len(data),
            base_offset=int.from_bytes(data[:8], "big"),
            next_offset=next_offset,
        )

    def _read_tested(self, start: int, end: int) -> bytes:
        """Whole batches; those of an earlier process are tested first (RULES C1)."""
        data = self._read_batches(start, end)
        if self.first_reads.untested(start, end):
            fault = first_fault(data, lambda: self._header_at(end), self.next_offset)
            if fault is not None:
                position, reason = fault
                raise self._damaged(start + position, reason)
            self.first_reads.note_tested(start, end)
        return data

    def _header_at(self, position: int) -> BatchHeader | None:
        if position >= self.size:
            return None
        for batch in self.walk(position, read_bytes=HEADER_SIZE):
            return batch.header
        return None

    def _remember(self, offset: int, position: int) -> None:
        """A reader that got everything below `offset` asks for it next."""
        if position < self.size:
            if len(self._starts) >= RECENT_STARTS:
                del self._starts[next(iter(self._starts))]
            self._starts[offset] = position

    def _end_below(self, upper_bound: int, start: int, offset: int) -> tuple[int, int]:
        """(end, next offset) of the last batch that lies wholly below `upper_bound`."""
        known = self._starts.get(upper_bound)
        if known is not None:
            return known, upper_bound
        end, next_offset = start, offset
        first = max(start, self.offset_index.lookup(upper_bound - 1).position)
        for position, header, _ in self.walk(first):
            if header.next_offset > upper_bound:
                # Everything before this batch lies below the bound.
                return position, max(next_offset, offset)
            end, next_offset = position + header.size, header.next_offset
        return end, next_offset

    def _end_within(
        self, start: int, max_bytes: int, offset: int, *, at_least_one: bool
    ) -> tuple[int, int]:
        """(end, next offset) of the last batch that ends within `max_bytes` of `start`.

        With `at_least_one` the first batch is taken whatever its size (KIP-74).
        """
        limit = start + max_bytes
        first = max(start, self.offset_index.lookup_position(limit).position)
        before: BatchHeader | None = None
        for batch in self.walk(first):
            position, header, _ = batch
            if position + header.size > limit:
                if position == start and at_least_one:
                    return position + header.size, header.next_offset
                if before is not None:
                    return position, before.next_offset
                # It is not among what is read, so that nobody else looks at it: who believed a
                # changed offset would lead the reader past it.
                self._test(batch)
                return position, max(offset, header.base_offset)
            before = header
        return self.size, self.next_offset

    def read_batch(self, batch: PlacedBatch) -> bytes:
        return self._read_tested(batch.position, batch.position + batch.header.size)

    # Cutting.

    def truncate(self, offset: int) -> None:
        """Cut off the batch that holds `offset` and all after it (not synced)."""
        position = self.locate(offset)
        if position is None or position >= self.size:
            return
        self.end_at(position)
        self.file().truncate(position)

    def end_at(self, position: int) -> None:
        """Forget what is at `position`, where a batch begins, and behind it; the file stays."""
        self.thaw_indexes()
        self.offset_index.truncate(position)
        self._starts.clear()
        self.first_reads.cut(position)
        self.size = position
        self.rescan_tail()

    def look_again(self, found: BatchDamaged, *, sealed: bool) -> BatchDamaged | None:
        """Is the log damaged, or did an index lead astray, or the device fail in passing?

        All headers are walked, which may take a good part of a second, the batch in question is
        tested again, and the indexes are made anew.

        Returns the first damage, before which the segment now ends; None when the log is whole.
        Raises OSError; then nothing has changed.
        """
        size, next_offset = self.size, self.next_offset
        whole, damage = self._whole_batches(found)
        self._starts.clear()
        self._clear_offset_indexes()
        self.size, self.next_offset = 0, self.base_offset
        self.max_timestamp, self.offset_of_max_timestamp = NO_TIMESTAMP, self.base_offset
        for header in whole:
            self.note(header.last_offset, header.size, header.max_timestamp)
        if damage is None:
            self.next_offset = next_offset
            if sealed:
                self.time_index.maybe_append(self.max_timestamp, self.offset_of_max_timestamp)
                self.offset_index.table.write()
                self.time_index.table.write()
            return None
        logger.error("%s ends at byte %d of %d: %s", self.log_path, self.size, size, damage.reason)
        self.transactions.truncate(self.next_offset)
        self.first_reads.cut(self.size)
        return damage

    def _whole_batches(self, found: BatchDamaged) -> tuple[list[BatchHeader], BatchDamaged | None]:
        """All batches up to the first damage, and that damage."""
        whole: list[BatchHeader] = []
        expected = self.base_offset
        scan = self.scan(read_bytes=1 << 18)
        try:
            for position, header, _ in scan:
                if header.base_offset < expected:
                    return whole, self._damaged(position, f"{header.base_offset} comes again")
                if position == found.position and not self._is_whole(position, header):
                    return whole, found
                whole.append(header)
                expected = header.next_offset
        except OSError as error:
            if error.errno != EIO:
                raise
            return whole, self._damaged(scan.end, str(error))
        return whole, None if scan.fault is None else self._damaged(scan.end, scan.fault)

    def _is_whole(self, position: int, header: BatchHeader) -> bool:
        """The batch at `position` reads as it was written, and what follows does not contradict."""
        end = position + header.size
        data = self.file().read_at(position, header.size)
        following = next((batch.header for batch in self.scan(end)), None)
        return first_fault(data, lambda: following, self.next_offset) is None

    def rescan_tail(self, *, indexes_sealed: bool = False) -> None:
        """Derive `next_offset`, timestamps and distance to the last entry from the bytes.

        Starts at the last index entry, so at most about index.interval.bytes are walked, as long
        as timestamps rise; or whatever they do where `seal_indexes` has entered the largest.
        """
        last_entry = self.offset_index.lookup_position(self.size)
        self.next_offset = self.base_offset
        self.bytes_since_index = self.size - last_entry.position
        for batch in self.walk(last_entry.position):
            self.next_offset = batch.header.next_offset
        self.time_index.truncate(self.next_offset)
        self.transactions.truncate(self.next_offset)
        self.max_timestamp, self.offset_of_max_timestamp = self.time_index.last
        newest = self.offset_index.lookup(self.offset_of_max_timestamp).position
        if indexes_sealed:
            newest = max(newest, last_entry.position)
        for _, header, _ in self.walk(newest):
            if header.max_timestamp > self.max_timestamp:
                self.max_timestamp = header.max_timestamp
                self.offset_of_max_timestamp = header.last_offset
        first = self._header_at(0)
        self.first_timestamp = NO_TIMESTAMP if first is None else first.max_timestamp
