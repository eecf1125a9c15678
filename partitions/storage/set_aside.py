"""Damaged batches leave a log that nobody else has, so that the rest of it lives on (RULES C1).

Where there are other replicas, a damaged log is cut and filled again. The only replica has nobody
to fill it: cutting would take what is whole behind the damage, and standing still would take all.
So its log, closed, is put in order on disk:

    <first>-<next>.damaged   the bytes that are no batch, and by their name the offsets that are
                             lost: synced first, so that no crash leaves a gap without its note
    <base>.log.cleaned       the whole batches, and for what is lost a spacer: a batch without
                             records, so that every offset keeps its place and the log its end
    ... .swap, <base>.log    it takes the segment's place as after compaction (`segment_swap`)

A crash in between leaves the damage to be found again, or the work done. Index files are made when
the log is opened next.
"""

from __future__ import annotations

import asyncio
import errno
import logging
from typing import NamedTuple

from ...seam import Buffer, Disk, read_file
from ...wire.records import NO_EPOCH, BatchHeader, assign_offsets
from .checkpoints import CheckpointDamaged
from .damaged_ranges import DamagedRange
from .epoch_cache import FILE_NAME as EPOCHS_FILE
from .epoch_cache import EpochCache
from .log_config import LogConfig
from .open_files import OpenFiles
from .recovery import DAMAGE_FOUND
from .salvage import Lost, Salvage, Whole, mended_epoch
from .sectors import Sectors
from .segment import CLEANED, LOG_SUFFIX, MAX_RELATIVE_OFFSET, Segment
from .segment_swap import SegmentSwap, base_offsets
from .spacer import spacer
from .values import Damage

logger = logging.getLogger(__name__)

SLICE_BYTES = 1 << 20
"""Tested and copied between two turns of the loop (RULES F1)."""

SLICE_BATCHES = 500

ROOM_LEFT_BYTES = 1 << 20
"""What the disk must have beside the copy, for the damaged bytes and the names."""


class SetAside(NamedTuple):
    lost: tuple[DamagedRange, ...]
    changed: bool
    """The log is another one now; also when a leader epoch was all that had to be put right."""


async def set_damage_aside(
    directory: str,
    damage: Damage,
    *,
    disk: Disk,
    files: OpenFiles,
    config: LogConfig,
    compacted: bool,
    now_ms: int,
) -> SetAside:
    """Of the log in `directory`, which is closed; `compacted`: once, whatever is now. Nothing is
    changed when no record is left to keep, or when the gap is too wide for one segment.

    Raises OSError (full disk) at any point; to be called again then, with the damage found anew.
    """
    base_offset = int(damage.path.rpartition("/")[2].removesuffix(LOG_SUFFIX))
    bases = base_offsets(disk, directory)
    later = [base for base in bases if base > base_offset]
    end_offset = later[0] if later else max(damage.recovery_point, damage.log_end_offset)
    if end_offset - base_offset > MAX_RELATIVE_OFFSET:
        return SetAside((), changed=False)
    old = Segment(directory, base_offset, files, config)
    old.size = old.file().size()
    if disk.free_bytes(directory) < old.size + ROOM_LEFT_BYTES:
        raise OSError(errno.ENOSPC, "no room to set damage aside", old.log_path)
    salvage = Salvage(
        Sectors(old.file),
        old.size,
        base_offset=base_offset,
        end_offset=end_offset,
        last=not later,
        gaps=compacted or config.compact,
    )
    made = _Copy(
        old,
        Segment.create(directory, base_offset, files, config, now_ms, state=CLEANED),
        told=_told_epochs(directory, disk),
        recovery_point=damage.recovery_point,
    )
    try:
        lost = await made.fill(salvage, files)
        changed = (bool(lost) or made.mended) and (made.holds_records or len(bases) > 1)
        if changed:
            await files.sync(made.segment.log_path)
            for found in lost:
                await files.sync(f"{directory}/{found.file_name}")
            await disk.sync_dir(directory)
    except BaseException:
        made.segment.remove(disk)
        raise
    if not changed:
        made.segment.remove(disk)
        for found in lost:
            files.forget(f"{directory}/{found.file_name}")
            disk.remove(f"{directory}/{found.file_name}")
        return SetAside((), changed=False)
    swap = SegmentSwap([old], made.segment, disk=disk, condemn=lambda segment: segment.remove(disk))
    await swap.decide()
    await swap.go_on()
    if disk.exists(f"{directory}/{DAMAGE_FOUND}"):
        disk.remove(f"{directory}/{DAMAGE_FOUND}")
        await disk.sync_dir(directory)
    return SetAside(tuple(lost), changed=True)


