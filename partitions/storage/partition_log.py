"""One partition's log on disk. (Signatures first; the bodies follow.)"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from random import Random
from uuid import UUID

from ...seam import Buffer, Clock, Disk, OnFatal
from .epoch_cache import EpochCache
from .log_config import LogConfig
from .open_files import OpenFiles
from .producer_states import ProducerStates
from .values import Appended, Damage, FoundOffset, LogRead


class PartitionLog:
    topic: str
    partition: int
    topic_id: UUID
    directory: str
    config: LogConfig
    epochs: EpochCache
    producers: ProducerStates
    log_start_offset: int
    log_end_offset: int
    synced_offset: int
    """RULES C2. In page-cache mode: the end of what is written to the page cache, which follows
    `log_end_offset` within one turn of the loop."""
    recovery_point: int
    """All below is on the device, in both modes."""
    damage: Damage | None
    """Set by `open`; cleared by `truncate_to` and `truncate_fully`."""
    on_synced: Callable[[int], None] | None
    """Called on the loop with the new `synced_offset` whenever it has moved."""
    on_rolled_back: Callable[[int], None] | None
    """Called with the new log end when appended batches could not be written (full disk) and were
    taken back: whoever waits for an offset at or above it is told KAFKA_STORAGE_ERROR and must not
    be acknowledged by a later batch at the same offset. Nobody has read what is taken back."""

    @classmethod
    async def open(
        cls,
        directory: str,
        *,
        topic: str,
        partition: int,
        topic_id: UUID,
        config: LogConfig,
        disk: Disk,
        clock: Clock,
        on_fatal: OnFatal,
        clean: bool = False,
        recovery_point: int = 0,
        log_start_offset: int = 0,
        files: OpenFiles | None = None,
        rng: Random | None = None,
        lower_recovery_point: Callable[[int], Awaitable[None]] | None = None,
    ) -> PartitionLog:
        raise NotImplementedError

    def update_config(self, config: LogConfig) -> None:
        raise NotImplementedError

    def append_as_leader(
        self, records: Buffer, *, leader_epoch: int, now_ms: int, from_client: bool = True
    ) -> Appended:
        raise NotImplementedError

    def append_as_follower(self, records: Buffer) -> Appended | None:
        raise NotImplementedError

    async def wait_synced(self, offset: int) -> None:
        """Return when `synced_offset >= offset`."""
        raise NotImplementedError

    def read(self, offset: int, *, max_bytes: int, upper_bound: int, at_least_one: bool) -> LogRead:
        raise NotImplementedError

    async def truncate_to(self, offset: int) -> None:
        raise NotImplementedError

    async def truncate_fully(self, start_offset: int) -> None:
        raise NotImplementedError

    def offset_for_timestamp(
        self, timestamp_ms: int, *, upper_bound: int | None = None
    ) -> FoundOffset | None:
        raise NotImplementedError

    def offset_of_max_timestamp(self, *, upper_bound: int | None = None) -> FoundOffset | None:
        raise NotImplementedError

    async def advance_log_start(self, offset: int) -> None:
        raise NotImplementedError

    def last_stable_offset(self, high_watermark: int) -> int:
        raise NotImplementedError

    async def close(self) -> None:
        raise NotImplementedError

    async def delete(self) -> None:
        raise NotImplementedError
