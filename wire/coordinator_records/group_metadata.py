"""Record type 2 of `__consumer_offsets`: GroupMetadata."""

from __future__ import annotations

from ..schema import Struct, array, binary, int32, int64, string
from ..versioned import CoordinatorKey, Versioned


class GroupMetadataKey(CoordinatorKey, versions="0", record_type=2):
    """The id of a classic group."""

    group: str = string()


class _MemberMetadata(Struct):
    member_id: str = string()
    group_instance_id: str | None = string(
        default=None, versions="3+", nullable="3+", ignorable=True
    )
    client_id: str = string()
    client_host: str = string()
    rebalance_timeout: int = int32(default=-1, versions="1+", ignorable=True)
    session_timeout: int = int32()
    subscription: bytes = binary()
    assignment: bytes = binary()


class GroupMetadataValue(Versioned, versions="0-4", flexible="4+"):
    """A classic group: its generation, protocol, leader and members.

    v1 adds the rebalance timeout, v2 the state's timestamp, v3 static members, v4 is flexible.
    """

    MemberMetadata = _MemberMetadata

    protocol_type: str = string()
    generation: int = int32()
    protocol: str | None = string(nullable="0+")
    leader: str | None = string(nullable="0+")
    current_state_timestamp: int = int64(default=-1, versions="2+", ignorable=True)
    members: list[_MemberMetadata] = array(_MemberMetadata)