def _told_epochs(directory: str, disk: Disk) -> EpochCache | None:
    path = f"{directory}/{EPOCHS_FILE}"
    try:
        return EpochCache.decode(read_file(disk, path)) if disk.exists(path) else None
    except CheckpointDamaged:
        return None


class _Copy:
    """The segment that takes the damaged one's place."""

    def __init__(
        self, old: Segment, segment: Segment, *, told: EpochCache | None, recovery_point: int
    ) -> None:
        """`told`: the epoch checkpoint, which knows the epochs of all below `recovery_point`."""
        self._old = old
        self.segment = segment
        self.holds_records = False
        self.mended = False
        """A leader epoch was put right."""
        self._told = told
        self._recovery_point = recovery_point
        self._latest: Whole | None = None
        """Waits for the next batch that tells its epoch."""
        self._behind_latest: list[Buffer] = []
        """What tells none, between the two."""
        self._epoch = NO_EPOCH
        self._held: list[Buffer] = []
        self._held_bytes = 0

    async def fill(self, salvage: Salvage, files: OpenFiles) -> list[DamagedRange]:
        lost: list[DamagedRange] = []
        for piece in salvage.pieces():
            if isinstance(piece, Whole):
                self.holds_records = True
                epoch = piece.header.partition_leader_epoch
                if epoch == NO_EPOCH:
                    self._add_behind(piece.data)
                else:
                    self._add_latest(behind=epoch)
                    self._latest = piece
            elif isinstance(piece, Lost):
                found = DamagedRange(piece.first_offset, piece.next_offset)
                await self._keep_bytes(piece, found, files)
                lost.append(found)
                self._add_behind(spacer(*found, NO_EPOCH))
            else:
                await asyncio.sleep(0)
            if self._held_bytes >= SLICE_BYTES or len(self._held) >= SLICE_BATCHES:
                await self._write()
        self._add_latest(behind=NO_EPOCH)
        await self._write()
        return lost

    def _add_behind(self, data: Buffer) -> None:
        if self._latest is None:
            self._add(data)
        else:
            self._behind_latest.append(data)

    def _add_latest(self, *, behind: int) -> None:
        """`behind`: the epoch that is told next."""
        if self._latest is not None:
            self._add_in_its_epoch(*self._latest, behind)
            self._latest = None
        for data in self._behind_latest:
            self._add(data)
        self._behind_latest.clear()

    def _add_in_its_epoch(self, header: BatchHeader, data: Buffer, behind: int) -> None:
        epoch = header.partition_leader_epoch
        if header.next_offset <= self._recovery_point:
            epoch = mended_epoch(header, self._epoch, behind, self._told)
        if epoch != header.partition_leader_epoch:
            logger.warning(
                "%s: the leader epoch of the batch at %d is %d again, not %d",
                self._old.log_path,
                header.base_offset,
                epoch,
                header.partition_leader_epoch,
            )
            data = bytearray(data)
            assign_offsets(data, header, base_offset=header.base_offset, leader_epoch=epoch)
            self.mended = True
        self._epoch = max(self._epoch, epoch)
        self._add(data)

    def _add(self, data: Buffer) -> None:
        self._held.append(data)
        self._held_bytes += len(data)

    async def _keep_bytes(self, piece: Lost, found: DamagedRange, files: OpenFiles) -> None:
        path = f"{self.segment.directory}/{found.file_name}"
        files.create(path)
        source = Sectors(self._old.file)
        for position in range(piece.position, piece.end, SLICE_BYTES):
            length = min(SLICE_BYTES, piece.end - position)
            files.get(path).append([source.read_at(position, length)])
            await asyncio.sleep(0)

    async def _write(self) -> None:
        if self._held:
            self.segment.file().append(self._held)
        self._held, self._held_bytes = [], 0
        await asyncio.sleep(0)
