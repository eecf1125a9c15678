"""Record type 20 of `__consumer_offsets`: StreamsGroupTargetAssignmentMetadata."""

from __future__ import annotations

from ..schema import int32, int64, string
from ..versioned import CoordinatorKey, Versioned


class StreamsGroupTargetAssignmentMetadataKey(CoordinatorKey, versions="0", record_type=20):
    """Key of the record for the epoch of the target assignment of a streams group."""

    group_id: str = string()


class StreamsGroupTargetAssignmentMetadataValue(Versioned, versions="0", flexible="0+"):
    """The epoch of the target assignment of a streams group."""

    assignment_epoch: int = int32()
    assignment_timestamp: int = int64(tag=0, tagged="0+", ignorable=True)
