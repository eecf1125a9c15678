"""Walking a `.log` file from batch to batch, by headers, in bounded reads.

A header says where the next one is; nothing is unpacked. `scan` yields every whole batch that
continues the one before; where it stops, and why, is left in `Scan.end` and `Scan.fault`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

from ...seam import Buffer
from ...seam.checksum import crc32c
from ...wire.records import HEADER_SIZE, MAGIC, OVERHEAD, BatchHeader
from ...wire.records.batch_header import HEADER

CRC_FROM = 21
"""The checksum covers everything from the attributes on."""

READ_BYTES = 1 << 18


class PlacedBatch(NamedTuple):
    position: int
    header: BatchHeader
    data: memoryview | None
    """The whole batch where checksums are verified, else None."""


class Readable(Protocol):
    """What a walk needs of a file."""

    def read_at(self, position: int, length: int) -> Buffer: ...


class Scan:
    """One walk over `file` from `position`, where a batch begins, to `limit`.

    With `verify_from`, batches that reach that offset or lie above it are read whole and their
    checksum is tested.
    """

    def __init__(
        self,
        file: Readable,
        position: int,
        limit: int,
        *,
        verify_from: int | None = None,
        read_bytes: int = READ_BYTES,
    ) -> None:
        self._file = file
        self._limit = limit
        self._verify_from = verify_from
        self._read_bytes = read_bytes
        self.end = position
        """After the last batch yielded."""
        self.fault: str | None = None
        """Why the walk stopped before `limit`; None when it came to the end."""

    def __iter__(self) -> Iterator[PlacedBatch]:
        window = memoryview(b"")
        window_start = self.end
        while self.end < self._limit:
            position = self.end
            available = self._limit - position
            if available < HEADER_SIZE:
                self.fault = f"{available} bytes are no batch"
                return
            at = position - window_start
            if len(window) < at + HEADER_SIZE:
                window, window_start, at = self._read(position, self._read_bytes), position, 0
                if len(window) < HEADER_SIZE:
                    self.fault = f"{len(window)} bytes are no batch"
                    return
            header = BatchHeader._make(HEADER.unpack_from(window, at))
            if header.magic != MAGIC:
                self.fault = f"magic {header.magic}"
                return
            size = header.batch_length + OVERHEAD
            if size < HEADER_SIZE or size > available or header.last_offset_delta < 0:
                self.fault = f"length {header.batch_length}, {available - OVERHEAD} are there"
                return
            data = None
            if self._verify_from is not None and header.last_offset >= self._verify_from:
                if len(window) < at + size:
                    window = self._read(position, max(size, self._read_bytes))
                    window_start, at = position, 0
                data = window[at : at + size]
                if len(data) < size or crc32c(data[CRC_FROM:]) != header.crc:
                    self.fault = "checksum"
                    return
            self.end = position + size
            yield PlacedBatch(position, header, data)

    def _read(self, position: int, length: int) -> memoryview:
        length = min(length, self._limit - position)
        return memoryview(self._file.read_at(position, length))
