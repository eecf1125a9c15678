"""A consumer group as its records say, read in log order."""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence
from dataclasses import replace
from typing import Protocol
from uuid import UUID

from .group import ConsumerGroup
from .member import ClassicFace, ConsumerMember, MemberState
from .partition_sets import NOTHING, PartitionSet, partition_set
from .records import (
    ConsumerRecord,
    CurrentKey,
    CurrentValue,
    EpochKey,
    EpochValue,
    MemberKey,
    MemberValue,
    TargetEpochKey,
    TargetEpochValue,
    TargetKey,
    TargetValue,
)
from .settings import ConsumerGroupSettings

Groups = MutableMapping[str, ConsumerGroup]


def replay(groups: Groups, record: ConsumerRecord, settings: ConsumerGroupSettings) -> None:
    """Apply one record. Tombstones of what a compacted log no longer holds change nothing."""
    group_id = record.group_id
    if record.value is None:
        _bury(groups, record)
        return
    group = groups.get(group_id)
    if group is None:
        group = groups[group_id] = ConsumerGroup(group_id, settings)
    match record.key, record.value:
        case EpochKey(), EpochValue() as value:
            group.epoch, group.topics_hash = value.epoch, value.metadata_hash
        case TargetEpochKey(), TargetEpochValue() as value:
            group.assignment_epoch = value.assignment_epoch
        case MemberKey() as key, MemberValue() as value:
            known = group.members.get(key.member_id, ConsumerMember(key.member_id))
            group.restore_member(_described(known, value))
        case TargetKey() as key, TargetValue() as value:
            group.targets[key.member_id] = _read(value.topic_partitions)
        case CurrentKey() as key, CurrentValue() as value:
            known = group.members.get(key.member_id, ConsumerMember(key.member_id))
            group.restore_member(_placed(known, value))


def _bury(groups: Groups, record: ConsumerRecord) -> None:
    group = groups.get(record.group_id)
    if group is None:
        return
    match record.key:
        case EpochKey():
            del groups[record.group_id]
        case TargetEpochKey():
            group.assignment_epoch = 0
        case MemberKey() as key:
            group.forget_member(key.member_id)
        case TargetKey() as key:
            group.targets.pop(key.member_id, None)
        case CurrentKey() as key:
            known = group.members.get(key.member_id)
            if known is not None:
                group.restore_member(replace(known, assigned=NOTHING, revoking=NOTHING))


def _described(member: ConsumerMember, value: MemberValue) -> ConsumerMember:
    classic = None
    if value.classic_member_metadata is not None:
        stored = value.classic_member_metadata
        protocols = tuple((p.name, bytes(p.metadata)) for p in stored.supported_protocols)
        classic = ClassicFace(stored.session_timeout_ms, protocols)
    return replace(
        member,
        instance_id=value.instance_id,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        rebalance_timeout_ms=value.rebalance_timeout_ms,
        topics=tuple(value.subscribed_topic_names),
        regex=value.subscribed_topic_regex or "",
        assignor=value.server_assignor,
        classic=classic,
    )


def _placed(member: ConsumerMember, value: CurrentValue) -> ConsumerMember:
    return replace(
        member,
        epoch=value.member_epoch,
        previous_epoch=value.previous_member_epoch,
        state=MemberState(value.state),
        assigned=_read(value.assigned_partitions),
        revoking=_read(value.partitions_pending_revocation),
    )


class _Topic(Protocol):
    @property
    def topic_id(self) -> UUID: ...

    @property
    def partitions(self) -> list[int]: ...


def _read(topics: Sequence[_Topic]) -> PartitionSet:
    return partition_set(
        (topic.topic_id, number) for topic in topics for number in topic.partitions
    )
