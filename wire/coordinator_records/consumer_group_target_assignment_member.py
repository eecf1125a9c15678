"""Record type 7 of `__consumer_offsets`: ConsumerGroupTargetAssignmentMember."""

from __future__ import annotations

from uuid import UUID

from ..schema import Struct, array, int32, string, uuid
from ..versioned import CoordinatorKey, Versioned


class ConsumerGroupTargetAssignmentMemberKey(CoordinatorKey, versions="0", record_type=7):
    """Key of the record for what a member of a consumer group (KIP-848) shall hold."""

    group_id: str = string()
    member_id: str = string()


class ConsumerGroupTargetAssignmentMemberValue(Versioned, versions="0", flexible="0+"):
    """What a member of a consumer group (KIP-848) shall hold."""

    class TopicPartition(Struct):
        topic_id: UUID = uuid()
        partitions: list[int] = array(int32)

    topic_partitions: list[TopicPartition] = array(TopicPartition)
