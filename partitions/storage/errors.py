"""How storage says no. `Fatal` (failed sync, broken invariant) is not here: it ends the process."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...wire import ErrorCode
    from .damaged_ranges import DamagedRange


class RecordsRejected(Exception):
    """A produced batch breaks a rule; nothing was appended and nothing changed.

    `error` is the code Kafka answers for it, `message` a sentence for the producer, and
    `record_errors` says which records of the batch are to blame, by number, and why (KIP-467).
    """

    def __init__(
        self, error: ErrorCode, message: str, record_errors: tuple[tuple[int, str], ...] = ()
    ) -> None:
        super().__init__(f"{error.name}: {message}")
        self.error = error
        self.message = message
        self.record_errors = record_errors


class StorageFailed(Exception):
    """The disk refused (full, no descriptors, damaged log); answered as KAFKA_STORAGE_ERROR.

    Raised by `append_*`: nothing was appended. Raised by `wait_synced`: the batch was taken back
    (`PartitionLog.on_rolled_back`) and will never be in the log.
    """


class RecordsDamaged(StorageFailed):
    """The offsets that were asked for were damaged, and no other replica has them; everything else
    in the log is there. Told to a consumer as CORRUPT_MESSAGE."""

    def __init__(self, found: DamagedRange) -> None:
        super().__init__(
            f"offsets {found.first_offset} to {found.next_offset - 1} are damaged "
            f"(set aside in {found.file_name})"
        )
        self.first_offset = found.first_offset
        self.next_offset = found.next_offset


class CorruptBatch(Exception):
    """Bytes fetched from the leader are no valid batch; nothing of this call was appended."""


class BatchDamaged(Exception):
    """Bytes at `position` of the segment at `base_offset` are not the batch that was once there.

    Stays inside storage: the log makes a `Damage` of it and answers StorageFailed.
    """

    def __init__(self, *, base_offset: int, position: int, reason: str) -> None:
        super().__init__(f"segment {base_offset}, byte {position}: {reason}")
        self.base_offset = base_offset
        self.position = position
        self.reason = reason


class OffsetGap(Exception):
    """A fetched batch does not continue the log at `expected`; nothing of the call was appended."""

    def __init__(self, *, expected: int, found: int) -> None:
        super().__init__(f"fetched batch starts at {found}, log ends at {expected}")
        self.expected = expected
        self.found = found


class OffsetOutOfRange(Exception):
    """The asked offset lies outside [log_start_offset, log_end_offset]."""

    def __init__(self, *, offset: int, log_start_offset: int, log_end_offset: int) -> None:
        super().__init__(f"offset {offset} outside [{log_start_offset}, {log_end_offset}]")
        self.offset = offset
        self.log_start_offset = log_start_offset
        self.log_end_offset = log_end_offset


class DirectoryRefused(Exception):
    """The data directory is not this node's, or cannot be used; one sentence, nothing changed."""
