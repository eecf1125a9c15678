"""Batches without records: they hold a place in the log's offsets, and nothing else (KAFKA-5490).

Compaction ends a segment with one where the last records went, and one stands where damage was set
aside. Kafka's own cleaner leaves such batches too, and its clients pass over them.
"""

from __future__ import annotations

from ...seam import Buffer
from ...wire.records import (
    HEADER_SIZE,
    MAGIC,
    NO_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    OVERHEAD,
    BatchHeader,
    crc_of,
)
from ...wire.records.batch_header import HEADER


def spacer(base_offset: int, next_offset: int, leader_epoch: int) -> bytearray:
    """An empty batch of no producer that takes the offsets from `base_offset` to `next_offset`."""
    return sealed(
        BatchHeader(
            base_offset=base_offset,
            batch_length=0,
            partition_leader_epoch=leader_epoch,
            magic=MAGIC,
            crc=0,
            attributes=0,
            last_offset_delta=next_offset - base_offset - 1,
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
