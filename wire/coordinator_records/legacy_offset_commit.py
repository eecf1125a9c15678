"""Record type 0 of `__consumer_offsets`: LegacyOffsetCommit."""

from __future__ import annotations

from ..schema import int32, int64, string
from ..versioned import CoordinatorKey, Versioned


class LegacyOffsetCommitKey(CoordinatorKey, versions="0", record_type=0):
    """Key of the oldest stored offsets; read, never written."""

    group: str = string()
    topic: str = string()
    partition: int = int32()


class LegacyOffsetCommitValue(Versioned, versions="0"):
    """The oldest form of a stored offset; read, never written."""

    offset: int = int64()
    metadata: str = string()
    commit_timestamp: int = int64()
