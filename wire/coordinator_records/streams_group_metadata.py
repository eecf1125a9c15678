"""Record type 17 of `__consumer_offsets`: StreamsGroupMetadata."""

from __future__ import annotations

from ..schema import Struct, array, int32, int64, string
from ..versioned import CoordinatorKey, Versioned


class StreamsGroupMetadataKey(CoordinatorKey, versions="0", record_type=17):
    """Key of the record for a streams group itself."""

    group_id: str = string()


class _LastAssignmentConfig(Struct):
    key: str = string()
    value: str = string()


class StreamsGroupMetadataValue(Versioned, versions="0", flexible="0+"):
    """A streams group itself."""

    LastAssignmentConfig = _LastAssignmentConfig

    epoch: int = int32()
    metadata_hash: int = int64()
    validated_topology_epoch: int = int32(default=-1, tag=0, tagged="0+")
    last_assignment_configs: list[_LastAssignmentConfig] | None = array(
        _LastAssignmentConfig, default=None, nullable="0+", tag=1, tagged="0+"
    )
    stored_description_topology_epoch: int = int32(default=-1, tag=2, tagged="0+")
    failed_description_topology_epoch: int = int32(default=-1, tag=3, tagged="0+")
