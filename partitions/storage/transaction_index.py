"""`.txnindex`: the aborted transactions whose markers lie in a segment (KIP-98), Kafka's bytes.

    version int16 0 | producer id int64 | first offset int64 | marker's offset int64
    | last stable offset int64

A reader of committed data gets batches and, beside them, which of them were aborted: every entry
whose transaction overlaps what was read. Entries stand in the order of their markers, so the last
stable offset of an entry (where the oldest other transaction began that was still open, else behind
the marker) says when to stop: whatever ends later cannot begin below it.

The file exists once a transaction was aborted. It is derived from the log: like the other indexes
it is held in memory while its segment grows, written with them, and rebuilt when in doubt.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from struct import Struct

from ...seam import frozen
from .index_table import IndexDamaged, IndexTable
from .open_files import OpenFiles

SUFFIX = ".txnindex"
VERSION = 0
ENTRY = Struct(">hqqqq")


@frozen
class AbortedTransaction:
    """What one entry says."""

    producer_id: int
    first_offset: int
    last_offset: int
    """Of the ABORT marker."""
    last_stable_offset: int
    """As of the marker, watermark aside."""

    def overlaps(self, start_offset: int, end_offset: int) -> bool:
        """Whether a reader of [start_offset, end_offset) must know of it.

        One whose marker lies below the start would hide the producer's later, committed records for
        ever.
        """
        return self.last_offset >= start_offset and self.first_offset < end_offset


class TransactionIndex:
    """Entries of one segment, in the order of their markers."""

    __slots__ = ("has_file", "known", "table")

    def __init__(self, table: IndexTable, *, has_file: bool) -> None:
        self.table = table
        self.has_file = has_file
        self.known = True
        """False from the start of a recovery that walks the segment until the states of its
        producers are rebuilt: where a transaction began may lie segments below."""

    @classmethod
    def new(cls, path: str, files: OpenFiles) -> TransactionIndex:
        return cls(IndexTable(path, ENTRY, files), has_file=False)

    @classmethod
    def open(cls, path: str, base_offset: int, files: OpenFiles) -> TransactionIndex:
        """From its file; without one nothing was aborted. Raises IndexDamaged."""
        try:
            files.get(path)
        except FileNotFoundError:
            return cls.new(path, files)
        index = cls(IndexTable.open(path, ENTRY, files), has_file=True)
        above = base_offset - 1
        for version, _, first_offset, last_offset, _ in index.table.entries():
            if version != VERSION:
                raise IndexDamaged(f"entry of version {version}")
            if last_offset <= above or first_offset > last_offset:
                raise IndexDamaged(f"entry {first_offset} to {last_offset} behind {above}")
            above = last_offset
        return index

    def __iter__(self) -> Iterator[AbortedTransaction]:
        for _, *fields in self.table.entries():
            yield AbortedTransaction(*fields)

    def append(self, entry: AbortedTransaction) -> None:
        self.table.append(
            VERSION,
            entry.producer_id,
            entry.first_offset,
            entry.last_offset,
            entry.last_stable_offset,
        )

    def truncate(self, end_offset: int) -> None:
        """Forget transactions whose marker is at or above `end_offset`: they are open again."""
        kept = sum(1 for entry in self if entry.last_offset < end_offset)
        self.table.truncate(kept)

    def write(self) -> None:
        """Put the entries into the file (not synced), which is made for the first of them.

        While they are not known the file stays: should a crash come before they are, it is right,
        or its segment is walked again.
        """
        if self.known and (self.table.count or self.has_file):
            self.table.write()
            self.has_file = True

    def freeze(self) -> None:
        if self.known and self.has_file:
            self.table.freeze()


def aborted_in(
    indexes: Iterable[TransactionIndex], start_offset: int, end_offset: int
) -> list[AbortedTransaction]:
    """Those that a reader of [start_offset, end_offset) must know of; `indexes` are of the segments
    from the one that holds `start_offset` on."""
    found: list[AbortedTransaction] = []
    for index in indexes:
        for entry in index:
            if entry.overlaps(start_offset, end_offset):
                found.append(entry)
            if entry.last_stable_offset >= end_offset:
                return found
    return found
