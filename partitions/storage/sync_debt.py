"""What the device is still owed of a log, beside the bytes of its active segment."""

from __future__ import annotations

from ...seam import Disk
from .epoch_cache import EpochCache
from .open_files import OpenFiles
from .producer_states import ProducerSnapshot
from .segment_list import SegmentList
from .sync_round import SyncRound


class SyncDebt:
    """Made by rolls, cuts and deletions; paid by rounds of group commit, in which new debt may
    come up."""

    __slots__ = (
        "_directory",
        "_disk",
        "_epochs",
        "_epochs_written",
        "_files",
        "_names_changed",
        "_names_synced",
        "_segments",
        "_snapshots",
    )

    def __init__(
        self,
        directory: str,
        segments: SegmentList,
        epochs: EpochCache,
        *,
        disk: Disk,
        files: OpenFiles,
        epochs_behind: bool,
    ) -> None:
        """`epochs_behind`: those in memory are not those of the checkpoint file."""
        self._directory = directory
        self._segments = segments
        self._epochs = epochs
        self._disk = disk
        self._files = files
        self._epochs_written = -1 if epochs_behind else epochs.changes
        """`EpochCache.changes` as of the checkpoint file."""
        self._snapshots: list[tuple[int, ProducerSnapshot]] = []
        self._names_changed = 0
        self._names_synced = 0

    @property
    def is_due(self) -> bool:
        return bool(
            self._segments.unsynced
            or self._epochs.changes != self._epochs_written
            or self._names_changed != self._names_synced
        )

    def seal(self, end_offset: int, producers: ProducerSnapshot) -> None:
        """The active segment ends there, with these producers."""
        self._segments.unsynced.append(self._segments.active)
        self._snapshots.append((end_offset, producers))
        self.note_names()

    def note_names(self) -> None:
        """Of files in the log's directory: some came, some went."""
        self._names_changed += 1

    def cut_to(self, end_offset: int) -> None:
        """Nothing is owed of what the log has lost, but its names."""
        kept = self._segments.all[:-1]
        self._segments.unsynced = [each for each in self._segments.unsynced if each in kept]
        self._snapshots = [entry for entry in self._snapshots if entry[0] <= end_offset]
        self.note_names()

    def forget_snapshots(self) -> None:
        self._snapshots = []

    def round(self, *, written_offset: int, sync_active: bool) -> SyncRound:
        """All of it; with `sync_active` the active segment, too, up to what is written."""
        active = self._segments.active
        epochs_behind = self._epochs.changes != self._epochs_written
        return SyncRound(
            directory=self._directory,
            disk=self._disk,
            files=self._files,
            end_offset=written_offset if sync_active else active.base_offset,
            sealed=tuple(self._segments.unsynced),
            snapshots=tuple(self._snapshots),
            epochs=self._epochs.encode() if epochs_behind else None,
            epoch_changes=self._epochs.changes,
            directory_changes=self._names_changed,
            directory_changed=self._names_changed != self._names_synced,
            active=active if sync_active else None,
        )

    def pay(self, round_: SyncRound) -> None:
        """It has come to its end."""
        for segment in round_.sealed:
            segment.freeze_indexes()
        del self._segments.unsynced[: len(round_.sealed)]
        del self._snapshots[: len(round_.snapshots)]
        self._epochs_written = round_.epoch_changes
        self._names_synced = round_.directory_changes
