"""Offsets that nobody needs expire (KIP-211); those that anybody may still need do not."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from logboat.groups.classic_group import ClassicGroup
from logboat.groups.consumer.seen_topics import SeenTopics
from logboat.groups.expiry import expired_records
from logboat.groups.log_records import (
    GroupRecord,
    LogRecord,
    OffsetRecord,
    batch_of,
    decode,
    encode,
    group_value,
)
from logboat.groups.member import Member
from logboat.groups.offsets import CommittedOffset
from logboat.groups.offsets_partition import OffsetsPartition
from logboat.groups.settings import GroupSettings
from logboat.metadata.image import ClusterImage
from logboat.wire.coordinator_records.consumer_protocol import ConsumerProtocolSubscription

RETENTION_MS = 1_000
LEFT_MS = 50_000
"""When the last member left."""


def committed(at_ms: int, expire_ms: int = -1) -> CommittedOffset:
    return CommittedOffset(7, -1, "", at_ms, expire_ms)


def offset(topic: str, at_ms: int, partition: int = 0) -> OffsetRecord:
    return OffsetRecord("g", topic, partition, committed(at_ms))


def group_record(
    *topics: str, protocol_type: str = "consumer", subscription: bytes | None = None
) -> GroupRecord:
    """The group's record: empty without topics, else one member that reads them."""
    group = ClassicGroup("g", GroupSettings())
    if subscription is None:
        subscription = ConsumerProtocolSubscription(topics=list(topics)).encode_versioned(3)
    member = Member("m", None, "c", "/h", 10_000, 10_000, (("range", subscription),))
    group.restore(
        generation_id=3,
        protocol_type=protocol_type,
        protocol="range" if topics else None,
        leader="m" if topics else None,
        members=[member] if topics else [],
        now_ms=0,
        since_wall_ms=LEFT_MS,
    )
    return GroupRecord("g", group_value(group, (), wall_ms=LEFT_MS))


def partition_with(*records: LogRecord) -> OffsetsPartition:
    state = OffsetsPartition(0, 0, GroupSettings(), loaded=True)
    for record in decode(batch_of([encode(record, 0) for record in records])):
        state.replay(record, 0)
    return state


def expired(state: OffsetsPartition, wall_ms: int) -> Sequence[LogRecord]:
    seen = SeenTopics(ClusterImage(0, "c", -1, -1, -1))
    return expired_records(state, "g", seen, wall_ms=wall_ms, retention_ms=RETENTION_MS)


def topics_of(records: Sequence[LogRecord]) -> list[str]:
    return [r.topic for r in records if isinstance(r, OffsetRecord)]


def test_a_group_that_lost_its_members_keeps_its_offsets_for_the_retention_from_then_on() -> None:
    state = partition_with(offset("a", at_ms=1), group_record())
    assert expired(state, LEFT_MS + RETENTION_MS - 1) == []
    gone = expired(state, LEFT_MS + RETENTION_MS)
    assert gone == [OffsetRecord("g", "a", 0, None), GroupRecord("g", None)]


def test_a_group_whose_last_offset_stays_stays_too() -> None:
    own = OffsetRecord("g", "b", 0, committed(1, expire_ms=LEFT_MS + 9_999))
    state = partition_with(offset("a", at_ms=1), own, group_record())
    assert expired(state, LEFT_MS + RETENTION_MS) == [OffsetRecord("g", "a", 0, None)]


def test_offsets_of_topics_that_members_read_never_expire() -> None:
    state = partition_with(offset("read", 1), offset("left", 1), group_record("read"))
    assert topics_of(expired(state, 10**12)) == ["left"]


@pytest.mark.parametrize("kind", ["unreadable", "another protocol"])
def test_nothing_expires_when_it_is_unknown_what_members_read(kind: str) -> None:
    if kind == "unreadable":
        group = group_record("a", subscription=b"\x00")
    else:
        group = group_record("a", protocol_type="connect")
    assert expired(partition_with(offset("a", 1), group), 10**12) == []


def test_offsets_of_a_group_without_members_ever_expire_by_their_commit() -> None:
    state = partition_with(offset("old", 1_000), offset("new", 5_000))
    assert topics_of(expired(state, 2_000)) == ["old"]
    assert topics_of(expired(state, 1_999)) == []


def test_an_expiry_that_came_with_the_commit_is_kept_through_the_log() -> None:
    state = partition_with(OffsetRecord("g", "a", 0, committed(1, expire_ms=9_000)))
    assert topics_of(expired(state, 8_999)) == []
    assert topics_of(expired(state, 9_000)) == ["a"]


def test_a_group_with_a_commit_on_its_way_is_passed_over() -> None:
    state = partition_with(offset("a", 1))
    state.sent("g")
    assert expired(state, 10**12) == []
    state.settled("g")
    assert topics_of(expired(state, 10**12)) == ["a"]
