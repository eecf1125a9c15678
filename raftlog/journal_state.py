"""What the records of a journal add up to. No I/O here."""

from __future__ import annotations

from ..seam import Fatal
from .journal_records import (
    ANY_INDEX,
    NOBODY,
    Checkpoint,
    Clear,
    Commit,
    Compact,
    Entry,
    Record,
    Term,
    Truncate,
)

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
