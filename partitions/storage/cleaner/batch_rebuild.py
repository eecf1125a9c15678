"""A batch from which records were taken away (KIP-98, KIP-534).

Base offset, last offset delta, producer and base sequence stay what they were: offsets never
change, and the last sequence of a batch must remain readable from its header. Base and largest
timestamp become those of the records that are left. With the delete horizon bit the base timestamp
is instead the time from which on the batch's tombstones, or its marker, may go.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....wire.records import NO_TIMESTAMP, BatchHeader, TimestampType
from ....wire.records.batch_header import COMPRESSION_MASK, DELETE_HORIZON_BIT
from ..raw_records import RawRecord, copy_records
from ..spacer import sealed


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
