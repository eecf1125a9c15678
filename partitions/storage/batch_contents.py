"""Looking into the records of a produced batch, where the topic asks for it or its header is
doubted: keys, times, and another compression. Told in steps, as any of it may take long.

Nothing of a record is ever rewritten: what a producer sent comes back byte for byte, also out of a
batch that was compressed anew.
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
    InvalidBatch,
    RecordsError,
    survey_records,
)
from ...wire.records.batch_header import COMPRESSION_MASK, HEADER
from .batch_scan import CRC_FROM
from .errors import RecordsRejected
from .header_trust import HeaderTrust
from .log_config import NEVER_MS, LogConfig
from .raw_records import read_records
from .steps import Steps

MAX_UNPACKED_BYTES = 1 << 28
"""What one batch may unpack to where the topic asks to look into it."""

MAX_VERIFIED_BYTES = 1 << 20
"""What one may unpack to only to see whether its header is right."""

RECORDS_A_STEP = 1000
"""Looked at between two pauses: about a millisecond."""


class LeaderBatch(NamedTuple):
    """A batch fit to be appended; time, offset and leader epoch are still to be assigned."""

    header: BatchHeader
    data: Buffer
    """The whole batch; not to be written to, it may lie in a shared buffer."""


def verified(
    batch: LeaderBatch, config: LogConfig, trust: HeaderTrust, now_ms: int
) -> Steps[LeaderBatch]:
    """With `max_timestamp` put right where its records say otherwise (case P09)."""
    header = batch.header
    body: Buffer = memoryview(batch.data)[HEADER_SIZE:]
    newest = header.max_timestamp
    try:
        if header.attributes & COMPRESSION_MASK:
            body = yield from _unpacked(batch, MAX_VERIFIED_BYTES)
        newest = yield from _newest(header, body)
    except (UnpackedTooLarge, CompressionUnavailable):
        pass  # Believed: too much work for a mere look, or no codec to look with.
    _check_future(newest, config, now_ms)
    if newest == header.max_timestamp:
        return batch
    trust.on_wrong_header()
    return _sealed(header._replace(max_timestamp=newest), memoryview(batch.data)[HEADER_SIZE:])


def looked_into(
    batch: LeaderBatch, config: LogConfig, now_ms: int, *, from_client: bool, recompress: bool
) -> Steps[LeaderBatch]:
    """What the topic asks for: keys, times, another compression."""
    header = batch.header
    try:
        body = yield from _unpacked(batch, MAX_UNPACKED_BYTES)
    except UnpackedTooLarge as error:
        raise RecordsRejected(ErrorCode.CORRUPT_MESSAGE, str(error)) from None
    except CompressionUnavailable as error:
        raise RecordsRejected(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, str(error)) from None
    too_old = config.timestamp_before_max_ms < NEVER_MS and not config.log_append_time
    if from_client and (config.compact or too_old):
        newest = yield from _judged(header, bytes(body), config, now_ms if too_old else None)
    else:
        newest = yield from _newest(header, body)
    if not config.log_append_time:
        if from_client:
            _check_future(newest, config, now_ms)
        header = header._replace(max_timestamp=newest)
    if recompress:
        return (yield from _compressed_anew(header, body, config))
    if header == batch.header:
        return batch
    return _sealed(header, memoryview(batch.data)[HEADER_SIZE:])


def _check_future(newest: int, config: LogConfig, now_ms: int) -> None:
    """Raises RecordsRejected."""
    if newest - now_ms > config.timestamp_after_max_ms:
        raise RecordsRejected(
            ErrorCode.INVALID_TIMESTAMP,
            f"timestamp {newest} is {newest - now_ms} ms ahead, "
            f"message.timestamp.after.max.ms is {config.timestamp_after_max_ms}",
        )


def too_large(size: int, config: LogConfig) -> RecordsRejected:
    if size > config.max_message_bytes:
        return RecordsRejected(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"the batch has {size} bytes, max.message.bytes is {config.max_message_bytes}",
        )
    return RecordsRejected(
        ErrorCode.RECORD_LIST_TOO_LARGE,
        f"the batch has {size} bytes, segment.bytes is {config.segment_bytes}",
    )


def _unpacked(batch: LeaderBatch, max_bytes: int) -> Steps[Buffer]:
    """The records' bytes. Raises RecordsRejected, UnpackedTooLarge, CompressionUnavailable."""
    body = memoryview(batch.data)[HEADER_SIZE:]
    codec = batch.header.compression
    if codec is Compression.NONE:
        return body
    try:
        return (yield lambda: decompress(codec, body, max_bytes=max_bytes))
    except UnpackedTooLarge:
        raise
    except DecompressionFailed as error:
        raise RecordsRejected(ErrorCode.CORRUPT_MESSAGE, str(error)) from None


def _newest(header: BatchHeader, body: Buffer) -> Steps[int]:
    """The largest timestamp of the records. Raises RecordsRejected."""
    left, position, highest = header.records_count, 0, -1 << 64
    try:
        while left > 0:
            count = min(left, RECORDS_A_STEP)
            position, _, newest = survey_records(body, position, count)
            if newest > highest:
                highest = newest
            left -= count
            if left:
                yield None
        _check_end(header, body, position)
    except RecordsError as error:
        raise RecordsRejected(error.error_code, str(error)) from None
    return header.base_timestamp + highest if header.records_count else NO_TIMESTAMP


def _check_end(header: BatchHeader, body: Buffer, position: int) -> None:
    if position != len(body):
        raise InvalidBatch(f"{header.records_count} records end at byte {position} of {len(body)}")


def _judged(header: BatchHeader, body: bytes, config: LogConfig, now_ms: int | None) -> Steps[int]:
    """As `_newest`, after a look at each record: on a compacted topic it has a key, and it is not
    too old, unless `now_ms` is None."""
    oldest = -1 << 64 if now_ms is None else now_ms - config.timestamp_before_max_ms
    keyless: list[int] = []
    old: list[tuple[int, int]] = []
    left, position, highest = header.records_count, 0, -1 << 64
    try:
        while left > 0:
            first = header.records_count - left
            records = read_records(body, position, min(left, RECORDS_A_STEP))
            for number, record in enumerate(records, first):
                timestamp = header.base_timestamp + record.timestamp_delta
                highest = max(highest, timestamp)
                if record.key is None:
                    keyless.append(number)
                if NO_TIMESTAMP != timestamp < oldest:
                    old.append((number, timestamp))
            position = records[-1].end
            left -= len(records)
            if left:
                yield None
        _check_end(header, body, position)
    except RecordsError as error:
        raise RecordsRejected(error.error_code, str(error)) from None
    if config.compact and keyless:
        message = "a compacted topic takes no record without a key"
        raise RecordsRejected(
            ErrorCode.INVALID_RECORD, message, tuple((number, message) for number in keyless)
        )
    if old:
        message = f"older than message.timestamp.before.max.ms={config.timestamp_before_max_ms}"
        raise RecordsRejected(
            ErrorCode.INVALID_TIMESTAMP,
            f"timestamp {old[0][1]} is {message}",
            tuple((number, message) for number, _ in old),
        )
    return highest


def _compressed_anew(header: BatchHeader, body: Buffer, config: LogConfig) -> Steps[LeaderBatch]:
    codec = Compression(config.codec)
    try:
        payload = yield lambda: compress(codec, bytes(body), config.compression_level)
    except CompressionUnavailable as error:
        raise RecordsRejected(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, str(error)) from None
    size = HEADER_SIZE + len(payload)
    if size > config.max_message_bytes or size > config.segment_bytes:
        raise too_large(size, config)
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
