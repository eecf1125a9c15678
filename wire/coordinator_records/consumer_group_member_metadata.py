"""Record type 5 of `__consumer_offsets`: ConsumerGroupMemberMetadata."""

from __future__ import annotations

from ..schema import Struct, array, binary, int32, nested, string
from ..versioned import CoordinatorKey, Versioned


class ConsumerGroupMemberMetadataKey(CoordinatorKey, versions="0", record_type=5):
    """Key of the record for a member of a consumer group (KIP-848)."""

    group_id: str = string()
    member_id: str = string()


class ConsumerGroupMemberMetadataValue(Versioned, versions="0", flexible="0+"):
    """A member of a consumer group (KIP-848)."""

    instance_id: str | None = string(nullable="0+")
    rack_id: str | None = string(nullable="0+")
    client_id: str = string()
    client_host: str = string()
    subscribed_topic_names: list[str] = array(string)
    subscribed_topic_regex: str | None = string(nullable="0+")
    rebalance_timeout_ms: int = int32(default=-1)
    server_assignor: str | None = string(nullable="0+")

    class ClassicMemberMetadata(Struct):
        session_timeout_ms: int = int32()

        class ClassicProtocol(Struct):
            name: str = string()
            metadata: bytes = binary()

        supported_protocols: list[ClassicProtocol] = array(ClassicProtocol)

    classic_member_metadata: ClassicMemberMetadata | None = nested(
        ClassicMemberMetadata, nullable="0+", tag=0, tagged="0+"
    )

    ClassicProtocol = ClassicMemberMetadata.ClassicProtocol
