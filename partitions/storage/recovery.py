"""Opening a log in whatever state a crash, a loss of power or a damaged disk left it (RULES C4).

Below the recovery point all was synced: segments there are taken as they are, index files included
(rebuilt where missing or damaged), and tested when they are first read (`first_reads`). Where a
reader found damage in the life before, all is tested now: the file `damage-found` says so.

From the recovery point on every batch is read and its checksum tested; the log is cut at the last
valid batch, later segments are removed, and what remains of that part is written again in place and
synced, then the directory. Written again, because pages that a failed sync left clean in the page
cache would not reach the device by another sync; only then does the end count.

A walk that ends *below* the recovery point is another matter: bytes that were on the device have
changed. Nothing is cut then; the damage is reported and the replica must leave the ISR first.

`leader-epoch-checkpoint` is brought up to date from batch headers (C6): the file may lag behind the
batches, or be ahead of a log that was cut; `lineage` says what happens when they disagree.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass

from ...seam import Disk, read_file
from ...wire.records import BatchHeader
from .batch_scan import Scan
from .checkpoints import CheckpointDamaged
from .epoch_cache import FILE_NAME as EPOCHS_FILE
from .epoch_cache import EpochCache
from .errors import BatchDamaged
from .index_table import IndexDamaged
from .lineage import HeaderLineage, Liar, agrees
from .log_config import LogConfig
from .open_files import OpenFiles
from .producer_recovery import snapshot_offsets, snapshot_path, walk
from .sectors import Sectors
from .segment import MAX_RELATIVE_OFFSET, Segment
from .segment_swap import LeftOvers, base_offsets
from .time_index import NO_TIMESTAMP
from .values import Damage

logger = logging.getLogger(__name__)

SLICE_BYTES = 1 << 20
"""Bytes checked or written between two turns of the loop (RULES F1)."""

SLICE_BATCHES = 500

DAMAGE_FOUND = "damage-found"
"""An empty file beside the segments: a reader met damage below the recovery point, and the log was
not cut since."""


@dataclass(slots=True)
class Recovered:
    segments: list[Segment]
    """At least one, each continuing the one before; the last is the active one."""
    epochs: EpochCache
    epochs_behind: bool
    """The epoch file must be written before anything new counts."""
    damage: Damage | None
    parked: list[int]
    """Base offsets of segments behind the damage: removed when the log is cut."""


async def recover(
    directory: str,
    *,
    disk: Disk,
    files: OpenFiles,
    config: LogConfig,
    clean: bool,
    recovery_point: int,
    log_start_offset: int,
    now_ms: int,
    compacted: bool = False,
) -> Recovered:
    """Open the segments in `directory`; when there are none, an empty one is made.

    `compacted`: it was compacted once, whatever the topic's policy is now. Then a segment may end
    before the next one begins.
    """
    tidied = await LeftOvers(directory, disk=disk, files=files, config=config).tidy()
    return await _Recovery(
        directory,
        disk,
        files,
        config,
        clean,
        recovery_point,
        log_start_offset,
        now_ms,
        tidied,
        compacted or config.compact,
    ).run()


async def note_damage_found(disk: Disk, directory: str) -> None:
    """Have the next opening of the log test all of it. Raises OSError."""
    disk.open(f"{directory}/{DAMAGE_FOUND}", create=True).close()
    await disk.sync_dir(directory)


class _Recovery:
    def __init__(
        self,
        directory: str,
        disk: Disk,
        files: OpenFiles,
        config: LogConfig,
        clean: bool,
        recovery_point: int,
        log_start_offset: int,
        now_ms: int,
        tidied: bool,
        compacted: bool,
    ) -> None:
        self._directory = directory
        self._disk = disk
        self._files = files
        self._config = config
        self._thorough = disk.exists(f"{directory}/{DAMAGE_FOUND}")
        self._clean = clean and not self._thorough
        self._recovery_point = recovery_point
        self._log_start_offset = log_start_offset
        self._now_ms = now_ms
        self._directory_changed = tidied
        self._compacted = compacted
        self._segments: list[Segment] = []
        self._damage: Damage | None = None
        self._parked: list[int] = []
        self._epochs = EpochCache()
        self._epochs_known = False
        self._write_again_from: dict[str, int] = {}
        """Log path -> position from which its bytes are written again and synced."""
        self._rebuilt: list[Segment] = []
        """Sealed segments whose index files must be written."""

    async def run(self) -> Recovered:
        self._epochs_known = self._read_epochs()
        bases = base_offsets(self._disk, self._directory)
        for number, base_offset in enumerate(bases):
            sealed = number + 1 < len(bases)
            await self._open_segment(base_offset, bases[number + 1] if sealed else None)
            await asyncio.sleep(0)
            if self._damage is not None:
                self._parked = bases[number + 1 :]
                break
            if self._cut_before(bases[number + 1 :]):
                break
        if not self._segments:
            self._segments.append(self._new_segment(self._log_start_offset))
            self._cut_before([])
        self._reset_when_all_is_below_the_start()
        await self._finish_epochs()
        await self._sync()
        return Recovered(
            self._segments,
            self._epochs,
            self._epochs_behind(),
            self._damage,
            self._parked,
        )

    @property
    def _end_offset(self) -> int:
        return self._segments[-1].next_offset

    # Segments.

    async def _open_segment(self, base_offset: int, next_base: int | None) -> None:
        segment = Segment(self._directory, base_offset, self._files, self._config)
        segment.size = segment.file().size()
        # As in Kafka; what was written before is older, but by how much nothing tells.
        segment.created_at_ms = self._now_ms
        self._segments.append(segment)
        synced = next_base is not None and next_base <= self._recovery_point
        if (synced or self._clean) and not self._thorough and self._adopt(segment, next_base):
            segment.first_reads.foreign_size = segment.size
            if next_base is None:
                segment.thaw_indexes()
            return
        segment.clear_indexes()
        segment.transactions.known = False
        segment.transactions.has_file = self._disk.exists(segment.transactions.table.path)
        await self._walk_segment(segment, next_base)
        if next_base is not None:
            self._rebuilt.append(segment)

    def _adopt(self, segment: Segment, next_base: int | None) -> bool:
        """Take the segment with its index files, after a look at its last batches.

        False when something does not fit or lies beyond the recovery point: walk it all.
        """
        try:
            segment.open_indexes()
        except IndexDamaged as reason:
            logger.warning("index of %s is rebuilt: %s", segment.log_path, reason)
            return False
        scan = segment.scan(segment.offset_index.lookup_position(segment.size).position)
        end_offset: int | None = None
        for _, header, _ in scan:
            if end_offset is not None and self._out_of_place(
                segment, header, end_offset, next_base
            ):
                return False
            end_offset = header.next_offset
        if end_offset is None:
            end_offset = segment.base_offset
        if scan.fault is not None or end_offset > self._recovery_point:
            return False
        if next_base is not None:
            if end_offset != next_base and not self._may_end_early(end_offset, next_base):
                return False
            end_offset = next_base
        try:
            segment.rescan_tail(indexes_sealed=True)
        except BatchDamaged as damage:
            logger.warning("%s is walked from its start: %s", segment.log_path, damage)
            return False
        segment.next_offset = end_offset
        return True

    async def _walk_segment(self, segment: Segment, next_base: int | None) -> None:
        """Build the indexes from all headers, testing what lies beyond the recovery point."""
        size, segment.size = segment.size, 0
        segment.next_offset = segment.base_offset
        segment.max_timestamp = NO_TIMESTAMP
        verify_from = 0 if self._thorough else self._recovery_point
        sectors = Sectors(segment.file)
        scan = Scan(sectors, 0, size, verify_from=verify_from)
        fault: str | None = None
        slice_bytes = slice_batches = 0
        for position, header, data in scan:
            fault = self._out_of_place(segment, header, segment.next_offset, next_base)
            if fault is not None:
                break
            if header.last_offset >= self._recovery_point:
                self._write_again_from.setdefault(segment.log_path, position)
            if data is None:
                segment.first_reads.foreign_size = position + header.size
            else:
                slice_bytes += len(data)
            if header.last_offset >= self._recovery_point:
                # What was not synced, the file need not know yet.
                self._epochs.advance(header.partition_leader_epoch, header.base_offset)
            segment.note(header.last_offset, header.size, header.max_timestamp)
            slice_batches += 1
            if slice_bytes >= SLICE_BYTES or slice_batches >= SLICE_BATCHES:
                slice_bytes = slice_batches = 0
                await asyncio.sleep(0)
        fault = fault or scan.fault
        if fault is not None:
            if sectors.failure is not None and segment.next_offset >= self._recovery_point:
                # No torn write: what may have been acknowledged is there, and cannot be read.
                raise sectors.failure
            self._on_fault(segment, size, fault)

    def _out_of_place(
        self, segment: Segment, header: BatchHeader, expected: int, next_base: int | None
    ) -> str | None:
        base_offset = segment.base_offset
        found = header.base_offset
        # A gap upwards is what compaction leaves, here or on the leader that this was copied from,
        # also when the topic is not compacted any more. Bytes lost between two batches would not
        # leave the second one where the first ends.
        if found < expected:
            return f"offset {found} where {expected} must be"
        if expected < self._recovery_point <= found:
            # What was synced ended with a batch, so no gap reaches beyond it.
            return f"offset {found} where {expected} or more, below what was synced, must be"
        if header.last_offset - base_offset > MAX_RELATIVE_OFFSET:
            return f"offset {header.last_offset} is out of the reach of a segment at {base_offset}"
        if next_base is not None and header.next_offset > next_base:
            return f"offset {header.last_offset} reaches into the segment at {next_base}"
        return None

    def _may_end_early(self, end_offset: int, next_base: int) -> bool:
        """Compaction may have taken a segment's last batches: Kafka's does, ours leaves the header
        of the very last. It works on what is synced only, so beyond the recovery point a segment
        that ends before the next one begins was torn, in a compacted log, too."""
        return self._compacted and end_offset < next_base <= self._recovery_point

    def _on_fault(self, segment: Segment, size: int, fault: str) -> None:
        position, offset = segment.size, segment.next_offset
        if offset < self._recovery_point:
            self._damage = Damage(segment.log_path, position, offset, self._recovery_point, fault)
            logger.error("%s", self._damage)
            return
        logger.warning(
            "%s is cut from %d to %d bytes, log end offset %d: %s",
            segment.log_path,
            size,
            position,
            offset,
            fault,
        )
        segment.file().truncate(position)
        self._write_again_from.setdefault(segment.log_path, position)

    def _cut_before(self, later_bases: list[int]) -> bool:
        """Whether the log ends with the segment just opened, although files for more are there."""
        end_offset = self._end_offset
        if later_bases:
            next_base = later_bases[0]
            if next_base == end_offset or self._may_end_early(end_offset, next_base):
                return False
        if end_offset < self._recovery_point:
            segment = self._segments[-1]
            reason = f"the next segment begins at {later_bases[0]}" if later_bases else "end of log"
            self._damage = Damage(
                segment.log_path, segment.size, end_offset, self._recovery_point, reason
            )
            self._parked = later_bases
            logger.error("%s", self._damage)
            return True
        for base_offset in reversed(later_bases):
            logger.warning(
                "segment %d of %s is removed: the log ends at %d",
                base_offset,
                self._directory,
                end_offset,
            )
            Segment(self._directory, base_offset, self._files, self._config).remove(self._disk)
            self._write_again_from.setdefault(self._segments[-1].log_path, self._segments[-1].size)
        return True

    def _new_segment(self, base_offset: int) -> Segment:
        segment = Segment.create(
            self._directory, base_offset, self._files, self._config, self._now_ms
        )
        self._directory_changed = True  # It has a name, and no bytes yet.
        return segment

    def _reset_when_all_is_below_the_start(self) -> None:
        """Deleted up to beyond what survived: the log is empty at its start, as Kafka does."""
        if self._damage is not None or self._end_offset >= self._log_start_offset:
            return
        logger.warning(
            "%s ends at %d, below its start %d: it begins anew there",
            self._directory,
            self._end_offset,
            self._log_start_offset,
        )
        for segment in reversed(self._segments):
            segment.remove(self._disk)
        self._write_again_from.clear()
        self._segments = [self._new_segment(self._log_start_offset)]
        self._epochs.clear()

    # Epochs.

    def _read_epochs(self) -> bool:
        path = f"{self._directory}/{EPOCHS_FILE}"
        if not self._disk.exists(path):
            return False
        try:
            self._epochs = EpochCache.decode(read_file(self._disk, path))
        except CheckpointDamaged as reason:
            logger.warning("%s is rebuilt from the log: %s", path, reason)
            self._epochs = EpochCache()
            return False
        self._epochs.changes = 0
        return True

    def _epochs_behind(self) -> bool:
        """Whether the file must be written. Where there is nothing to say, it need not be there."""
        if self._epochs_known:
            return self._epochs.changes > 0
        return bool(self._epochs.entries) or self._disk.exists(f"{self._directory}/{EPOCHS_FILE}")

    async def _finish_epochs(self) -> None:
        """Make the cache say what the headers say; from all headers where the file does not reach
        back to the start (it was unusable, or a moved start did not survive and the file did)."""
        start_offset = max(self._log_start_offset, self._segments[0].base_offset)
        first = next(iter(self._epochs.entries), None)
        if self._end_offset > start_offset and (first is None or first.start_offset > start_offset):
            self._epochs_known = False
        if self._thorough or not self._epochs_known or not await self._file_agrees():
            await self._take_epochs_from_headers(start_offset)
        self._epochs.truncate_from_end(self._end_offset)
        self._epochs.truncate_from_start(start_offset)

    async def _file_agrees(self) -> bool:
        if await agrees(self._epochs, self._segments):
            return True
        logger.error(
            "%s/%s and the batches do not tell the same epochs: all headers are read",
            self._directory,
            EPOCHS_FILE,
        )
        return False

    async def _take_epochs_from_headers(self, start_offset: int) -> None:
        told = self._epochs if self._epochs_known else None
        lineage = HeaderLineage(told, self._recovery_point)
        numbers = {segment.base_offset: number for number, segment in enumerate(self._segments)}
        async for segment, batch in walk(self._segments, start_offset):
            lineage.take(numbers[segment.base_offset], batch)
        liar = lineage.liar()
        if liar is not None:
            await self._end_before(liar)
        self._epochs_known &= self._epochs.entries == lineage.epochs.entries
        self._epochs = lineage.epochs

    async def _end_before(self, liar: Liar) -> None:
        """As if the walk that opened the log had met it."""
        if not self._thorough:
            await note_damage_found(self._disk, self._directory)
        later = [segment.base_offset for segment in self._segments[liar.segment + 1 :]]
        del self._segments[liar.segment + 1 :]
        segment = self._segments[-1]
        size = segment.size
        segment.end_at(liar.position)
        self._on_fault(segment, size, liar.reason)
        if self._damage is not None:
            self._parked = [*later, *self._parked]
        else:
            self._cut_before(later)

    # Making it durable.

    async def _sync(self) -> None:
        if self._damage is not None:
            return
        if self._thorough:
            self._disk.remove(f"{self._directory}/{DAMAGE_FOUND}")
            self._directory_changed = True
        for segment in self._segments:
            position = self._write_again_from.get(segment.log_path)
            if position is not None:
                await self._write_again(segment, position)
                await self._files.sync(segment.log_path)
        for segment in self._rebuilt:
            if segment in self._segments[:-1]:
                segment.seal_indexes()
                for path in segment.written_indexes():
                    await self._files.sync(path)
                segment.freeze_indexes()
        for offset in snapshot_offsets(self._disk, self._directory):
            if offset > self._end_offset:
                self._disk.remove(snapshot_path(self._directory, offset))
        if not self._clean or self._directory_changed or self._write_again_from or self._rebuilt:
            await self._disk.sync_dir(self._directory)

    async def _write_again(self, segment: Segment, position: int) -> None:
        file = segment.file()
        while position < segment.size:
            data = file.read_at(position, min(SLICE_BYTES, segment.size - position))
            file.write_at(position, data)
            position += len(data)
            await asyncio.sleep(0)
            file = segment.file()
