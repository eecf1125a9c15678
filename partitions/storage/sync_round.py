"""What one round of group commit puts on the device, in an order that a crash may cut anywhere."""

from __future__ import annotations

from ...seam import Disk, frozen, offload, write_file_atomically
from .epoch_cache import FILE_NAME as EPOCHS_FILE
from .open_files import OpenFiles
from .producer_recovery import snapshot_path
from .producer_states import ProducerSnapshot
from .segment import Segment


@frozen
class SyncRound:
    """Everything below `end_offset` was written before this round began (RULES C2, C5)."""

    directory: str
    disk: Disk
    files: OpenFiles
    end_offset: int
    sealed: tuple[Segment, ...]
    """Rolled since the last round: their logs, indexes."""
    snapshots: tuple[tuple[int, ProducerSnapshot], ...]
    """Producer snapshots taken at those rolls."""
    epochs: bytes | None
    """The epoch checkpoint, when it is behind (RULES C6)."""
    epoch_changes: int
    directory_changes: int
    directory_changed: bool
    active: Segment | None
    """Synced last; None in page-cache mode, where only sealed segments are."""

    async def sync(self) -> None:
        for segment in self.sealed:
            segment.seal_indexes()
            for path in (segment.log_path, *segment.written_indexes()):
                await self.files.sync(path)
        for offset, snapshot in self.snapshots:
            path = snapshot_path(self.directory, offset)
            data = await _encoded(snapshot)
            self.files.create(path).append([data])
            await self.files.sync(path)
            self.files.forget(path)
        if self.epochs is not None:
            await write_file_atomically(self.disk, f"{self.directory}/{EPOCHS_FILE}", self.epochs)
        elif self.directory_changed:
            await self.disk.sync_dir(self.directory)
        if self.active is not None:
            await self.files.sync(self.active.log_path)


INLINE_ENTRIES = 1000
"""Takes about a millisecond (RULES F1)."""


async def _encoded(snapshot: ProducerSnapshot) -> bytes:
    if len(snapshot.entries) <= INLINE_ENTRIES:
        return snapshot.encode()
    return await offload(snapshot.encode)
