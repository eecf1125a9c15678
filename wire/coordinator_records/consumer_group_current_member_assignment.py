"""Record type 8 of `__consumer_offsets`: ConsumerGroupCurrentMemberAssignment."""

from __future__ import annotations

from uuid import UUID

from ..schema import Struct, array, int8, int32, string, uuid
from ..versioned import CoordinatorKey, Versioned


class ConsumerGroupCurrentMemberAssignmentKey(CoordinatorKey, versions="0", record_type=8):
    """Key of the record for what a member of a consumer group (KIP-848) holds now."""

    group_id: str = string()
    member_id: str = string()


class HeldPartitions(Struct):
    topic_id: UUID = uuid()
    partitions: list[int] = array(int32)
    assignment_epochs: list[int] | None = array(
        int32, default=None, nullable="0+", tag=0, tagged="0+"
    )


class ConsumerGroupCurrentMemberAssignmentValue(Versioned, versions="0", flexible="0+"):
    """What a member of a consumer group (KIP-848) holds now."""

    TopicPartitions = HeldPartitions

    member_epoch: int = int32()
    previous_member_epoch: int = int32()
    state: int = int8()
    assigned_partitions: list[HeldPartitions] = array(HeldPartitions)
    partitions_pending_revocation: list[HeldPartitions] = array(HeldPartitions)
