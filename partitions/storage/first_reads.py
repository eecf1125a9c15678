"""Bytes that an earlier process wrote are looked at when they are first read (RULES C1).

Opening a log tests what lies beyond the recovery point. What lies below was synced and is taken as
it is: to read all of it would make the start of a node as long as its disks are large. So a
replica may come back, and lead, with a block that the disk has lost or changed. Whoever reads there
first finds out: every batch is tested before it leaves this process, once in its life.

The checksum does not cover the first 21 bytes of a batch. Its length is known to be right when
another batch, or the end, follows it; its offset and leader epoch when they fit between the
neighbours'; a log's last batch is held against `leader-epoch-checkpoint` when it is opened
(`lineage`).
"""

from __future__ import annotations

from collections.abc import Callable

from ...wire.records import NO_EPOCH, BatchHeader
from .batch_scan import Scan


class FirstReads:
    """Of one segment: which bytes are an earlier process's, and which of them have been tested.

    One stretch of tested bytes is remembered, the longest: readers go forward, and to test a batch
    twice costs time only.
    """

    __slots__ = ("_tested_from", "_tested_to", "foreign_size")

    def __init__(self) -> None:
        self.foreign_size = 0
        """Bytes below it were written by an earlier process and not tested when the log opened."""
        self._tested_from = 0
        self._tested_to = 0

    def untested(self, start: int, end: int) -> bool:
        """Whether some of [start, end) must be looked at."""
        end = min(end, self.foreign_size)
        return start < end and not (self._tested_from <= start and end <= self._tested_to)

    def note_tested(self, start: int, end: int) -> None:
        if start <= self._tested_to and self._tested_from <= end:
            self._tested_from = min(self._tested_from, start)
            self._tested_to = max(self._tested_to, end)
        elif end - start > self._tested_to - self._tested_from:
            self._tested_from, self._tested_to = start, end

    def cut(self, position: int) -> None:
        """What begins at `position` is this process's from now on."""
        self.foreign_size = min(self.foreign_size, position)
        self._tested_to = min(self._tested_to, position)
        self._tested_from = min(self._tested_from, self._tested_to)


class InMemory:
    """Bytes to be walked over as if they were a file."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def read_at(self, position: int, length: int) -> memoryview:
        return memoryview(self._data)[position : position + length]


def first_fault(
    data: bytes, following: Callable[[], BatchHeader | None], end_offset: int
) -> tuple[int, str] | None:
    """(position in `data`, reason) of the first batch that is not what was written; else None.

    `data`: whole batches, or what should be such. `following`: the header behind them, if there is
    one; `end_offset`: where all of the segment ends.
    """
    if not data:
        return 0, "no bytes"
    scan = Scan(InMemory(data), 0, len(data), verify_from=0, read_bytes=len(data))
    before: BatchHeader | None = None
    at = 0
    for position, header, _ in scan:
        if header.next_offset > end_offset:
            return position, f"offset {header.last_offset} in a segment that ends at {end_offset}"
        fault = contradiction(before, header)
        if fault is not None:
            return at, fault
        before, at = header, position
    if scan.fault is not None:
        return scan.end, scan.fault
    fault = contradiction(before, following())
    return None if fault is None else (at, fault)


def contradiction(before: BatchHeader | None, header: BatchHeader | None) -> str | None:
    """One of the two is not what was written; the first is taken for it."""
    if before is None or header is None:
        return None
    if header.base_offset < before.next_offset:
        return f"offset {before.last_offset} before a batch at {header.base_offset}"
    if NO_EPOCH != header.partition_leader_epoch < before.partition_leader_epoch:
        return (
            f"leader epoch {before.partition_leader_epoch} before a batch of "
            f"{header.partition_leader_epoch}"
        )
    return None
