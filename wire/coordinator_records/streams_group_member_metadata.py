"""Record type 19 of `__consumer_offsets`: StreamsGroupMemberMetadata."""

from __future__ import annotations

from ..schema import Struct, array, int32, nested, string, uint16
from ..versioned import CoordinatorKey, Versioned


class StreamsGroupMemberMetadataKey(CoordinatorKey, versions="0", record_type=19):
    """Key of the record for a member of a streams group."""

    group_id: str = string()
    member_id: str = string()


class _Endpoint(Struct):
    host: str = string()
    port: int = uint16()


class _KeyValue(Struct):
    key: str = string()
    value: str = string()


class StreamsGroupMemberMetadataValue(Versioned, versions="0", flexible="0+"):
    """A member of a streams group."""

    Endpoint = _Endpoint
    KeyValue = _KeyValue

    instance_id: str | None = string(nullable="0+")
    rack_id: str | None = string(nullable="0+")
    client_id: str = string()
    client_host: str = string()
    rebalance_timeout_ms: int = int32(default=-1)
    topology_epoch: int = int32()
    process_id: str = string()
    user_endpoint: _Endpoint | None = nested(_Endpoint, nullable="0+")
    client_tags: list[_KeyValue] = array(_KeyValue)
