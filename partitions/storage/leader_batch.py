"""What a leader does to a produced batch before it is appended: check it, and rarely rewrite it.

The batch is opaque: header and checksum are looked at. Records are looked at only where the topic
asks for it (a different `compression.type`, keys on a compacted topic, a limit to old timestamps),
and for their times as far as `HeaderTrust` says. Nothing of a record is ever rewritten: what a
producer sent comes back byte for byte, also out of a batch that was compressed anew.
"""

from __future__ import annotations

from typing import NamedTuple

from ...seam import Buffer
from ...seam.checksum import crc32c
from ...wire import ErrorCode
from ...wire.compression import (
    Compression,
    CompressionUnavailable,
    DecompressionFailed,
    UnpackedTooLarge,
    compress,
    decompress,
)
from ...wire.records import (
    HEADER_SIZE,
    NO_TIMESTAMP,
    OVERHEAD,
    BatchHeader,
    RecordsError,
    assign_append_time,
    check_from_client,
    decode_records,
    parse_header,
    timestamp_range,
)
from ...wire.records.batch_header import (
    COMPRESSION_MASK,
    CONTROL_BIT,
    HEADER,
    TIMESTAMP_TYPE_BIT,
)
from .batch_scan import CRC_FROM
from .errors import RecordsRejected
from .header_trust import HeaderTrust
from .log_config import NEVER_MS, LogConfig

MAX_UNPACKED_BYTES = 1 << 28
"""What one batch may unpack to where the topic asks to look into it."""

MAX_VERIFIED_BYTES = 1 << 20
"""What one may unpack to only to see whether its header is right."""


class LeaderBatch(NamedTuple):
    """A batch fit to be appended; offset and leader epoch are still to be assigned."""

    header: BatchHeader
    data: Buffer
    """The whole batch; not to be written to, it may lie in a shared buffer."""


