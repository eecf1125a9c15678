"""Record type 6 of `__consumer_offsets`: ConsumerGroupTargetAssignmentMetadata."""

from __future__ import annotations

from ..schema import int32, int64, string
from ..versioned import CoordinatorKey, Versioned


class ConsumerGroupTargetAssignmentMetadataKey(CoordinatorKey, versions="0", record_type=6):
    """Key of the record for the epoch of the target assignment of a consumer group (KIP-848)."""

    group_id: str = string()


class ConsumerGroupTargetAssignmentMetadataValue(Versioned, versions="0", flexible="0+"):
    """The epoch of the target assignment of a consumer group (KIP-848)."""

    assignment_epoch: int = int32()
    assignment_timestamp: int = int64(tag=0, tagged="0+", ignorable=True)
