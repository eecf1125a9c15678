"""Record type 13 of `__consumer_offsets`: ShareGroupTargetAssignmentMember."""

from __future__ import annotations

from uuid import UUID

from ..schema import Struct, array, int32, string, uuid
from ..versioned import CoordinatorKey, Versioned


class ShareGroupTargetAssignmentMemberKey(CoordinatorKey, versions="0", record_type=13):
    """Key of the record for what a member of a share group shall hold."""

    group_id: str = string()
    member_id: str = string()


class ShareGroupTargetAssignmentMemberValue(Versioned, versions="0", flexible="0+"):
    """What a member of a share group shall hold."""

    class TopicPartition(Struct):
        topic_id: UUID = uuid()
        partitions: list[int] = array(int32)

    topic_partitions: list[TopicPartition] = array(TopicPartition)