def check_batch(
    records: Buffer, config: LogConfig, *, now_ms: int, from_client: bool, trust: HeaderTrust
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
    if attributes & TIMESTAMP_TYPE_BIT and not config.log_append_time:
        raise RecordsRejected(
            ErrorCode.INVALID_TIMESTAMP, "a producer may not send log append time"
        )
    batch = LeaderBatch(header, records)
    wanted = config.codec
    recompress = wanted >= 0 and wanted != attributes & COMPRESSION_MASK
    if recompress or (
        from_client and (config.compact or config.timestamp_before_max_ms < NEVER_MS)
    ):
        batch = _look_inside(batch, config, now_ms, from_client=from_client, recompress=recompress)
    elif not config.log_append_time and from_client:
        newest = header.max_timestamp
        if (
            trust.must_look(header.records_count)
            or newest < header.base_timestamp
            or newest - now_ms > config.timestamp_after_max_ms
        ):
            batch = _verify_newest(batch, trust)
            _check_future(batch.header.max_timestamp, config, now_ms)
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


def _check_future(newest: int, config: LogConfig, now_ms: int) -> None:
    if newest - now_ms > config.timestamp_after_max_ms:
        raise RecordsRejected(
            ErrorCode.INVALID_TIMESTAMP,
            f"timestamp {newest} is {newest - now_ms} ms ahead, "
            f"message.timestamp.after.max.ms is {config.timestamp_after_max_ms}",
        )


def _verify_newest(batch: LeaderBatch, trust: HeaderTrust) -> LeaderBatch:
    """The batch, with `max_timestamp` put right where its records say otherwise."""
    header = batch.header
    body: Buffer = memoryview(batch.data)[HEADER_SIZE:]
    if header.attributes & COMPRESSION_MASK:
        try:
            body = _unpacked(batch, MAX_VERIFIED_BYTES)
        except (UnpackedTooLarge, CompressionUnavailable):
            # Believed: too much work for a mere look, or no codec to look with.
            return batch
    _, newest = _timestamps(header, body)
    if newest == header.max_timestamp:
        return batch
    trust.on_wrong_header()
    return _sealed(header._replace(max_timestamp=newest), memoryview(batch.data)[HEADER_SIZE:])


def _look_inside(
    batch: LeaderBatch, config: LogConfig, now_ms: int, *, from_client: bool, recompress: bool
) -> LeaderBatch:
    """What the topic asks for: keys, times, another compression."""
    header = batch.header
    try:
        body = _unpacked(batch, MAX_UNPACKED_BYTES)
    except UnpackedTooLarge as error:
        raise RecordsRejected(ErrorCode.CORRUPT_MESSAGE, str(error)) from None
    except CompressionUnavailable as error:
        raise RecordsRejected(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, str(error)) from None
    if from_client:
        _check_records(batch, config, now_ms)
    _, newest = _timestamps(header, body)
    if not config.log_append_time:
        if from_client:
            _check_future(newest, config, now_ms)
        header = header._replace(max_timestamp=newest)
    if recompress:
        return _compressed_anew(header, body, config)
    if header == batch.header:
        return batch
    return _sealed(header, memoryview(batch.data)[HEADER_SIZE:])


def _check_records(batch: LeaderBatch, config: LogConfig, now_ms: int) -> None:
    """One by one, where the topic asks for it: a key, and not too old."""
    too_old = config.timestamp_before_max_ms < NEVER_MS and not config.log_append_time
    if not config.compact and not too_old:
        return
    try:
        records = decode_records(batch.data, max_bytes=MAX_UNPACKED_BYTES)
    except RecordsError as error:
        raise RecordsRejected(error.error_code, str(error)) from None
    if config.compact:
        keyless = [number for number, record in enumerate(records) if record.key is None]
        if keyless:
            message = "a compacted topic takes no record without a key"
            raise RecordsRejected(
                ErrorCode.INVALID_RECORD, message, tuple((n, message) for n in keyless)
            )
    if too_old:
        limit = now_ms - config.timestamp_before_max_ms
        old = [n for n, record in enumerate(records) if NO_TIMESTAMP != record.timestamp < limit]
        if old:
            message = f"older than message.timestamp.before.max.ms={config.timestamp_before_max_ms}"
            raise RecordsRejected(
                ErrorCode.INVALID_TIMESTAMP,
                f"timestamp {records[old[0]].timestamp} is {message}",
                tuple((n, message) for n in old),
            )


def _unpacked(batch: LeaderBatch, max_bytes: int) -> bytes:
    """The records' bytes. Raises RecordsRejected, UnpackedTooLarge, CompressionUnavailable."""
    body = memoryview(batch.data)[HEADER_SIZE:]
    codec = batch.header.compression
    if codec is Compression.NONE:
        return bytes(body)
    try:
        return decompress(codec, body, max_bytes=max_bytes)
    except UnpackedTooLarge:
        raise
    except DecompressionFailed as error:
        raise RecordsRejected(ErrorCode.CORRUPT_MESSAGE, str(error)) from None


def _timestamps(header: BatchHeader, body: Buffer) -> tuple[int, int]:
    try:
        return timestamp_range(header, body)
    except RecordsError as error:
        raise RecordsRejected(error.error_code, str(error)) from None


def _compressed_anew(header: BatchHeader, body: bytes, config: LogConfig) -> LeaderBatch:
    codec = Compression(config.codec)
    try:
        payload = compress(codec, body, config.compression_level)
    except CompressionUnavailable as error:
        raise RecordsRejected(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, str(error)) from None
    size = HEADER_SIZE + len(payload)
    if size > config.max_message_bytes or size > config.segment_bytes:
        raise _too_large(size, config)
    attributes = header.attributes & ~COMPRESSION_MASK | codec
    return _sealed(
        header._replace(batch_length=size - OVERHEAD, attributes=attributes), memoryview(payload)
    )


def _sealed(header: BatchHeader, payload: memoryview) -> LeaderBatch:
    """A batch of these parts, with the right checksum."""
    data = bytearray(HEADER.pack(*header))
    data += payload
    header = header._replace(crc=crc32c(memoryview(data)[CRC_FROM:]))
    HEADER.pack_into(data, 0, *header)
    return LeaderBatch(header, data)
