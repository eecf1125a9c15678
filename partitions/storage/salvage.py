"""What a damaged segment still holds: its whole batches, and the places where one must have been.

A damaged batch whose header is as it was says where the next one begins. Where the header is what
was damaged, the next batch is looked for byte by byte. A record may hold what looks like a batch,
so a place found like that counts only if one batch follows another from there to the end.

No checksum covers a batch's offset. Where compaction left no gaps, each batch must begin where the
one before ends. Where it may have, of two that do not fit the first is taken for the liar, and the
second is believed only if it leaves room for the first: else both are lost. A leader epoch that
does not fit costs no batch: it is put right (`mended_epoch`).

Pure: the caller reads, writes and lets others have a turn.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import NamedTuple, TypeVar

from ...seam import Buffer
from ...seam.checksum import crc32c
from ...wire.records import HEADER_SIZE, MAGIC, NO_EPOCH, BatchHeader
from ...wire.records.batch_header import HEADER
from .batch_scan import CRC_FROM, PlacedBatch, Readable, Scan
from .epoch_cache import EpochCache
from .segment import MAX_RELATIVE_OFFSET

MAGIC_AT = 16

WINDOW_BYTES = 1 << 18
"""Searched between two pauses."""

SLICE_BATCHES = 500
"""Headers walked between two pauses."""


class Whole(NamedTuple):
    """A batch that is what was written."""

    header: BatchHeader
    data: Buffer


class Lost(NamedTuple):
    """Bytes that are no batch; at the end of a file that is too short there may be none."""

    position: int
    end: int
    first_offset: int
    next_offset: int


class Pause(NamedTuple):
    """Nothing found yet: let others have a turn."""


Found = TypeVar("Found")
Search = Generator[Pause, None, Found]


class Salvage:
    """Of one segment, from its first byte to its last."""

    def __init__(
        self,
        file: Readable,
        size: int,
        *,
        base_offset: int,
        end_offset: int,
        last: bool,
        gaps: bool,
    ) -> None:
        """`end_offset`: up to where records were; of the `last` segment at least up to there.
        `gaps`: compaction may have left some."""
        self._file = file
        self._size = size
        self._base_offset = base_offset
        self._end_offset = end_offset
        self._last = last
        self._gaps = gaps

    def pieces(self) -> Iterator[Whole | Lost | Pause]:
        """In order. Together they reach `end_offset`, or beyond it if the last segment does."""
        position, expected = 0, self._base_offset
        while True:
            for batch in self._whole_from(position, expected):
                assert batch.data is not None
                yield Whole(batch.header, batch.data)
                position, expected = batch.position + batch.header.size, batch.header.next_offset
            if position >= self._size or (self._last and expected >= self._end_offset):
                # What is torn behind the end was never synced: recovery cuts it off.
                break
            found = yield from self._next_whole(position, expected)
            if found is None:
                break
            base_offset = self._header(found).base_offset
            if base_offset > expected:
                yield Lost(position, found, expected, base_offset)
            position, expected = found, base_offset
        if expected < self._end_offset:
            yield Lost(position, self._size, expected, self._end_offset)

    def _whole_from(self, position: int, expected: int) -> Iterator[PlacedBatch]:
        """Batches that neither their checksum nor the one that follows speaks against. One is held
        back until the next is seen: of two that do not fit the first is taken for the liar."""
        held: PlacedBatch | None = None
        scan = Scan(self._file, position, self._size, verify_from=0)
        for batch in scan:
            if held is not None:
                if batch.header.base_offset < held.header.next_offset:
                    return
                yield held
                expected = held.header.next_offset
                held = None
            if not self._fits(batch.header, expected):
                return
            held = batch
        if held is not None:
            yield held

    def _fits(self, header: BatchHeader, expected: int) -> bool:
        if header.base_offset != expected:
            gap = self._gaps and header.base_offset > expected
            # What was synced ended with a batch, so no gap reaches beyond it.
            if not gap or expected < self._end_offset <= header.base_offset:
                return False
        if not self._last:
            return header.next_offset <= self._end_offset
        return header.last_offset - self._base_offset <= MAX_RELATIVE_OFFSET

    def _next_whole(self, position: int, expected: int) -> Search[int | None]:
        """Where the next whole batch begins, behind the bad one at `position`; None: nowhere."""
        size = self._length_at(position)
        least = expected + 1
        if size and self._has_its_checksum(position, size):
            # Only what the checksum does not cover is wrong: it still says how many there were.
            least = expected + self._header(position).last_offset_delta + 1
        if size and self._is_whole(position + size, least):
            return position + size
        for candidate in self._candidates(position + 1):
            if isinstance(candidate, Pause):
                yield candidate
            elif self._is_whole(candidate, least) and (
                yield from self._leads_to_the_end(candidate)
            ):
                return candidate
        return None

    def _candidates(self, position: int) -> Iterator[int | Pause]:
        """Every byte that might be the magic of a batch, by where that batch would begin."""
        at = position + MAGIC_AT
        while at < self._size:
            window = bytes(self._file.read_at(at, min(WINDOW_BYTES, self._size - at)))
            found = window.find(MAGIC)
            while found >= 0:
                yield at + found - MAGIC_AT
                found = window.find(MAGIC, found + 1)
            at += len(window) or WINDOW_BYTES
            yield Pause()

    def _length_at(self, position: int) -> int:
        """0: nothing there says how long it is."""
        if self._size - position < HEADER_SIZE:
            return 0
        header = self._header(position)
        size = header.size
        plausible = header.magic == MAGIC and HEADER_SIZE <= size <= self._size - position
        return size if plausible else 0

    def _has_its_checksum(self, position: int, size: int) -> bool:
        data = memoryview(self._file.read_at(position, size))
        return crc32c(data[CRC_FROM:]) == self._header(position).crc

    def _is_whole(self, position: int, least: int) -> bool:
        """A batch behind what is lost; it begins at `least` or above, and what follows confirms
        its offset."""
        size = self._length_at(position)
        if not size:
            return False
        header = self._header(position)
        return (
            header.base_offset >= least
            and self._fits(header, header.base_offset)
            and self._is_confirmed(header, position + size)
            and self._has_its_checksum(position, size)
        )

    def _is_confirmed(self, header: BatchHeader, behind: int) -> bool:
        if self._length_at(behind):
            following = self._header(behind)
            if self._gaps:
                return following.base_offset >= header.next_offset
            return following.base_offset == header.next_offset
        if behind < self._size or self._gaps:
            return True
        return self._last or header.next_offset == self._end_offset

    def _leads_to_the_end(self, position: int) -> Search[bool]:
        scan = Scan(self._file, position, self._size)
        end_offset = 0
        for number, batch in enumerate(scan):
            if batch.header.base_offset < end_offset:
                return False
            end_offset = batch.header.next_offset
            if number % SLICE_BATCHES == SLICE_BATCHES - 1:
                yield Pause()
        return scan.fault is None or (self._last and end_offset >= self._end_offset)

    def _header(self, position: int) -> BatchHeader:
        return BatchHeader._make(HEADER.unpack(bytes(self._file.read_at(position, HEADER_SIZE))))


def mended_epoch(header: BatchHeader, before: int, behind: int, told: EpochCache | None) -> int:
    """The leader epoch that a whole batch must have been written in.

    `before`, `behind`: those of its neighbours; NO_EPOCH where nobody says. `told`: the checkpoint,
    if it can be read. Epochs never fall, so of two that do one has changed: the checkpoint says
    which, else the neighbour on the other side.
    """
    epoch = header.partition_leader_epoch
    if epoch == NO_EPOCH:
        return epoch
    falls = epoch < before or NO_EPOCH != behind < epoch
    if told is None:
        if epoch < before:
            return before
        return before if falls and NO_EPOCH != before <= behind else epoch
    said = told.epoch_for_offset(header.last_offset)
    if said == epoch or said < max(before, 0):
        return epoch
    ends = {header.base_offset, header.next_offset}
    at_an_entry = any(entry.start_offset in ends for entry in told.entries)
    # There a changed number in the checkpoint looks the same.
    return said if falls or not at_an_entry else epoch
