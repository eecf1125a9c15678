"""Records of `__consumer_offsets` in Kafka's formats: commits, and what groups are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ..seam import Buffer, frozen
from ..wire import DecodeError
from ..wire.coordinator_records.group_metadata import GroupMetadataKey, GroupMetadataValue
from ..wire.coordinator_records.offset_commit import OffsetCommitKey, OffsetCommitValue
from ..wire.records import (
    Batch,
    ControlType,
    Record,
    batches,
    control_type,
    decode_records,
    encode_batch,
)
from ..wire.versioned import prefix
from .classic_group import ClassicGroup
from .consumer import records as consumer_records
from .consumer.records import ConsumerRecord
from .member import Member
from .offsets import CommittedOffset

OFFSET_KEY_TYPES = (0, 1)
GROUP_KEY_TYPE = 2

EXPIRING_OFFSET_VALUE_VERSION = 1
"""The only version with a place for an expiry of the commit's own; it has none for an epoch."""

OFFSET_VALUE_VERSION = 3
GROUP_VALUE_VERSION = 3
"""The newest versions that are not flexible: every Kafka since 2.3 reads them."""


@frozen
class OffsetRecord:
    group_id: str
    topic: str
    partition: int
    committed: CommittedOffset | None
    """None: a tombstone."""


@frozen
class GroupRecord:
    group_id: str
    value: GroupMetadataValue | None
    """None: a tombstone."""


LogRecord = OffsetRecord | GroupRecord | ConsumerRecord


@frozen
class Producer:
    """Whose transaction commits offsets."""

    id: int
    epoch: int


@frozen
class Logged:
    """A record where it stands."""

    record: LogRecord
    offset: int
    producer: Producer | None = None
    """Set within a transaction: what it says holds when the transaction is committed."""


@frozen
class TransactionEnd:
    """A marker: the producer's transaction is over in this partition."""

    producer: Producer
    commit: bool


def batch_of(records: Sequence[Record], producer: Producer | None = None) -> Buffer:
    """One record batch; base offset and leader epoch are set by the log."""
    if producer is None:
        return encode_batch(records)
    return encode_batch(
        records, producer_id=producer.id, producer_epoch=producer.epoch, transactional=True
    )


def decode(buffer: Buffer) -> Iterator[Logged | TransactionEnd]:
    """The records of whole batches; other record types (newer protocols) are passed over.

    Raises:
        DecodeError: the log holds what no coordinator wrote.
    """
    for batch in batches(buffer):
        header = batch.header
        producer = None
        if header.is_transactional:
            producer = Producer(header.producer_id, header.producer_epoch)
        if header.is_control:
            if producer is not None:
                yield from _ends(batch, producer)
            continue
        for record in decode_records(batch.view):
            decoded = _from_record(record)
            if decoded is not None:
                yield Logged(decoded, record.offset, producer)


def _ends(batch: Batch, producer: Producer) -> Iterator[TransactionEnd]:
    for record in decode_records(batch.view):
        kind = control_type(record)
        if kind in (ControlType.COMMIT, ControlType.ABORT):
            yield TransactionEnd(producer, kind is ControlType.COMMIT)


def encode(record: LogRecord, timestamp_ms: int) -> Record:
    key: bytes
    value: bytes | None = None
    if isinstance(record, OffsetRecord):
        key = OffsetCommitKey(
            group=record.group_id, topic=record.topic, partition=record.partition
        ).encode_versioned()
        committed = record.committed
        if committed is not None:
            value = _offset_value(committed)
    elif isinstance(record, ConsumerRecord):
        key, value = consumer_records.encode(record)
    else:
        key = GroupMetadataKey(group=record.group_id).encode_versioned()
        if record.value is not None:
            value = record.value.encode_versioned(GROUP_VALUE_VERSION)
    return Record(key=key, value=value, timestamp=timestamp_ms)


def _offset_value(committed: CommittedOffset) -> bytes:
    expires = committed.expire_timestamp_ms >= 0
    value = OffsetCommitValue(
        offset=committed.offset,
        leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
        commit_timestamp=committed.commit_timestamp_ms,
        expire_timestamp=committed.expire_timestamp_ms,
    )
    version = EXPIRING_OFFSET_VALUE_VERSION if expires else OFFSET_VALUE_VERSION
    return value.encode_versioned(version)


def _from_record(record: Record) -> LogRecord | None:
    if record.key is None:
        raise DecodeError("an offsets record without a key")
    key_type = prefix(record.key)
    if key_type in OFFSET_KEY_TYPES:
        return _offset_record(record.key, record.value)
    if key_type == GROUP_KEY_TYPE:
        group = GroupMetadataKey.decode_versioned(record.key).group
        value = None if record.value is None else GroupMetadataValue.decode_versioned(record.value)
        return GroupRecord(group, value)
    if consumer_records.is_consumer_record(record.key):
        return consumer_records.decode(record.key, record.value)
    return None


def _offset_record(key: Buffer, value: Buffer | None) -> OffsetRecord:
    decoded, _ = OffsetCommitKey.decode_from(key, 2, 0)
    committed = None
    if value is not None:
        stored = OffsetCommitValue.decode_versioned(value)
        committed = CommittedOffset(
            stored.offset,
            stored.leader_epoch,
            stored.metadata,
            stored.commit_timestamp,
            stored.expire_timestamp,
        )
    return OffsetRecord(decoded.group, decoded.topic, decoded.partition, committed)


def group_value(
    group: ClassicGroup, assignments: Iterable[tuple[str, bytes]], *, wall_ms: int
) -> GroupMetadataValue:
    """The group as its next record says, with the assignments that this record puts in force."""
    given = dict(assignments)
    protocol = group.protocol or ""
    return GroupMetadataValue(
        protocol_type=group.protocol_type or "",
        generation=group.generation_id,
        protocol=group.protocol,
        leader=group.leader,
        current_state_timestamp=wall_ms,
        members=[
            GroupMetadataValue.MemberMetadata(
                member_id=m.member_id,
                group_instance_id=m.instance_id,
                client_id=m.client_id,
                client_host=m.client_host,
                rebalance_timeout=m.rebalance_timeout_ms,
                session_timeout=m.session_timeout_ms,
                subscription=m.metadata(protocol),
                assignment=given.get(m.member_id, m.assignment),
            )
            for m in group.members.values()
        ],
    )


def members_of(value: GroupMetadataValue) -> list[Member]:
    """The members that a record holds; only the chosen protocol's subscription was kept."""
    return [
        Member(
            member_id=m.member_id,
            instance_id=m.group_instance_id,
            client_id=m.client_id,
            client_host=m.client_host,
            session_timeout_ms=m.session_timeout,
            rebalance_timeout_ms=m.rebalance_timeout,
            protocols=((value.protocol or "", m.subscription),),
            assignment=m.assignment,
        )
        for m in value.members
    ]
