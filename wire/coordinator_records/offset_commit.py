"""Record type 1 of `__consumer_offsets`: OffsetCommit."""

from __future__ import annotations

from uuid import UUID

from ..schema import int32, int64, string, uuid
from ..versioned import CoordinatorKey, Versioned


class OffsetCommitKey(CoordinatorKey, versions="0", record_type=1):
    """Group, topic and partition of a stored offset.

    Types 0 and 1 have the same layout; only type 1 is written.
    """

    group: str = string()
    topic: str = string()
    partition: int = int32()


class OffsetCommitValue(Versioned, versions="0-4", flexible="4+"):
    """A stored offset.

    v1 alone has an expiry; v3 adds the leader epoch; v4 is flexible and may carry the topic id.
    """

    offset: int = int64()
    leader_epoch: int = int32(default=-1, versions="3+", ignorable=True)
    metadata: str = string()
    commit_timestamp: int = int64()
    expire_timestamp: int = int64(default=-1, versions="1", ignorable=True)
    topic_id: UUID = uuid(tag=0, tagged="4+", ignorable=True)
