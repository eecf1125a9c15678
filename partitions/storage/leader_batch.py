"""What a leader does to a produced batch before it is appended: check it, and rarely rewrite it.

The batch is opaque: header and checksum are looked at. Records are looked at only where the topic
asks for it (a different `compression.type`, keys on a compacted topic, a limit to old timestamps),
and for their times as far as `HeaderTrust` says: see `batch_contents`.
"""

from __future__ import annotations

from struct import Struct

from ...seam import Buffer, Clock
from ...seam.checksum import crc32c
from ...wire import ErrorCode
from ...wire.records import (
    HEADER_SIZE,
    OVERHEAD,
    RecordsError,
    assign_append_time,
    check_from_client,
    parse_header,
    timestamp_range,
)
from ...wire.records.batch_header import COMPRESSION_MASK, CONTROL_BIT, TIMESTAMP_TYPE_BIT
from .batch_contents import LeaderBatch, looked_into, too_large, verified
from .batch_scan import CRC_FROM
from .errors import RecordsRejected
from .header_trust import FEW_RECORDS, HeaderTrust
from .log_config import NEVER_MS, LogConfig
from .steps import Steps, all_at_once, beside_the_loop

LONG_BYTES = 64 << 10
LONG_RECORDS = 1000
"""A batch below both is looked into in about a millisecond."""


def check_batch(
    records: Buffer, config: LogConfig, *, now_ms: int, from_client: bool, trust: HeaderTrust
) -> LeaderBatch:
    """Raises RecordsRejected with Kafka's error code; nothing is changed in place.

    Every produced batch passes here: straight code, calls only where something is wrong or rare.
    """
    batch = _checked_frame(records, config, from_client=from_client)
    work = _work_on(batch, config, trust, now_ms=now_ms, from_client=from_client)
    return batch if work is None else all_at_once(work)


async def check_batch_beside_the_loop(
    records: Buffer, config: LogConfig, *, now_ms: int, trust: HeaderTrust
) -> LeaderBatch:
    """The same of a client's batch, for one that `takes_long`. `records` must stay unchanged."""
    batch = _checked_frame(records, config, from_client=True)
    work = _work_on(batch, config, trust, now_ms=now_ms, from_client=True)
    return batch if work is None else await beside_the_loop(work)


def takes_long(records: Buffer, config: LogConfig, trust: HeaderTrust, clock: Clock) -> bool:
    """Would `check_batch` hold the loop for more than a moment (RULES F1)? Asked of every produced
    batch, before anything about it is known to be true."""
    size = len(records)
    if size < HEADER_SIZE:
        return False
    codec = records[_ATTRIBUTES_LOW_BYTE] & COMPRESSION_MASK
    if config.codec >= 0 and config.codec != codec:
        return True
    count = int.from_bytes(records[_COUNT], "big")
    if config.compact or config.timestamp_before_max_ms < NEVER_MS:
        # What is compressed may unpack to anything.
        return codec != 0 or size > LONG_BYTES or count > LONG_RECORDS
    if config.log_append_time or (count <= LONG_RECORDS and (codec == 0 or size <= LONG_BYTES)):
        return False
    return trust.would_look(count) or _newest_is_doubtful(records, config, clock.now_ms())


_ATTRIBUTES_LOW_BYTE = 22
_COUNT = slice(57, 61)
"""Number of records."""
_TIMES = Struct(">qq")
_TIMES_AT = 27
"""Base timestamp, largest timestamp."""


def _newest_is_doubtful(records: Buffer, config: LogConfig, now_ms: int) -> bool:
    """The largest timestamp says something that the records must bear out."""
    base, newest = _TIMES.unpack_from(records, _TIMES_AT)
    return bool(newest < base or newest - now_ms > config.timestamp_after_max_ms)


def stamped(batch: LeaderBatch, now_ms: int) -> LeaderBatch:
    """With the time of the append (`message.timestamp.type=LogAppendTime`)."""
    if batch.header.is_control:
        return batch
    data = bytearray(batch.data)
    return LeaderBatch(assign_append_time(data, batch.header, now_ms=now_ms), data)


def _checked_frame(records: Buffer, config: LogConfig, *, from_client: bool) -> LeaderBatch:
    """What header and length tell, and the checksum."""
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
        raise too_large(size, config)
    checksum = crc32c(memoryview(records)[CRC_FROM:])
    if checksum != header.crc:
        raise RecordsRejected(
            ErrorCode.CORRUPT_MESSAGE, f"checksum {checksum:#010x}, the header says {header.crc:#x}"
        )
    if from_client and header.base_offset != 0:
        raise RecordsRejected(
            ErrorCode.INVALID_RECORD, f"the base offset must be 0, not {header.base_offset}"
        )
    if header.attributes & TIMESTAMP_TYPE_BIT and not (
        config.log_append_time or header.attributes & CONTROL_BIT
    ):
        raise RecordsRejected(
            ErrorCode.INVALID_TIMESTAMP, "a producer may not send log append time"
        )
    return LeaderBatch(header, records)


def _work_on(
    batch: LeaderBatch, config: LogConfig, trust: HeaderTrust, *, now_ms: int, from_client: bool
) -> Steps[LeaderBatch] | None:
    """What is to be done with its records; None: they are stored as they came, unseen."""
    header = batch.header
    attributes = header.attributes
    if attributes & CONTROL_BIT:
        return None
    wanted = config.codec
    recompress = wanted >= 0 and wanted != attributes & COMPRESSION_MASK
    if recompress or (
        from_client and (config.compact or config.timestamp_before_max_ms < NEVER_MS)
    ):
        return looked_into(batch, config, now_ms, from_client=from_client, recompress=recompress)
    if config.log_append_time or not from_client:
        return None
    newest = header.max_timestamp
    if (
        trust.must_look(header.records_count)
        or newest < header.base_timestamp
        or newest - now_ms > config.timestamp_after_max_ms
    ):
        return None if _is_right(batch, config, now_ms) else verified(batch, config, trust, now_ms)
    return None


def _is_right(batch: LeaderBatch, config: LogConfig, now_ms: int) -> bool:
    """Of few records as they are, by far the most frequent look: seen without taking steps."""
    header = batch.header
    if header.attributes & COMPRESSION_MASK or header.records_count > FEW_RECORDS:
        return False
    try:
        _, newest = timestamp_range(header, memoryview(batch.data)[HEADER_SIZE:])
    except RecordsError:
        return False
    return newest == header.max_timestamp and newest - now_ms <= config.timestamp_after_max_ms


def _not_one_batch(size: int, length: int) -> RecordsRejected:
    if size > length:
        return RecordsRejected(
            ErrorCode.CORRUPT_MESSAGE, f"the batch claims {size} bytes, {length} arrived"
        )
    return RecordsRejected(
        ErrorCode.INVALID_RECORD,
        f"exactly one batch per partition: {length - size} bytes follow the first",
    )
