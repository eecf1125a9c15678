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
    ANY_INDEX,
    NOBODY,
    SALT_SIZE,
    Checkpoint,
    Clear,
    Commit,
    Compact,
    Entry,
    MalformedRecord,
    Record,
    Term,
    Truncate,
    decode_records,
    encode_record,
)
from .segment import Segment, scan, segment_name, segment_number

logger = logging.getLogger(__name__)

LogEntry = tuple[bytes, int, int]
"""Command, index, term: the order in which the engine keeps them."""


class JournalState:
    """What the records add up to; the same code applies them live and at recovery."""

    def __init__(self) -> None:
        self.entries: list[LogEntry] = []
        self.term = 0
        self.voted_for = NOBODY
        self.commit_index = 0
        self.first_index = 1
        self.next_index = ANY_INDEX

    @property
    def last_index(self) -> int:
        return self.entries[-1][1] if self.entries else 0

    def apply(self, record: Record) -> None:
        """Raises Fatal when the record does not fit: the invariants of the log stand here."""
        match record:
            case Entry():
                self._append(record)
            case Truncate(from_index):
                self._truncate(from_index)
            case Compact(first_index):
                self._compact(first_index)
            case Term(term, voted_for):
                if term < self.term:
                    raise Fatal(f"term {term} follows term {self.term}")
                self.term, self.voted_for = term, voted_for
            case Commit(index):
                self.commit_index = index
            case Clear():
                self.entries = []
                self.next_index = ANY_INDEX
                self.first_index = 1
            case Checkpoint():
                self._check(record)

    def checkpoint(self) -> Checkpoint:
        return Checkpoint(
            self.term, self.voted_for, self.commit_index, self.first_index, self.next_index
        )

    def adopt(self, checkpoint: Checkpoint) -> None:
        """Begin at the oldest file: what lies before it was compacted away."""
        self.term = checkpoint.term
        self.voted_for = checkpoint.voted_for
        self.commit_index = checkpoint.commit_index
        self.first_index = checkpoint.first_index
        self.next_index = checkpoint.next_index

    def _append(self, entry: Entry) -> None:
        if self.next_index not in (ANY_INDEX, entry.index):
            raise Fatal(f"entry {entry.index} where {self.next_index} was due")
        if entry.term > self.term:
            raise Fatal(f"entry {entry.index} of term {entry.term} in term {self.term}")
        if self.next_index == ANY_INDEX:
            self.first_index = entry.index
        self.entries.append((entry.command, entry.index, entry.term))
        self.next_index = entry.index + 1

    def _truncate(self, from_index: int) -> None:
        if from_index <= self.commit_index:
            raise Fatal(
                f"committed entries would be removed: from {from_index}, commit index "
                f"{self.commit_index}"
            )
        if self.entries and from_index > self.entries[0][1]:
            del self.entries[from_index - self.entries[0][1] :]
        else:
            # At recovery the entries before the oldest file are not in memory.
            self.entries = []
        self.next_index = from_index

    def _compact(self, first_index: int) -> None:
        if first_index > self.next_index:
            raise Fatal(f"compaction to {first_index} beyond the end {self.next_index}")
        self.first_index = max(self.first_index, first_index)
        if self.entries and first_index > self.entries[0][1]:
            del self.entries[: first_index - self.entries[0][1]]

    def _check(self, checkpoint: Checkpoint) -> None:
        # Not every move of the commit index is a record, so here it may jump.
        self.commit_index = checkpoint.commit_index
        if checkpoint != self.checkpoint():
            raise Fatal(f"state {self.checkpoint()} where a new file says {checkpoint}")


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
        recovered = _recover(disk, directory)
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
        state, segments, salt, next_sequence = recovered
        # What was read may still be only in the kernel's memory: a process that was killed had
        # not synced its last batch. It counts from here on, so it is made durable now.
        await segments[-1].sync()
        await disk.sync_dir(directory)
        return cls(
            disk,
            directory,
            salt=salt,
            segment_bytes=segment_bytes,
            state=state,
            segments=segments,
            next_sequence=next_sequence,
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


def _recover(disk: Disk, directory: str) -> tuple[JournalState, list[Segment], bytes, int] | None:
    """(state, files, salt, next sequence), or None where no journal has begun.

    Nothing on the disk is changed before all of it was found in order.
    """
    present = sorted(n for n in map(segment_number, disk.list(directory)) if n is not None)
    numbers = _newest_run(present)
    torn = 0
    state = JournalState()
    segments: list[Segment] = []
    salt: bytes | None = None
    sequence: int | None = None
    spare: str | None = None
    for number in numbers:
        path = f"{directory}/{segment_name(number)}"
        file = disk.open(path)
        try:
            found = scan(path, file.read_at(0, file.size()), number, salt)
            if found is None or not found.batches:
                file.close()
                spare = spare or path
                continue
            if spare is not None:
                raise Fatal(f"{spare}: offset 0: damaged; the journal goes on in {path}")
            if sequence is not None and found.batches[0][0] != sequence:
                raise Fatal(
                    f"{segments[-1].path}: offset {segments[-1].end}: damaged; batch {sequence} is "
                    f"missing, {path} goes on with batch {found.batches[0][0]}"
                )
        except BaseException:
            file.close()
            raise
        salt = found.salt
        segment = Segment(disk, path, number, salt)
        segment.attach(file, found.end)
        segments.append(segment)
        if len(segments) == 1:
            _begin(path, state, found.batches[0][1])
        for _, payload in found.batches:
            _replay(path, state, segment, payload)
        sequence = found.batches[-1][0] + 1
        torn = found.torn
    if salt is not None:
        _check_recovered(directory, state, segments)
    if torn:
        logger.warning("%s: offset %d: torn write cut", segments[-1].path, segments[-1].end)
        segments[-1].cut(torn)
    for number in present:
        if not any(segment.number == number for segment in segments):
            # Spares are made anew, since one may be half preallocated or hold a torn first batch;
            # what lies before the newest run of files is left over from an interrupted removal.
            disk.remove(f"{directory}/{segment_name(number)}")
    if salt is None or sequence is None:
        return None
    return state, segments, salt, sequence


def _check_recovered(directory: str, state: JournalState, segments: list[Segment]) -> None:
    begin = state.entries[0][1] if state.entries else state.next_index
    if begin > state.first_index:
        raise Fatal(
            f"{segments[0].path}: the journal begins at index {begin}, but must hold "
            f"{state.first_index}: an older file is missing"
        )
    if state.commit_index > state.last_index:
        logger.warning(
            "%s: commit index %d lowered to the end of the journal, %d",
            directory,
            state.commit_index,
            state.last_index,
        )
        state.commit_index = state.last_index


def _newest_run(numbers: list[int]) -> list[int]:
    """The gapless run at the end."""
    start = len(numbers) - 1
    while start > 0 and numbers[start - 1] == numbers[start] - 1:
        start -= 1
    return numbers[max(0, start) :]


def _begin(path: str, state: JournalState, payload: bytes) -> None:
    """Take over the state that the oldest file says was before it."""
    try:
        checkpoint = next(decode_records(payload), None)
    except MalformedRecord as error:
        raise Fatal(f"{path}: {error}") from error
    if not isinstance(checkpoint, Checkpoint):
        raise Fatal(f"{path}: the file does not begin with a checkpoint")
    state.adopt(checkpoint)


def _replay(path: str, state: JournalState, segment: Segment, payload: bytes) -> None:
    try:
        for record in decode_records(payload):
            state.apply(record)
            if isinstance(record, Entry):
                segment.max_index = max(segment.max_index, record.index)
    except (Fatal, MalformedRecord) as error:
        raise Fatal(f"{path}: {error}") from error
