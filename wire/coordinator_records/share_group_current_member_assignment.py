"""Record type 14 of `__consumer_offsets`: ShareGroupCurrentMemberAssignment."""

from __future__ import annotations

from uuid import UUID

from ..schema import Struct, array, int8, int32, string, uuid
from ..versioned import CoordinatorKey, Versioned


class ShareGroupCurrentMemberAssignmentKey(CoordinatorKey, versions="0", record_type=14):
    """Key of the record for what a member of a share group holds now."""

    group_id: str = string()
    member_id: str = string()


class _TopicPartitions(Struct):
    topic_id: UUID = uuid()
    partitions: list[int] = array(int32)


class ShareGroupCurrentMemberAssignmentValue(Versioned, versions="0", flexible="0+"):
    """What a member of a share group holds now."""

    TopicPartitions = _TopicPartitions

    member_epoch: int = int32()
    previous_member_epoch: int = int32()
    state: int = int8()
    assigned_partitions: list[_TopicPartitions] = array(_TopicPartitions)
