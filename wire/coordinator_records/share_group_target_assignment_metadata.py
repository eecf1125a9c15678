"""Record type 12 of `__consumer_offsets`: ShareGroupTargetAssignmentMetadata."""

from __future__ import annotations

from ..schema import int32, int64, string
from ..versioned import CoordinatorKey, Versioned


class ShareGroupTargetAssignmentMetadataKey(CoordinatorKey, versions="0", record_type=12):
    """Key of the record for the epoch of the target assignment of a share group."""

    group_id: str = string()


class ShareGroupTargetAssignmentMetadataValue(Versioned, versions="0", flexible="0+"):
    """The epoch of the target assignment of a share group."""

    assignment_epoch: int = int32()
    assignment_timestamp: int = int64(tag=0, tagged="0+", ignorable=True)
