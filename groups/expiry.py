"""Which offsets nobody needs any more (KIP-211): those of groups and topics nobody reads."""

from __future__ import annotations

from .classic_group import ClassicGroup
from .consumer.group import ConsumerGroup
from .consumer.seen_topics import SeenTopics
from .log_records import GroupRecord, LogRecord, OffsetRecord
from .offsets import CommittedOffset
from .offsets_partition import OffsetsPartition
from .states import GroupState
from .subscriptions import subscribed_topics


def expired_records(
    state: OffsetsPartition,
    group_id: str,
    seen: SeenTopics,
    *,
    wall_ms: int,
    retention_ms: int,
) -> list[LogRecord]:
    """Tombstones for what has expired; with the group's own when nothing of it is left.

    A group with records on their way is passed over: a commit among them may be newer than what
    is seen here, and its tombstone would come behind it in the log.
    """
    if group_id in state.on_their_way:
        return []
    group = state.groups.get(group_id)
    consumer_group = state.consumer_groups.get(group_id)
    offsets = state.offsets_of(group_id)
    reads = _read_topics(group) if consumer_group is None else read_by(consumer_group, seen)
    records: list[LogRecord] = []
    for topic, partitions in offsets.by_topic().items():
        if reads is None or topic in reads:
            continue
        for partition in partitions:
            committed = offsets.get(topic, partition)
            assert committed is not None
            # Where a transaction is open it may be about to commit (P35).
            pending = offsets.is_pending(topic, partition)
            if not pending and wall_ms >= _expires_ms(group, committed, retention_ms):
                records.append(OffsetRecord(group_id, topic, partition, None))
    nothing_left = len(records) == len(offsets) and not offsets.has_pending
    if group is not None and group.state is GroupState.EMPTY and nothing_left:
        records.append(GroupRecord(group_id, None))
    if consumer_group is not None and not consumer_group.members and nothing_left:
        records += consumer_group.all_tombstones()
    return records


def read_by(group: ConsumerGroup, seen: SeenTopics) -> frozenset[str]:
    return frozenset(name for wanted in group.subscriptions for name in seen.names_of(wanted))


def _read_topics(group: ClassicGroup | None) -> frozenset[str] | None:
    """Topics whose offsets stay however old they are; None: all of them."""
    if group is None or group.state is GroupState.EMPTY:
        return frozenset()
    # In the middle of a rebalance nobody knows what the next generation will read.
    return subscribed_topics(group) if group.state is GroupState.STABLE else None


def _expires_ms(group: ClassicGroup | None, committed: CommittedOffset, retention_ms: int) -> int:
    """Counted from when the last member left; for offsets without members, from their commit."""
    if committed.expire_timestamp_ms >= 0:
        return committed.expire_timestamp_ms
    since_ms = committed.commit_timestamp_ms
    if (
        group is not None
        and group.state is GroupState.EMPTY
        and group.protocol_type is not None
        and group.since_wall_ms is not None
    ):
        since_ms = group.since_wall_ms
    return since_ms + retention_ms
