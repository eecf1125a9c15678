"""One partition's log on disk, in Kafka's own files, and the data directory that holds the logs.

Promises: what counts as synced survives loss of power (RULES C); a batch has one offset for ever;
a log that was cut, torn or half-made opens again with every synced batch. Leaves to others: who
leads, what is committed, who waits (`partitions`).
"""

from .batch_contents import LeaderBatch
from .epoch_cache import EpochCache, EpochEntry
from .errors import (
    CorruptBatch,
    DirectoryRefused,
    OffsetGap,
    OffsetOutOfRange,
    RecordsDamaged,
    RecordsRejected,
    StorageFailed,
)
from .log_config import CompressionType, LogConfig
from .log_directory import LogDirectory
from .open_files import MOST_OPEN_FILES, connections_within, open_files_within
from .partition_log import PartitionLog
from .producer_states import ProducerStates
from .stored_logs import StoredLog
from .values import Appended, Damage, FoundOffset, LogRead
from .verification import NOT_ASKED, VerificationGuard

__all__ = [
    "MOST_OPEN_FILES",
    "NOT_ASKED",
    "Appended",
    "CompressionType",
    "CorruptBatch",
    "Damage",
    "DirectoryRefused",
    "EpochCache",
    "EpochEntry",
    "FoundOffset",
    "LeaderBatch",
    "LogConfig",
    "LogDirectory",
    "LogRead",
    "OffsetGap",
    "OffsetOutOfRange",
    "PartitionLog",
    "ProducerStates",
    "RecordsDamaged",
    "RecordsRejected",
    "StorageFailed",
    "StoredLog",
    "VerificationGuard",
    "connections_within",
    "open_files_within",
]
