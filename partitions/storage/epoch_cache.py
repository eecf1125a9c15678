"""The lineage of leader epochs in one log: which epoch began at which offset.

Truncation goes by this lineage, never by high watermark (KIP-101, KIP-279). Pure: the file
`leader-epoch-checkpoint` is written by the group commit before the first batch of an epoch counts
as synced (RULES C6), and rebuilt from batch headers by recovery.

Example: entries (1, 0), (3, 20), (4, 50) in a log that ends at 70: epoch 1 wrote [0, 20), epoch 3
[20, 50), epoch 4 [50, 70). Epoch 2 wrote nothing here.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from operator import attrgetter

from ...seam import frozen
from .checkpoints import CheckpointDamaged, decode_lines, encode_lines

FILE_NAME = "leader-epoch-checkpoint"

UNDEFINED_EPOCH = -1
UNDEFINED_OFFSET = -1

_epoch = attrgetter("epoch")
_start_offset = attrgetter("start_offset")


@frozen
class EpochEntry:
    epoch: int
    start_offset: int


class EpochCache:
    """Entries with rising epochs and rising start offsets.

    `changes` counts every change, so that the owner knows whether its file is behind.
    """

    __slots__ = ("_entries", "changes")

    def __init__(self, entries: list[EpochEntry] | None = None) -> None:
        self._entries: list[EpochEntry] = []
        self.changes = 0
        for entry in entries or []:
            self.assign(entry.epoch, entry.start_offset)

    @property
    def entries(self) -> tuple[EpochEntry, ...]:
        return tuple(self._entries)

    @property
    def latest_epoch(self) -> int:
        """UNDEFINED_EPOCH while there is none."""
        return self._entries[-1].epoch if self._entries else UNDEFINED_EPOCH

    def assign(self, epoch: int, start_offset: int) -> bool:
        """Epoch `epoch` writes from `start_offset` on; False when that was known.

        Entries that contradict the new one are removed, as Kafka does: after an unclean leader
        election the new leader's lineage is the truth.
        """
        if epoch < 0 or start_offset < 0:
            raise ValueError(f"epoch {epoch} at offset {start_offset}")
        if self._entries:
            last = self._entries[-1]
            if last.epoch == epoch and last.start_offset <= start_offset:
                return False
        self._entries = [
            entry
            for entry in self._entries
            if entry.epoch < epoch and entry.start_offset < start_offset
        ]
        self._entries.append(EpochEntry(epoch, start_offset))
        self.changes += 1
        return True

    def advance(self, epoch: int, start_offset: int) -> None:
        """As `assign` for a newer epoch than all; nothing happens for others, which batches of a
        log repeat or, damaged, contradict."""
        if epoch > self.latest_epoch:
            self.assign(epoch, start_offset)

    def end_offset_for(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """The largest epoch <= `epoch` here and where it ends: OffsetForLeaderEpoch (KIP-279).

        (-1, -1) when nothing can be said: the epoch is undefined, the cache is empty, or the epoch
        is newer than all that this log has seen. An epoch older than all entries ends where the
        first entry starts, under its own number.
        """
        if epoch == UNDEFINED_EPOCH or not self._entries:
            return UNDEFINED_EPOCH, UNDEFINED_OFFSET
        if epoch == self._entries[-1].epoch:
            return epoch, log_end_offset
        if epoch > self._entries[-1].epoch:
            return UNDEFINED_EPOCH, UNDEFINED_OFFSET
        after = bisect_right(self._entries, epoch, key=_epoch)
        end_offset = self._entries[after].start_offset
        return (epoch if after == 0 else self._entries[after - 1].epoch), end_offset

    def epoch_for_offset(self, offset: int) -> int:
        """Epoch of the batch at `offset`; UNDEFINED_EPOCH below the first entry."""
        after = bisect_right(self._entries, offset, key=_start_offset)
        return self._entries[after - 1].epoch if after else UNDEFINED_EPOCH

    def truncate_from_end(self, end_offset: int) -> None:
        """The log now ends at `end_offset`: forget epochs that start there or above."""
        keep = bisect_left(self._entries, end_offset, key=_start_offset)
        if keep < len(self._entries):
            del self._entries[keep:]
            self.changes += 1

    def truncate_from_start(self, start_offset: int) -> None:
        """The log now starts at `start_offset`: the epoch that holds it starts there too."""
        after = bisect_right(self._entries, start_offset, key=_start_offset)
        if after == 0:
            return
        holder = self._entries[after - 1]
        if after == 1 and holder.start_offset == start_offset:
            return
        self._entries[:after] = [EpochEntry(holder.epoch, start_offset)]
        self.changes += 1

    def clear(self) -> None:
        if self._entries:
            self._entries.clear()
            self.changes += 1

    def encode(self) -> bytes:
        return encode_lines(f"{entry.epoch} {entry.start_offset}" for entry in self._entries)

    @classmethod
    def decode(cls, data: bytes) -> EpochCache:
        """Raises CheckpointDamaged, also for entries that do not rise."""
        entries: list[EpochEntry] = []
        for line in decode_lines(data):
            try:
                epoch, start_offset = line.split(" ")
                entry = EpochEntry(int(epoch), int(start_offset))
            except ValueError:
                raise CheckpointDamaged(f"malformed line {line!r}") from None
            if entry.epoch < 0 or entry.start_offset < 0:
                raise CheckpointDamaged(f"negative number in line {line!r}")
            if entries and not (
                entries[-1].epoch < entry.epoch and entries[-1].start_offset < entry.start_offset
            ):
                raise CheckpointDamaged(f"line {line!r} does not rise")
            entries.append(entry)
        return cls(entries)
