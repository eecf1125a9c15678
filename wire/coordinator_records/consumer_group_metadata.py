"""Record type 3 of `__consumer_offsets`: ConsumerGroupMetadata."""

from __future__ import annotations

from ..schema import int32, int64, string
from ..versioned import CoordinatorKey, Versioned


class ConsumerGroupMetadataKey(CoordinatorKey, versions="0", record_type=3):
    """Key of the record for a consumer group (KIP-848) itself."""

    group_id: str = string()


class ConsumerGroupMetadataValue(Versioned, versions="0", flexible="0+"):
    """A consumer group (KIP-848) itself."""

    epoch: int = int32()
    metadata_hash: int = int64(tag=0, tagged="0+")
