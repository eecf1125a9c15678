"""A batch from which records were taken away (KIP-98, KIP-534).

Base offset, last offset delta, producer and base sequence stay what they were: offsets never
change, and the last sequence of a batch must remain readable from its header. Base and largest
timestamp become those of the records that are left. With the delete horizon bit the base timestamp
is instead the time from which on the batch's tombstones, or its marker, may go.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....seam import Buffer
from ....wire.records import (
    HEADER_SIZE,
    MAGIC,
    NO_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    OVERHEAD,
    BatchHeader,
    TimestampType,
    crc_of,
)
from ....wire.records.batch_header import COMPRESSION_MASK, DELETE_HORIZON_BIT, HEADER
from ..raw_records import RawRecord, copy_records


def delete_horizon(header: BatchHeader) -> int | None:
    """Unix milliseconds; None when no pass has set one."""
    return header.base_timestamp if header.has_delete_horizon else None


def kept_body(
    header: BatchHeader, body: bytes, kept: Sequence[RawRecord], horizon_ms: int | None
) -> tuple[BatchHeader, bytearray]:
    """Header (length and checksum still to be filled in) and uncompressed records of what is left
    of a batch; `kept` is not empty. `horizon_ms`: the delete horizon that it is to have."""
    base = header.base_timestamp
    new_base = base + kept[0].timestamp_delta if horizon_ms is None else horizon_ms
    newest = header.max_timestamp
    if header.timestamp_type is TimestampType.CREATE_TIME:
        # Else all records bear the batch's time, and their own count for nothing.
        newest = base + max(record.timestamp_delta for record in kept)
    records = copy_records(body, kept, new_base - base)
    attributes = header.attributes & ~DELETE_HORIZON_BIT
    if horizon_ms is not None:
        attributes |= DELETE_HORIZON_BIT
    rebuilt = header._replace(
        attributes=attributes,
        base_timestamp=new_base,
        max_timestamp=newest,
        records_count=len(kept),
    )
    return rebuilt, records


def emptied(header: BatchHeader) -> bytearray:
    """The batch without its records: it keeps the producer's last sequence, or the last offset."""
    return sealed(
        header._replace(
            attributes=header.attributes & ~DELETE_HORIZON_BIT & ~COMPRESSION_MASK,
            base_timestamp=NO_TIMESTAMP,
            records_count=0,
        ),
        b"",
    )


def spacer(end_offset: int, leader_epoch: int) -> bytearray:
    """An empty batch, of no producer, that does nothing but end at `end_offset`."""
    return sealed(
        BatchHeader(
            base_offset=end_offset - 1,
            batch_length=0,
            partition_leader_epoch=leader_epoch,
            magic=MAGIC,
            crc=0,
            attributes=0,
            last_offset_delta=0,
            base_timestamp=NO_TIMESTAMP,
            max_timestamp=NO_TIMESTAMP,
            producer_id=NO_PRODUCER_ID,
            producer_epoch=NO_EPOCH,
            base_sequence=NO_SEQUENCE,
            records_count=0,
        ),
        b"",
    )


def is_spacer(header: BatchHeader) -> bool:
    return (
        header.records_count == 0
        and not header.has_producer_id
        and header.max_timestamp == NO_TIMESTAMP
    )


def sealed(header: BatchHeader, payload: Buffer) -> bytearray:
    """The whole batch; `payload` is compressed as the header says. Fills in length and checksum."""
    header = header._replace(batch_length=HEADER_SIZE - OVERHEAD + len(payload), crc=0)
    batch = bytearray(HEADER.pack(*header))
    batch += payload
    HEADER.pack_into(batch, 0, *header._replace(crc=crc_of(batch)))
    return batch
