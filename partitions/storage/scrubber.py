"""Reads old data now and then, for the disk that changes a bit of what nobody reads (RULES C1).

What an earlier process wrote is tested when it is first read (`first_reads`), and what nobody reads
is never tested: by the time somebody does, the other replicas may have lost theirs. So every log
is read once in `log.scrubber.interval.ms`, all that is on the device of it, and whatever is not
what was written is told in the way of a first read: the log ends there, the replica steps down and
is filled again by others, or sets the damage aside if there are none.

The file is read beside the loop, through a descriptor of its own, so that the log may be cut,
compacted or deleted meanwhile; who finds a fault looks again at the log as it is by then. It is
tested on the loop, a slice of about a millisecond at a time, and no faster than
`log.scrubber.io.max.bytes.per.second`. While the loop is late for others nothing is read.

What the page cache holds is read from there: a bit that changed on the device is seen when the
kernel has given the page away.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from errno import EIO
from random import Random
from typing import Any, Protocol

from ...seam import Disk, File, frozen, offload
from ...seam.checksum import crc32c
from ...wire.records import HEADER_SIZE, MAGIC, BatchHeader
from ...wire.records.batch_header import HEADER
from .batch_scan import CRC_FROM, Scan
from .cleaner.pace import Pace
from .errors import BatchDamaged
from .first_reads import InMemory, contradiction
from .partition_log import PartitionLog
from .sectors import Sectors
from .segment import Segment

logger = logging.getLogger(__name__)

WINDOW_BYTES = 1 << 20
"""Read at once, and held."""

BATCHES_AT_ONCE = 20
"""Tested between two looks at how long it has taken."""

FIRST_ROUND_SECONDS = 300.0
"""After the start: a node that comes back has others to read for."""

LOOK_SECONDS = 60.0
"""Between two looks at the settings when no round is due."""

PROBE_SECONDS = 0.01
LATE_SECONDS = 0.005
"""A turn of the loop may take that long (RULES F1); who comes later waited for others."""

PAUSE_SECONDS = 1.0
MOST_PAUSES = 10
"""In a row. A node that is always busy is scrubbed slowly, not never."""


@frozen
class ScrubberSettings:
    enabled: bool = True
    """`log.scrubber.enable`."""
    interval_ms: int = 604_800_000
    """`log.scrubber.interval.ms`: from the begin of one round to that of the next."""
    max_bytes_per_second: float = 4 << 20
    """`log.scrubber.io.max.bytes.per.second`."""

    @classmethod
    def from_broker_configs(cls, configs: Mapping[str, str]) -> ScrubberSettings:
        """What is absent keeps its default. Raises ValueError."""
        given: dict[str, Any] = {
            field: read(configs[name].strip())
            for name, (field, read) in _SETTINGS.items()
            if name in configs
        }
        return cls(**given)


_SETTINGS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "log.scrubber.enable": ("enabled", lambda text: text.lower() == "true"),
    "log.scrubber.interval.ms": ("interval_ms", int),
    "log.scrubber.io.max.bytes.per.second": ("max_bytes_per_second", float),
}


class ScrubCounters(Protocol):
    """They only grow."""

    scrubbed_bytes: int
    scrubbed_logs: int
    damage_scrubbed: int


class LogScrubber:
    """Owned by whoever runs `run`."""

    def __init__(
        self,
        *,
        disk: Disk,
        rng: Random,
        settings: Callable[[], ScrubberSettings],
        logs: Callable[[], Sequence[PartitionLog]],
        counters: ScrubCounters,
    ) -> None:
        """`logs`: those that serve or follow; asked once a round."""
        self._disk = disk
        self._rng = rng
        self._settings = settings
        self._logs = logs
        self._counters = counters

    async def run(self) -> None:
        """Until cancelled."""
        loop = asyncio.get_running_loop()
        first = loop.time() + min(self._interval_s, FIRST_ROUND_SECONDS)
        began: float | None = None
        while True:
            due = first if began is None else began + self._interval_s
            if due > loop.time():
                await asyncio.sleep(min(due - loop.time(), LOOK_SECONDS))
                continue
            began = loop.time()
            await self.scrub_all()

    @property
    def _interval_s(self) -> float:
        return self._settings().interval_ms / 1000

    async def scrub_all(self) -> None:
        """One round over all logs. It begins with any of them: a node that is stopped every day
        would never come to the last ones."""
        logs = list(self._logs())
        first = self._rng.randrange(len(logs)) if logs else 0
        # One pace for all of them: many small logs are no reason to read faster.
        rate, pace = 0.0, Pace(1.0)
        for log in logs[first:] + logs[:first]:
            settings = self._settings()
            if not settings.enabled:
                return
            if settings.max_bytes_per_second != rate:
                rate = settings.max_bytes_per_second
                pace = Pace(rate)
            try:
                await self.scrub(log, pace)
            except OSError as error:
                logger.warning("%s is not read for damage this time: %s", log, error)

    async def scrub(self, log: PartitionLog, pace: Pace) -> None:
        """Read all that is at rest in this log, or up to the first damage. Raises OSError."""
        for segment, size in log.at_rest():
            if not log.has_segment(segment) or segment.size < size:
                continue  # Deleted, compacted or cut meanwhile.
            try:
                await self._scrub_segment(segment, size, pace)
            except BatchDamaged as found:
                if log.has_segment(segment) and segment.size >= size:
                    self._note(log, found)
                    return
        self._counters.scrubbed_logs += 1

    def _note(self, log: PartitionLog, found: BatchDamaged) -> None:
        failed = log.note_damage(found)
        if log.damage is not None:
            self._counters.damage_scrubbed += 1
            logger.error("found by reading what nobody had asked for: %s", failed)

    async def _scrub_segment(self, segment: Segment, size: int, pace: Pace) -> None:
        """Raises BatchDamaged, OSError."""
        file = self._disk.open(segment.log_path)
        try:
            walk = _Walk(segment, file, size, pace, self._counters)
            while not walk.is_over:
                await self._wait_while_busy(pace)
                await walk.step()
        finally:
            file.close()

    async def _wait_while_busy(self, pace: Pace) -> None:
        loop = asyncio.get_running_loop()
        for _ in range(MOST_PAUSES):
            due = loop.time() + PROBE_SECONDS
            await pace.beside(asyncio.sleep(PROBE_SECONDS))
            if loop.time() - due <= LATE_SECONDS:
                return
            await pace.beside(asyncio.sleep(PAUSE_SECONDS))


class _Walk:
    """Over one segment, a window at a time."""

    def __init__(
        self, segment: Segment, file: File, size: int, pace: Pace, counters: ScrubCounters
    ) -> None:
        self._base_offset = segment.base_offset
        self._end_offset = segment.next_offset
        self._file = file
        self._size = size
        self._pace = pace
        self._counters = counters
        self._position = 0
        self._before: BatchHeader | None = None
        self._at = 0
        """Where `before` begins."""

    @property
    def is_over(self) -> bool:
        return self._position >= self._size

    async def step(self) -> None:
        """Test what one window holds, at least one batch. Raises BatchDamaged, OSError."""
        start = self._position
        data = await self._read(start, min(WINDOW_BYTES, self._size - start))
        scan = Scan(InMemory(data), 0, len(data), verify_from=0, read_bytes=len(data))
        told = 0
        for number, (position, header, _) in enumerate(scan, start=1):
            self._pass(header, start + position)
            if number % BATCHES_AT_ONCE == 0:
                await self._pace.spend(batches=BATCHES_AT_ONCE, tested=scan.end - told)
                told = scan.end
        await self._pace.spend(batches=1, tested=scan.end - told)
        self._position = start + scan.end
        if scan.fault is None:
            return
        if scan.fault == "checksum" or start + len(data) >= self._size:
            raise self._damaged(self._position, scan.fault)
        if scan.end == 0:
            await self._pass_large(data, scan.fault)

    def _pass(self, header: BatchHeader, position: int) -> None:
        if header.next_offset > self._end_offset:
            raise self._damaged(
                position,
                f"offset {header.last_offset} in a segment that ends at {self._end_offset}",
            )
        fault = contradiction(self._before, header)
        if fault is not None:
            raise self._damaged(self._at, fault)
        self._before, self._at = header, position

    async def _pass_large(self, data: bytes, fault: str) -> None:
        """One batch that is longer than a window: its checksum is taken piece by piece, for what
        says how long it is may be what has changed."""
        start = self._position
        header = BatchHeader._make(HEADER.unpack_from(data))
        end = start + header.size
        if header.magic != MAGIC or not start + len(data) < end <= self._size:
            raise self._damaged(start, fault)
        crc = crc32c(memoryview(data)[CRC_FROM:])
        position = start + len(data)
        while position < end:
            piece = await self._read(position, min(WINDOW_BYTES, end - position))
            crc = crc32c(piece, crc)
            position += len(piece)
            await self._pace.spend(tested=len(piece))
        if crc != header.crc:
            raise self._damaged(start, "checksum")
        self._pass(header, start)
        self._position = end

    async def _read(self, position: int, length: int) -> bytes:
        try:
            data = await self._pace.beside(offload(lambda: self._file.read_at(position, length)))
        except OSError as error:
            if error.errno != EIO:
                raise
            # Where a sector is missing, the batch around it has lost its checksum. If none is, it
            # was a passing failure.
            sectors = Sectors(lambda: self._file)
            data = await self._pace.beside(offload(lambda: sectors.read_at(position, length)))
        if len(data) < min(length, HEADER_SIZE):
            raise self._damaged(position, f"{len(data)} bytes are no batch")
        self._counters.scrubbed_bytes += len(data)
        return data

    def _damaged(self, position: int, reason: str) -> BatchDamaged:
        return BatchDamaged(base_offset=self._base_offset, position=position, reason=reason)
