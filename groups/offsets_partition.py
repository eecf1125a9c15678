"""What one partition of `__consumer_offsets` says: its groups and their commits."""

from __future__ import annotations

from dataclasses import dataclass, field

from .classic_group import ClassicGroup
from .consumer.group import ConsumerGroup
from .consumer.records import ConsumerRecord
from .consumer.replay import replay
from .log_records import (
    GroupRecord,
    Logged,
    OffsetRecord,
    Producer,
    TransactionEnd,
    members_of,
)
from .offsets import GroupOffsets
from .settings import GroupSettings
from .store import LostRecords


@dataclass(slots=True)
class OffsetsPartition:
    """State made of nothing but replayed records and the requests since."""

    partition: int
    leader_epoch: int
    settings: GroupSettings
    loaded: bool = False
    """False: answer COORDINATOR_LOAD_IN_PROGRESS, never "no offset"."""
    groups: dict[str, ClassicGroup] = field(default_factory=dict)
    consumer_groups: dict[str, ConsumerGroup] = field(default_factory=dict)
    """Of the new protocol; a group's name is in one of both at most."""
    offsets: dict[str, GroupOffsets] = field(default_factory=dict)
    open_transactions: dict[int, dict[str, None]] = field(default_factory=dict)
    """Producer id -> the groups for which it has offsets pending."""
    lost_records: int = 0
    """How many the log no longer has."""
    on_their_way: dict[str, int] = field(default_factory=dict)
    """Group -> how many of its records are being written; what they say is not yet seen here."""

    def replay(self, entry: Logged | TransactionEnd, now_ms: int) -> None:
        """Apply what was read from the log; `now_ms` is the loop's time, for fresh sessions."""
        if isinstance(entry, TransactionEnd):
            self.end_transaction(entry)
            return
        record = entry.record
        if isinstance(record, OffsetRecord):
            self.apply_offset(record, log_offset=entry.offset, producer=entry.producer)
        elif isinstance(record, ConsumerRecord):
            replay(self.consumer_groups, record, self.settings.consumer)
        else:
            self._replay_group(record, now_ms)

    def begin_anew(self) -> None:
        """Nothing was replayed yet."""
        self.groups.clear()
        self.consumer_groups.clear()
        self.offsets.clear()
        self.open_transactions.clear()
        self.lost_records = 0

    def on_lost(self, lost: LostRecords) -> None:
        """Between what was replayed and what follows, records are missing (decision 0022).

        Positions stay: the missing ones could only have replaced them by later ones. What an open
        transaction would commit is dropped, for it may have been aborted in there. Members may have
        come, gone or been given other partitions: of a classic group they are forgotten until a
        record behind this says who they are, which it does completely.
        """
        self.lost_records += lost.count
        for producer_id in list(self.open_transactions):
            self.end_transaction(TransactionEnd(Producer(producer_id, 0), commit=False))
        for group_id, group in self.groups.items():
            if group.members:
                self.groups[group_id] = group.without_members(lost.count)

    def on_replayed(self) -> None:
        """All that the log has was replayed. A consumer group is many records, of which some may be
        among the lost ones: its members join again."""
        if not self.lost_records:
            return
        for group_id, group in list(self.consumer_groups.items()):
            if group_id in self.groups:
                del self.consumer_groups[group_id]  # It changed its protocol, either way.
            else:
                self.consumer_groups[group_id] = group.without_members(self.lost_records)

    def apply_offset(
        self, record: OffsetRecord, *, log_offset: int, producer: Producer | None = None
    ) -> None:
        """What a replicated record says; of a transaction, once that is committed."""
        group_id, topic, partition = record.group_id, record.topic, record.partition
        offsets = self.offsets.setdefault(group_id, GroupOffsets())
        if record.committed is None:
            offsets.remove(topic, partition)
            self._forget_if_nothing(group_id)
        elif producer is None:
            offsets.set(topic, partition, record.committed, log_offset=log_offset)
        else:
            offsets.pend(producer.id, topic, partition, record.committed, log_offset=log_offset)
            self.open_transactions.setdefault(producer.id, {})[group_id] = None

    def end_transaction(self, end: TransactionEnd) -> None:
        """A marker without open transaction is a repeated one: nothing happens."""
        for group_id in self.open_transactions.pop(end.producer.id, {}):
            offsets = self.offsets.get(group_id)
            if offsets is not None:
                offsets.end_transaction(end.producer.id, commit=end.commit)
                self._forget_if_nothing(group_id)

    def _forget_if_nothing(self, group_id: str) -> None:
        offsets = self.offsets[group_id]
        if not len(offsets) and not offsets.has_pending:
            del self.offsets[group_id]

    def _replay_group(self, record: GroupRecord, now_ms: int) -> None:
        if record.value is None:
            self.groups.pop(record.group_id, None)
            return
        group = ClassicGroup(record.group_id, self.settings)
        group.restore(
            generation_id=record.value.generation,
            protocol_type=record.value.protocol_type,
            protocol=record.value.protocol,
            leader=record.value.leader,
            members=members_of(record.value),
            now_ms=now_ms,
            since_wall_ms=record.value.current_state_timestamp,
        )
        self.groups[record.group_id] = group

    def sent(self, group_id: str) -> None:
        self.on_their_way[group_id] = self.on_their_way.get(group_id, 0) + 1

    def settled(self, group_id: str) -> None:
        left = self.on_their_way[group_id] - 1
        if left:
            self.on_their_way[group_id] = left
        else:
            del self.on_their_way[group_id]

    def knows(self, group_id: str) -> bool:
        return any(group_id in of for of in (self.groups, self.consumer_groups, self.offsets))

    def names(self) -> dict[str, None]:
        """Of all groups, those with nothing but offsets too."""
        return dict.fromkeys([*self.groups, *self.consumer_groups, *self.offsets])

    def offsets_of(self, group_id: str) -> GroupOffsets:
        """The group's commits; an empty answer when there are none."""
        found = self.offsets.get(group_id)
        return GroupOffsets() if found is None else found
