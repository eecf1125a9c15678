"""What a leader does to a produced batch before it is appended: check it, and rarely rewrite it.

The batch is opaque: header and checksum are looked at, records are not. They are unpacked only
where the topic asks for it: a different `compression.type`, a compacted topic (no null keys), or a
`max_timestamp` that cannot be right.

Known gap: a `max_timestamp` at or above `base_timestamp` is believed. Kafka looks at every record.
It is bounded by message.timestamp.after.max.ms, and a lookup by time goes on to the next batch when
the promised record is not there.
"""

from __future__ import annotations

from typing import NamedTuple

from ...seam import Buffer
from ...seam.checksum import crc32c
from ...wire import ErrorCode
from ...wire.compression import Compression, DecompressionFailed
from ...wire.records import (
    NO_TIMESTAMP,
    OVERHEAD,
    BatchHeader,
    Record,
    RecordsError,
    TimestampType,
    assign_append_time,
    check_from_client,
    decode_records,
    encode_batch,
    parse_header,
)
from ...wire.records.batch_header import (
    COMPRESSION_MASK,
    CONTROL_BIT,
    HEADER,
    TIMESTAMP_TYPE_BIT,
)
from .batch_scan import CRC_FROM
from .errors import RecordsRejected
from .log_config import LogConfig

MAX_UNPACKED_BYTES = 1 << 28
"""What one batch may unpack to where it must be looked into."""


class LeaderBatch(NamedTuple):
    """A batch fit to be appended; offset and leader epoch are still to be assigned."""

    header: BatchHeader
    data: Buffer
    """The whole batch; not to be written to, it may lie in a shared buffer."""


def check_batch(
    records: Buffer, config: LogConfig, *, now_ms: int, from_client: bool
) -> LeaderBatch:
    """Raises RecordsRejected with Kafka's error code; nothing is changed in place.

    Every produced batch passes here: straight code, calls only where something is wrong or rare.
    """
    length = len(records)
    if length == 0:
        raise RecordsRejected(ErrorCode.INVALID_RECORD, "exactly one batch per partition, not none")
    try:
        header = parse_header(records)
        if from_client:
            check_from_client(header)
    except RecordsError as error:
        raise RecordsRejected(error.error_code, str(error)) from None
    size = header.batch_length + OVERHEAD
    if size != length:
        raise _not_one_batch(size, length)
    if size > config.max_message_bytes or size > config.segment_bytes:
        raise _too_large(size, config)
    checksum = crc32c(memoryview(records)[CRC_FROM:])
    if checksum != header.crc:
        raise RecordsRejected(
            ErrorCode.CORRUPT_MESSAGE, f"checksum {checksum:#010x}, the header says {header.crc:#x}"
        )
    if from_client and header.base_offset != 0:
        raise RecordsRejected(
            ErrorCode.INVALID_RECORD, f"the base offset must be 0, not {header.base_offset}"
        )
    attributes = header.attributes
    if attributes & CONTROL_BIT:
        return LeaderBatch(header, records)
    wrong_newest = False
    if not config.log_append_time:
        _check_timestamps(header, config, now_ms)
        wrong_newest = header.max_timestamp < header.base_timestamp
    wanted = config.codec
    recompress = wanted >= 0 and wanted != attributes & COMPRESSION_MASK
    batch = LeaderBatch(header, records)
    if recompress or wrong_newest or (config.compact and from_client):
        batch = _look_inside(
            batch, config, now_ms, recompress=recompress, wrong_newest=wrong_newest
        )
    if config.log_append_time:
        stamped = bytearray(batch.data)
        return LeaderBatch(assign_append_time(stamped, batch.header, now_ms=now_ms), stamped)
    return batch


def _not_one_batch(size: int, length: int) -> RecordsRejected:
    if size > length:
        return RecordsRejected(
            ErrorCode.CORRUPT_MESSAGE, f"the batch claims {size} bytes, {length} arrived"
        )
    return RecordsRejected(
        ErrorCode.INVALID_RECORD,
        f"exactly one batch per partition: {length - size} bytes follow the first",
    )


def _too_large(size: int, config: LogConfig) -> RecordsRejected:
    if size > config.max_message_bytes:
        return RecordsRejected(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"the batch has {size} bytes, max.message.bytes is {config.max_message_bytes}",
        )
    return RecordsRejected(
        ErrorCode.RECORD_LIST_TOO_LARGE,
        f"the batch has {size} bytes, segment.bytes is {config.segment_bytes}",
    )


def _check_timestamps(header: BatchHeader, config: LogConfig, now_ms: int) -> None:
    if header.attributes & TIMESTAMP_TYPE_BIT:
        raise RecordsRejected(
            ErrorCode.INVALID_TIMESTAMP, "a producer may not send log append time"
        )
    newest, oldest = header.max_timestamp, header.base_timestamp
    if newest - now_ms > config.timestamp_after_max_ms:
        raise RecordsRejected(
            ErrorCode.INVALID_TIMESTAMP,
            f"timestamp {newest} is {newest - now_ms} ms ahead, "
            f"message.timestamp.after.max.ms is {config.timestamp_after_max_ms}",
        )
    if oldest != NO_TIMESTAMP and now_ms - oldest > config.timestamp_before_max_ms:
        raise RecordsRejected(
            ErrorCode.INVALID_TIMESTAMP,
            f"timestamp {oldest} is {now_ms - oldest} ms old, "
            f"message.timestamp.before.max.ms is {config.timestamp_before_max_ms}",
        )


def _look_inside(
    batch: LeaderBatch, config: LogConfig, now_ms: int, *, recompress: bool, wrong_newest: bool
) -> LeaderBatch:
    header = batch.header
    try:
        records = decode_records(batch.data, max_bytes=MAX_UNPACKED_BYTES)
    except RecordsError as error:
        raise RecordsRejected(error.error_code, str(error)) from None
    except DecompressionFailed as error:
        raise RecordsRejected(ErrorCode.CORRUPT_MESSAGE, str(error)) from None
    if config.compact and any(record.key is None for record in records):
        raise RecordsRejected(
            ErrorCode.INVALID_RECORD, "a compacted topic takes no record without a key"
        )
    if recompress:
        return _encoded_again(header, records, config, now_ms)
    if wrong_newest:
        header = header._replace(max_timestamp=max(record.timestamp for record in records))
        if not config.log_append_time:
            _check_timestamps(header, config, now_ms)
        data = bytearray(batch.data)
        HEADER.pack_into(data, 0, *header)
        header = header._replace(crc=crc32c(memoryview(data)[CRC_FROM:]))
        HEADER.pack_into(data, 0, *header)
        return LeaderBatch(header, data)
    return batch


def _encoded_again(
    header: BatchHeader, records: list[Record], config: LogConfig, now_ms: int
) -> LeaderBatch:
    data = encode_batch(
        records,
        compression=Compression(config.codec),
        timestamp_type=TimestampType.CREATE_TIME,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        transactional=header.is_transactional,
    )
    if len(data) > config.max_message_bytes:
        raise RecordsRejected(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"recompressed, the batch has {len(data)} bytes, "
            f"max.message.bytes is {config.max_message_bytes}",
        )
    new_header = parse_header(data)
    if not config.log_append_time:
        _check_timestamps(new_header, config, now_ms)
    return LeaderBatch(new_header, data)
