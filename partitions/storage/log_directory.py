"""A node's data directory. (Signatures first; the bodies follow.)"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from uuid import UUID

from ...seam import Clock, Disk, OnFatal
from .log_config import LogConfig
from .partition_log import PartitionLog


@dataclass(frozen=True, slots=True)
class StoredLog:
    """A partition folder found in the data directory."""

    topic: str
    partition: int
    topic_id: UUID
    directory: str


class LogDirectory:
    path: str
    cluster_id: str
    node_id: int
    directory_id: UUID
    clean: bool
    """The last stop was orderly (RULES C7)."""
    previous_broker_epoch: int
    """Broker epoch in the clean-shutdown marker; -1 unknown or unclean (KIP-966)."""
    high_watermarks: dict[tuple[str, int], int]
    """As read at start (replication-offset-checkpoint)."""

    @classmethod
    async def open(
        cls,
        path: str,
        *,
        cluster_id: str,
        node_id: int,
        disk: Disk,
        clock: Clock,
        rng: Random,
        on_fatal: OnFatal,
    ) -> LogDirectory:
        """Lock, format when empty (B3), else check that it is ours. Raises DirectoryRefused."""
        raise NotImplementedError

    def stored_logs(self) -> list[StoredLog]:
        """Partition folders, sorted by topic and partition."""
        raise NotImplementedError

    def logs(self) -> Mapping[tuple[str, int], PartitionLog]:
        """The logs opened or created and not deleted."""
        raise NotImplementedError

    async def open_log(self, stored: StoredLog, config: LogConfig) -> PartitionLog:
        """Recover and open a log found by `stored_logs`."""
        raise NotImplementedError

    async def create_log(
        self, topic: str, partition: int, topic_id: UUID, config: LogConfig
    ) -> PartitionLog:
        """Make the folder durably and open its empty log; an existing one of this id is opened."""
        raise NotImplementedError

    async def delete_log(self, topic: str, partition: int) -> None:
        """Close, rename to `<name>.<uid>-delete`, sync, remove."""
        raise NotImplementedError

    async def set_stray(self, stored: StoredLog) -> None:
        """A folder no longer assigned to this node is renamed to `<name>.<uid>-stray` and kept."""
        raise NotImplementedError

    async def checkpoint(self, high_watermarks: Mapping[tuple[str, int], int]) -> None:
        """Write recovery points, log start offsets and the given high watermarks."""
        raise NotImplementedError

    async def write_clean_marker(self, broker_epoch: int) -> None:
        """After `close_logs`; refused (logged) when a stored log was never opened (RULES C7)."""
        raise NotImplementedError

    async def close_logs(self) -> None:
        """Flush, sync and close every log, then write the checkpoints."""
        raise NotImplementedError

    async def close(self) -> None:
        """`close_logs` unless done, then release the lock."""
        raise NotImplementedError
