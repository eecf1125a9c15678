"""The durable log of one voter: entries, term and vote, with group sync.

The engine changes the log in memory and at once; each change is also one record in a buffer. One
task turns the buffer into a batch, writes and syncs it, and only then `synced` moves: whoever must
not speak before its words are durable (RULES E2) compares with that. A sync covers exactly what was
written before it began, and there is one at a time.

A batch is the unit of recovery. A torn last batch is cut: nobody was told of it. Damage anywhere
else stops the process and names file and offset. Files are numbered; a new one begins with a
checkpoint of the state before it, is preallocated in advance, and gets its first byte only after
everything in its predecessor is synced. Compaction is one record; files that hold nothing but
compacted entries are removed after that record is durable. So a crash between any two disk
operations leaves a journal that opens.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from ..seam import Disk, Fatal, TaskScope, offload
from .journal_records import (
    NOBODY,
    SALT_SIZE,
    Checkpoint,
    Clear,
    Commit,
    Compact,
    Entry,
    Record,
    Term,
    Truncate,
    encode_record,
)
from .journal_recovery import recover
from .journal_state import JournalState, LogEntry
from .segment import Segment, segment_name

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Batch:
    """What one sync covers."""

    records: list[bytes]
    position: int
    last_index: int
    max_index: int
    before: Checkpoint
    after: Checkpoint


class Journal:
    """Opened with `open`; changed by the methods; made durable by the task in `run`."""

    def __init__(
        self,
        disk: Disk,
        directory: str,
        *,
        salt: bytes,
        segment_bytes: int,
        state: JournalState,
        segments: list[Segment],
        next_sequence: int,
        fresh: bool,
    ) -> None:
        self.fresh = fresh
        """Whether there was none before."""
        self.on_synced: Callable[[], None] = lambda: None
        """Called on the loop whenever `synced` has moved."""
        self.written = 0
        """Number of records made in this process's life."""
        self.synced = 0
        """How many of them are durable."""
        self.term_position = 0
        """`written` as it was after the newest record of term and vote."""
        self.failed: BaseException | None = None
        self._disk = disk
        self._directory = directory
        self._salt = salt
        self._segment_bytes = segment_bytes
        self._state = state
        self._segments = segments
        self._spare: Segment | None = None
        self._preparing = False
        self._next_sequence = next_sequence
        self._buffer: list[bytes] = []
        self._buffer_max_index = 0
        self._flushed = state.checkpoint()
        self._synced_index = state.last_index
        self._in_flight_index: int | None = None
        self._recorded_commit = state.commit_index
        self._dirty = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()

    @classmethod
    async def open(cls, disk: Disk, directory: str, *, segment_bytes: int, rng: Random) -> Journal:
        """Recover the journal in `directory`, or begin one. Raises Fatal on damage."""
        disk.make_dirs(directory)
        # The directory's own name belongs to its parent. Synced each time: who made it may have
        # been killed before its sync.
        await disk.sync_dir(directory.rpartition("/")[0] or ".")
        recovered = recover(disk, directory)
        if recovered is None:
            journal = cls(
                disk,
                directory,
                salt=_draw_salt(rng),
                segment_bytes=segment_bytes,
                state=JournalState(),
                segments=[],
                next_sequence=1,
                fresh=True,
            )
            journal._segments.append(await journal._prepare(1))
            return journal
        # What was read may still be only in the kernel's memory: a process that was killed had
        # not synced its last batch. It counts from here on, so it is made durable now.
        recovered.segments[-1].rewrite()
        await recovered.segments[-1].sync()
        await disk.sync_dir(directory)
        return cls(
            disk,
            directory,
            salt=recovered.salt,
            segment_bytes=segment_bytes,
            state=recovered.state,
            segments=recovered.segments,
            next_sequence=recovered.next_sequence,
            fresh=False,
        )

    # What the log holds.

    @property
    def entries(self) -> list[LogEntry]:
        """Not to be changed from outside."""
        return self._state.entries

    @property
    def term(self) -> int:
        return self._state.term

    @property
    def voted_for(self) -> int | None:
        return None if self._state.voted_for == NOBODY else self._state.voted_for

    @property
    def commit_index(self) -> int:
        """Never beyond the last entry (case R15)."""
        return min(self._state.commit_index, self._state.last_index)

    @property
    def first_index(self) -> int:
        return self._state.entries[0][1] if self._state.entries else 0

    @property
    def last_index(self) -> int:
        return self._state.last_index

    @property
    def last_term(self) -> int:
        return self._state.entries[-1][2] if self._state.entries else 0

    @property
    def synced_index(self) -> int:
        """All entries up to here, as they are now, are durable."""
        return self._synced_index

    @property
    def clean(self) -> bool:
        """Whether everything written is durable."""
        return self.synced == self.written

    def term_at(self, index: int) -> int | None:
        """The term of the entry at `index`, or None when the log does not hold it."""
        position = index - self.first_index
        if 0 <= position < len(self._state.entries):
            return self._state.entries[position][2]
        return None

    def entries_from(self, index: int) -> list[LogEntry]:
        """A copy of the entries from `index` on."""
        return self._state.entries[max(0, index - self.first_index) :]

    # Changes: in memory at once, durable when `synced` has reached `written`.

    def append(self, index: int, term: int, command: bytes) -> None:
        self._record(Entry(index, term, command))
        self._buffer_max_index = max(self._buffer_max_index, index)

    def truncate_from(self, index: int) -> None:
        """Remove the entries from `index` on. Raises Fatal for committed ones."""
        self._record(Truncate(index))
        self._forget_synced_from(index)

    def compact_to(self, first_index: int) -> None:
        """Forget the entries below `first_index`, which a durable snapshot covers."""
        self._record(Compact(first_index))

    def clear(self) -> None:
        """Empty the log for a snapshot; `append` its entries before anything is awaited."""
        self._record(Clear())
        self._forget_synced_from(0)

    def set_term(self, term: int, voted_for: int | None) -> None:
        self._record(Term(term, NOBODY if voted_for is None else voted_for))
        self.term_position = self.written

    def set_commit_index(self, index: int) -> None:
        """Held in memory; `record_commit_index` makes it a record."""
        self._state.commit_index = index

    def record_commit_index(self) -> None:
        """Write the commit index down if it has moved: a hint, not worth a sync of its own each."""
        if self.commit_index != self._recorded_commit:
            self._recorded_commit = self.commit_index
            self._record(Commit(self.commit_index))

    def _record(self, record: Record) -> None:
        if self.failed is not None:
            raise Fatal(f"the journal in {self._directory} has failed: {self.failed}")
        try:
            self._state.apply(record)
        except Fatal as error:
            # Kept, since the engine swallows exceptions while it loads a snapshot.
            self.failed = error
            raise
        self._buffer.append(encode_record(record))
        self.written += 1
        self._idle.clear()
        self._dirty.set()

    def _forget_synced_from(self, index: int) -> None:
        self._synced_index = min(self._synced_index, max(0, index - 1))
        if self._in_flight_index is not None:
            self._in_flight_index = min(self._in_flight_index, max(0, index - 1))

    # Durability.

    async def run(self, scope: TaskScope) -> None:
        """Write and sync for ever. Any failure is Fatal (RULES C4): nothing is retried."""
        try:
            while True:
                await self._dirty.wait()
                self._dirty.clear()
                while self._buffer:
                    await self._write_batch(self._take_batch(), scope)
                self._idle.set()
        except OSError as error:
            path = self._segments[-1].path
            self.failed = Fatal(f"{path}: the journal cannot be written: {error}")
            raise self.failed from error
        except Exception as error:
            self.failed = error
            raise

    async def wait_clean(self) -> None:
        """Until everything written so far is durable; needs `run`."""
        await self._idle.wait()

    def close(self) -> None:
        """Close the files. What is not synced may be lost, and nobody was told of it."""
        for segment in self._segments:
            segment.close()
        if self._spare is not None:
            self._spare.close()

    def _take_batch(self) -> _Batch:
        records, self._buffer = self._buffer, []
        max_index, self._buffer_max_index = self._buffer_max_index, 0
        before, self._flushed = self._flushed, self._state.checkpoint()
        return _Batch(
            records, self.written, self._state.last_index, max_index, before, self._flushed
        )

    async def _write_batch(self, batch: _Batch, scope: TaskScope) -> None:
        self._in_flight_index = batch.last_index
        segment = self._segment_for(batch)
        segment.write(self._next_sequence, batch.records)
        if self._spare is None and not self._preparing:
            self._preparing = True
            scope.spawn(self._prepare_spare(), name="raft journal spare")
        await segment.sync()
        self._next_sequence += 1
        segment.max_index = max(segment.max_index, batch.max_index)
        self._synced_index, self._in_flight_index = self._in_flight_index, None
        self.synced = batch.position
        self.on_synced()
        await self._remove_covered(batch.after.first_index)

    def _segment_for(self, batch: _Batch) -> Segment:
        """The last file, or the spare once the last one is full.

        While no spare is ready the last one simply grows: slower, never wrong.
        """
        current = self._segments[-1]
        size = sum(len(record) for record in batch.records)
        if current.empty or (self._spare and current.end + size > self._segment_bytes):
            if not current.empty and self._spare is not None:
                current, self._spare = self._spare, None
                self._segments.append(current)
            batch.records.insert(0, encode_record(batch.before))
        return current

    async def _remove_covered(self, first_index: int) -> None:
        """Remove the oldest files whose entries are all compacted, durably so by now."""
        while len(self._segments) > 1 and self._segments[0].max_index < first_index:
            try:
                await offload(self._segments.pop(0).remove)
            except OSError as error:
                # Left behind it does no harm: recovery begins at the newest gapless run of files.
                logger.warning("a journal file could not be removed: %s", error)

    async def _prepare_spare(self) -> None:
        try:
            self._spare = await self._prepare(self._segments[-1].number + 1)
        except OSError as error:
            # A full disk: the last file grows as far as it can, then writing fails loudly.
            logger.warning("no journal file could be prepared: %s", error)
        finally:
            self._preparing = False

    async def _prepare(self, number: int) -> Segment:
        """A zero-filled file whose name is durable before anything in it has to be."""
        path = f"{self._directory}/{segment_name(number)}"
        file = self._disk.open(path, create=True)
        try:
            file.truncate(0)
            await offload(lambda: file.preallocate(self._segment_bytes))
            await file.sync()
            await self._disk.sync_dir(self._directory)
        except BaseException:
            file.close()
            raise
        segment = Segment(self._disk, path, number, self._salt)
        segment.attach(file, 0)
        return segment


def _draw_salt(rng: Random) -> bytes:
    """Not zero at either end, so that it never hides in a file's zeros."""
    return bytes([1 + rng.randrange(255)]) + rng.randbytes(SALT_SIZE - 2) + b"\x01"
