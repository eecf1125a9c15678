"""Record batches, format 2: what producers send, logs store and consumers read.

A batch is opaque on the way through a broker: its header is parsed (`batches`), its CRC checked
(`check_crc`), base offset and leader epoch are written into it in place (`assign_offsets`), for
LogAppendTime also the time (`assign_append_time`). Only coordinators, HTTP and compaction look at
single records (`decode_records`, `encode_batch`).
"""

from __future__ import annotations

from .batch import (
    Batch,
    assign_append_time,
    assign_offsets,
    batches,
    check_crc,
    check_from_client,
    crc_of,
    writable,
)
from .batch_header import (
    HEADER_SIZE,
    MAGIC,
    NO_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    OVERHEAD,
    BatchHeader,
    TimestampType,
    parse_header,
)
from .control import ControlType, control_type, encode_control_batch, encode_end_txn_marker
from .errors import BadCrc, BadMagic, InvalidBatch, RecordsError, TruncatedBatch
from .record import Record, decode_records, encode_batch
from .survey import survey_records, timestamp_range

__all__ = [
    "HEADER_SIZE",
    "MAGIC",
    "NO_EPOCH",
    "NO_PRODUCER_ID",
    "NO_SEQUENCE",
    "NO_TIMESTAMP",
    "OVERHEAD",
    "BadCrc",
    "BadMagic",
    "Batch",
    "BatchHeader",
    "ControlType",
    "InvalidBatch",
    "Record",
    "RecordsError",
    "TimestampType",
    "TruncatedBatch",
    "assign_append_time",
    "assign_offsets",
    "batches",
    "check_crc",
    "check_from_client",
    "control_type",
    "crc_of",
    "decode_records",
    "encode_batch",
    "encode_control_batch",
    "encode_end_txn_marker",
    "parse_header",
    "survey_records",
    "timestamp_range",
    "writable",
]
