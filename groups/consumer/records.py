"""A consumer group's records in `__consumer_offsets`, in Kafka's formats."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ...seam import Buffer, frozen
from ...wire.coordinator_records.consumer_group_current_member_assignment import (
    ConsumerGroupCurrentMemberAssignmentKey as CurrentKey,
)
from ...wire.coordinator_records.consumer_group_current_member_assignment import (
    ConsumerGroupCurrentMemberAssignmentValue as CurrentValue,
)
from ...wire.coordinator_records.consumer_group_current_member_assignment import (
    HeldPartitions,
)
from ...wire.coordinator_records.consumer_group_member_metadata import (
    ConsumerGroupMemberMetadataKey as MemberKey,
)
from ...wire.coordinator_records.consumer_group_member_metadata import (
    ConsumerGroupMemberMetadataValue as MemberValue,
)
from ...wire.coordinator_records.consumer_group_metadata import (
    ConsumerGroupMetadataKey as EpochKey,
)
from ...wire.coordinator_records.consumer_group_metadata import (
    ConsumerGroupMetadataValue as EpochValue,
)
from ...wire.coordinator_records.consumer_group_target_assignment_member import (
    ConsumerGroupTargetAssignmentMemberKey as TargetKey,
)
from ...wire.coordinator_records.consumer_group_target_assignment_member import (
    ConsumerGroupTargetAssignmentMemberValue as TargetValue,
)
from ...wire.coordinator_records.consumer_group_target_assignment_metadata import (
    ConsumerGroupTargetAssignmentMetadataKey as TargetEpochKey,
)
from ...wire.coordinator_records.consumer_group_target_assignment_metadata import (
    ConsumerGroupTargetAssignmentMetadataValue as TargetEpochValue,
)
from ...wire.versioned import prefix
from .member import ConsumerMember
from .partition_sets import PartitionSet

__all__ = [
    "ConsumerRecord",
    "CurrentKey",
    "CurrentValue",
    "EpochKey",
    "EpochValue",
    "MemberKey",
    "MemberValue",
    "TargetEpochKey",
    "TargetEpochValue",
    "TargetKey",
    "TargetValue",
    "current_record",
    "decode",
    "encode",
    "epoch_record",
    "group_tombstones",
    "is_consumer_record",
    "member_record",
    "member_tombstones",
    "target_epoch_record",
    "target_record",
]

Key = EpochKey | MemberKey | TargetEpochKey | TargetKey | CurrentKey
Value = EpochValue | MemberValue | TargetEpochValue | TargetValue | CurrentValue


@frozen
class ConsumerRecord:
    """One fact about a consumer group; the key says which. A value of None is a tombstone."""

    key: Key
    value: Value | None

    @property
    def group_id(self) -> str:
        return self.key.group_id


def epoch_record(group_id: str, epoch: int, topics_hash: int) -> ConsumerRecord:
    return ConsumerRecord(
        EpochKey(group_id=group_id), EpochValue(epoch=epoch, metadata_hash=topics_hash)
    )


def member_record(group_id: str, member: ConsumerMember) -> ConsumerRecord:
    classic = None
    if member.classic is not None:
        classic = MemberValue.ClassicMemberMetadata(
            session_timeout_ms=member.classic.session_timeout_ms,
            supported_protocols=[
                MemberValue.ClassicProtocol(name=name, metadata=metadata)
                for name, metadata in member.classic.protocols
            ],
        )
    value = MemberValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=list(member.topics),
        subscribed_topic_regex=member.regex,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        server_assignor=member.assignor,
        classic_member_metadata=classic,
    )
    return ConsumerRecord(MemberKey(group_id=group_id, member_id=member.member_id), value)


def target_epoch_record(group_id: str, epoch: int, wall_ms: int) -> ConsumerRecord:
    value = TargetEpochValue(assignment_epoch=epoch, assignment_timestamp=wall_ms)
    return ConsumerRecord(TargetEpochKey(group_id=group_id), value)


def target_record(group_id: str, member_id: str, target: PartitionSet) -> ConsumerRecord:
    topics = [
        TargetValue.TopicPartition(topic_id=topic_id, partitions=list(partitions))
        for topic_id, partitions in target.items()
    ]
    return ConsumerRecord(
        TargetKey(group_id=group_id, member_id=member_id), TargetValue(topic_partitions=topics)
    )


def current_record(group_id: str, member: ConsumerMember) -> ConsumerRecord:
    value = CurrentValue(
        member_epoch=member.epoch,
        previous_member_epoch=member.previous_epoch,
        state=member.state.value,
        assigned_partitions=_written(member.assigned),
        partitions_pending_revocation=_written(member.revoking),
    )
    return ConsumerRecord(CurrentKey(group_id=group_id, member_id=member.member_id), value)


def member_tombstones(group_id: str, member_id: str) -> list[ConsumerRecord]:
    """In Kafka's order: what depends on the member goes before it."""
    return [
        ConsumerRecord(CurrentKey(group_id=group_id, member_id=member_id), None),
        ConsumerRecord(TargetKey(group_id=group_id, member_id=member_id), None),
        ConsumerRecord(MemberKey(group_id=group_id, member_id=member_id), None),
    ]


def group_tombstones(group_id: str) -> list[ConsumerRecord]:
    return [
        ConsumerRecord(TargetEpochKey(group_id=group_id), None),
        ConsumerRecord(EpochKey(group_id=group_id), None),
    ]


def _written(partitions: PartitionSet) -> list[HeldPartitions]:
    return [
        HeldPartitions(topic_id=topic_id, partitions=list(numbers))
        for topic_id, numbers in partitions.items()
    ]


_KINDS: Mapping[int, tuple[type[Key], type[Value]]] = MappingProxyType(
    {
        EpochKey.record_type: (EpochKey, EpochValue),
        MemberKey.record_type: (MemberKey, MemberValue),
        TargetEpochKey.record_type: (TargetEpochKey, TargetEpochValue),
        TargetKey.record_type: (TargetKey, TargetValue),
        CurrentKey.record_type: (CurrentKey, CurrentValue),
    }
)


def is_consumer_record(key: Buffer) -> bool:
    return prefix(key) in _KINDS


def decode(key: Buffer, value: Buffer | None) -> ConsumerRecord:
    """
    Raises:
        DecodeError: the log holds what no coordinator wrote.
    """
    key_kind, value_kind = _KINDS[prefix(key)]
    decoded = None if value is None else value_kind.decode_versioned(value)
    return ConsumerRecord(key_kind.decode_versioned(key), decoded)


def encode(record: ConsumerRecord) -> tuple[bytes, bytes | None]:
    value = None if record.value is None else record.value.encode_versioned(0)
    return record.key.encode_versioned(), value
