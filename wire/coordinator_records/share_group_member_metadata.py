"""Record type 10 of `__consumer_offsets`: ShareGroupMemberMetadata."""

from __future__ import annotations

from ..schema import array, string
from ..versioned import CoordinatorKey, Versioned


class ShareGroupMemberMetadataKey(CoordinatorKey, versions="0", record_type=10):
    """Key of the record for a member of a share group."""

    group_id: str = string()
    member_id: str = string()


class ShareGroupMemberMetadataValue(Versioned, versions="0", flexible="0+"):
    """A member of a share group."""

    rack_id: str | None = string(nullable="0+")
    client_id: str = string()
    client_host: str = string()
    subscribed_topic_names: list[str] = array(string)
