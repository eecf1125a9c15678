"""Between records as HTTP says them and record batches as logs hold them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ...seam import frozen
from ...wire import Buffer, Records
from ...wire.records import (
    Record,
    TimestampType,
    batches,
    decode_records,
    encode_batch,
)
from .records_in import Producer, RecordIn

MAX_UNPACKED_BYTES = 64 << 20
"""What one compressed batch may become; a small bomb must not fill the node's memory."""

_TIMESTAMP_TYPES = {
    TimestampType.CREATE_TIME: "create_time",
    TimestampType.LOG_APPEND_TIME: "log_append_time",
}


@frozen
class RecordOut:
    """A record as it was stored, and which clock its timestamp is of."""

    record: Record
    timestamp_type: str
    leader_epoch: int
    """Of the batch it stands in."""


RECORD_BYTES = 100
"""What a record costs beside its key and value, about."""


def size_of(stored: RecordOut) -> int:
    """Of a record in memory, and of its text, about."""
    record = stored.record
    return RECORD_BYTES + len(record.key or b"") + len(record.value or b"")


@dataclass(slots=True)
class FetchedRecords:
    """What a fetch brought, from the asked offset on."""

    next_offset: int
    """Behind the last batch, whether or not it held records to show."""
    records: list[RecordOut] = field(default_factory=list)
    last_epoch: int | None = None
    """Leader epoch of the last batch; None when there was none."""


def encode(records: Sequence[RecordIn], producer: Producer | None = None) -> bytearray:
    """One uncompressed batch."""
    if producer is None:
        return encode_batch(records)
    return encode_batch(
        records,
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        base_sequence=producer.base_sequence,
    )


def decode(data: Buffer, from_offset: int) -> FetchedRecords:
    """The records at `from_offset` and after: a log answers with whole batches, so the first may
    begin earlier and the last be cut off. Control batches count, but are not shown.

    Raises wire's RecordsError, DecompressionFailed or CompressionUnavailable.
    """
    fetched = FetchedRecords(next_offset=from_offset)
    unpacked = 0
    for batch in batches(data, partial_tail=True):
        header = batch.header
        if unpacked >= MAX_UNPACKED_BYTES:
            break
        if not header.is_control and header.last_offset >= from_offset:
            kind = _TIMESTAMP_TYPES[header.timestamp_type]
            for record in decode_records(batch.view, max_bytes=MAX_UNPACKED_BYTES):
                unpacked += len(record.key or b"") + len(record.value or b"")
                if record.offset >= from_offset:
                    fetched.records.append(RecordOut(record, kind, header.partition_leader_epoch))
        fetched.next_offset = max(fetched.next_offset, header.next_offset)
        fetched.last_epoch = header.partition_leader_epoch
    return fetched


def joined(records: Records) -> Buffer:
    """As one buffer; a remote answer already is."""
    if records is None:
        return b""
    return b"".join(records) if isinstance(records, list) else records
