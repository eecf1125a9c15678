"""Record type 11 of `__consumer_offsets`: ShareGroupMetadata."""

from __future__ import annotations

from ..schema import int32, int64, string
from ..versioned import CoordinatorKey, Versioned


class ShareGroupMetadataKey(CoordinatorKey, versions="0", record_type=11):
    """Key of the record for a share group itself."""

    group_id: str = string()


class ShareGroupMetadataValue(Versioned, versions="0", flexible="0+"):
    """A share group itself."""

    epoch: int = int32()
    metadata_hash: int = int64()
