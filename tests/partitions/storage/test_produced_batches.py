"""What a topic may ask of produced batches, and that nothing else of them is ever changed."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logboat.partitions.storage import CompressionType, LogConfig, PartitionLog, RecordsRejected
from logboat.partitions.storage.header_trust import FEW_RECORDS, ONE_IN, HeaderTrust
from logboat.partitions.storage.leader_batch import check_batch
from logboat.wire import ErrorCode
from logboat.wire.compression import Compression, decompress
from logboat.wire.records import (
    HEADER_SIZE,
    Batch,
    Record,
    crc_of,
    decode_records,
    encode_batch,
    parse_header,
)
from tests.partitions.storage.log_scene import NOW_MS, new_disk, open_log, read_all

HEADERS = [("x", b"1"), ("x", b"2"), ("", b"e"), ("n", None), ("z", b""), ("ключ", b"\x00\xff")]
"""Case P15."""

CODECS = {
    CompressionType.UNCOMPRESSED: Compression.NONE,
    CompressionType.GZIP: Compression.GZIP,
    CompressionType.SNAPPY: Compression.SNAPPY,
    CompressionType.LZ4: Compression.LZ4,
    CompressionType.ZSTD: Compression.ZSTD,
}


def claiming(max_timestamp: int, data: bytearray) -> bytearray:
    """The batch, with another `max_timestamp` in its header, and a right checksum."""
    data[35:43] = max_timestamp.to_bytes(8, "big", signed=True)
    data[17:21] = crc_of(data).to_bytes(4, "big")
    return data


def put(log: PartitionLog, data: bytes | bytearray, now_ms: int = NOW_MS) -> Batch:
    """Append it; what then lies in the log."""
    appended = log.append_as_leader(data, leader_epoch=0, now_ms=now_ms)
    return next(iter(read_all(log, appended.base_offset)))


def refused(log: PartitionLog, data: bytes | bytearray) -> RecordsRejected:
    end = log.log_end_offset
    with pytest.raises(RecordsRejected) as caught:
        log.append_as_leader(data, leader_epoch=0, now_ms=NOW_MS)
    assert log.log_end_offset == end
    return caught.value


# max_timestamp: case P09.


@pytest.mark.parametrize("compression", [Compression.NONE, Compression.GZIP, Compression.ZSTD])
@pytest.mark.parametrize("claimed", [-1, 0, 999_999, 1000, 5999, NOW_MS * 1000])
async def test_p09_a_wrong_max_timestamp_is_put_right(
    claimed: int, compression: Compression
) -> None:
    records = [Record(value=b"v", timestamp=1000 + delta) for delta in (0, 5000, 2000)]
    data = claiming(claimed, encode_batch(records, compression=compression))
    log = await open_log(new_disk())
    stored = put(log, data)
    assert stored.header.max_timestamp == 6000
    assert crc_of(stored.view) == stored.header.crc
    assert stored.view[HEADER_SIZE:] == data[HEADER_SIZE:]
    for wanted, offset in ((0, 0), (1001, 1), (3000, 1), (5999, 1), (6000, 1)):
        found = log.offset_for_timestamp(wanted)
        assert found is not None
        assert found.offset == offset
    assert log.offset_for_timestamp(6001) is None
    newest = log.offset_of_max_timestamp()
    assert newest is not None
    assert (newest.offset, newest.timestamp_ms) == (1, 6000)
    assert log.synced_segments == ()
    assert log._segments.active.newest_ms() == 6000, "so is the age for retention"
    await log.close()


async def test_p09_a_client_that_is_wrong_in_large_batches_is_found_out() -> None:
    log = await open_log(new_disk())
    many = [Record(value=b"v", timestamp=1000 + n) for n in range(FEW_RECORDS + 1)]
    right = many[-1].timestamp
    stored = [
        put(log, claiming(1000, encode_batch(many))).header.max_timestamp for _ in range(3 * ONE_IN)
    ]
    assert stored.index(right) < ONE_IN
    assert set(stored[stored.index(right) :]) == {right}
    await log.close()


def test_p09_a_right_header_costs_a_look_only_now_and_then() -> None:
    trust = HeaderTrust()
    looks = sum(trust.must_look(FEW_RECORDS + 1) for _ in range(10 * ONE_IN))
    assert looks == 10
    assert all(trust.must_look(FEW_RECORDS) for _ in range(10))


async def test_a_max_timestamp_from_the_future_does_not_refuse_records_of_today() -> None:
    log = await open_log(new_disk())
    data = encode_batch([Record(value=b"v", timestamp=NOW_MS)])
    assert put(log, claiming(NOW_MS + 10**9, data)).header.max_timestamp == NOW_MS
    await log.close()


async def test_the_limits_hold_for_every_record_of_a_batch() -> None:
    config = LogConfig(timestamp_before_max_ms=1000, timestamp_after_max_ms=2000)
    log = await open_log(new_disk(), config)

    def of(*deltas: int) -> bytearray:
        return encode_batch([Record(value=b"v", timestamp=NOW_MS + delta) for delta in deltas])

    for deltas, wrong in (((0, -1001, 0), 1), ((0, 0, -5000), 2)):
        rejected = refused(log, of(*deltas))
        assert rejected.error is ErrorCode.INVALID_TIMESTAMP
        assert [number for number, _ in rejected.record_errors] == [wrong]
    assert refused(log, of(0, 2001)).error is ErrorCode.INVALID_TIMESTAMP
    lying = claiming(NOW_MS, of(0, 2001))
    assert refused(log, lying).error is ErrorCode.INVALID_TIMESTAMP
    put(log, of(-1000, 2000, 0))
    put(log, encode_batch([Record(value=b"v", timestamp=-1)]))
    await log.close()


# compression.type.


@pytest.mark.parametrize("sent", Compression, ids=lambda codec: codec.name)
@pytest.mark.parametrize("wanted", CODECS, ids=lambda wanted: wanted.name)
async def test_p15_records_come_back_byte_for_byte_in_another_codec(
    wanted: CompressionType, sent: Compression
) -> None:
    records = [
        Record(key=b"k", value=b"v" * 100, headers=HEADERS, timestamp=NOW_MS),
        Record(key=None, value=None, headers=(), timestamp=NOW_MS - 5),
        Record(key=b"", value=b"", headers=[("h", b"%d" % n) for n in range(2000)]),
    ]
    data = encode_batch(records, compression=sent, producer_id=4, producer_epoch=1, base_sequence=7)
    log = await open_log(new_disk(), LogConfig(compression_type=wanted))
    stored = put(log, data)
    header, original = stored.header, parse_header(data)
    assert header.compression is CODECS[wanted]
    assert crc_of(stored.view) == header.crc
    assert body(stored.view) == body(memoryview(data))
    assert (
        header._replace(
            batch_length=original.batch_length,
            crc=original.crc,
            attributes=original.attributes,
            partition_leader_epoch=original.partition_leader_epoch,
        )
        == original
    )
    decoded = decode_records(stored.view)
    assert [(r.key, r.value, list(r.headers)) for r in decoded] == [
        (r.key, r.value, list(r.headers)) for r in records
    ]
    await log.close()


def body(batch: memoryview) -> bytes:
    """The records of a batch, unpacked, not decoded."""
    codec = parse_header(batch).compression
    data = batch[HEADER_SIZE:]
    if codec is Compression.NONE:
        return bytes(data)
    return decompress(codec, data, max_bytes=1 << 24)


async def test_a_header_name_that_is_no_text_survives_another_codec() -> None:
    data = encode_batch([Record(value=b"v", headers=[("name", b"x")], timestamp=NOW_MS)])
    at = bytes(data).index(b"name")
    data[at : at + 4] = b"\xff\xfe\xfd\xfc"
    data[17:21] = crc_of(data).to_bytes(4, "big")
    log = await open_log(new_disk(), LogConfig(compression_type=CompressionType.ZSTD))
    assert b"\xff\xfe\xfd\xfc" in body(put(log, data).view)
    await log.close()


@pytest.mark.parametrize(
    ("codec", "setting", "low", "high"),
    [
        (CompressionType.GZIP, "gzip_level", 1, 9),
        (CompressionType.LZ4, "lz4_level", 9, 12),
        (CompressionType.ZSTD, "zstd_level", -5, 19),
    ],
)
async def test_compression_levels_are_the_topics(
    codec: CompressionType, setting: str, low: int, high: int
) -> None:
    text = b"".join(b"a record of the log, number %d, and so on; " % (n * n) for n in range(2000))
    data = encode_batch([Record(value=text, timestamp=NOW_MS)])
    sizes = []
    for level in (low, high):
        config = LogConfig(compression_type=codec, **{setting: level})  # type: ignore[arg-type]
        log = await open_log(new_disk(), config)
        stored = put(log, data)
        sizes.append(stored.header.size)
        assert decode_records(stored.view)[0].value == text
        await log.close()
    assert sizes[1] < sizes[0]


async def test_a_batch_that_is_too_large_only_when_compressed_anew_is_refused() -> None:
    config = LogConfig(compression_type=CompressionType.UNCOMPRESSED, max_message_bytes=1000)
    log = await open_log(new_disk(), config)
    data = encode_batch([Record(value=bytes(5000))], compression=Compression.GZIP)
    assert len(data) < 1000
    assert refused(log, data).error is ErrorCode.MESSAGE_TOO_LARGE
    await log.close()


async def test_sizes_are_refused_with_kafkas_errors() -> None:
    data = encode_batch([Record(value=bytes(900))])
    size = len(data)
    log = await open_log(new_disk(), LogConfig(max_message_bytes=size, segment_bytes=size))
    put(log, data)
    await log.close()
    log = await open_log(new_disk(), LogConfig(max_message_bytes=size - 1))
    assert refused(log, data).error is ErrorCode.MESSAGE_TOO_LARGE
    await log.close()
    log = await open_log(new_disk(), LogConfig(max_message_bytes=size, segment_bytes=size - 1))
    assert refused(log, data).error is ErrorCode.RECORD_LIST_TOO_LARGE
    await log.close()


@pytest.mark.parametrize("codec", [5, 6, 7])
async def test_p17_an_unknown_codec_is_refused(codec: int) -> None:
    data = encode_batch([Record(value=b"v")])
    data[22] |= codec
    data[17:21] = crc_of(data).to_bytes(4, "big")
    log = await open_log(new_disk())
    assert refused(log, data).error is ErrorCode.INVALID_RECORD
    await log.close()


# Keys.


async def test_records_without_a_key_are_named_on_a_compacted_topic() -> None:
    log = await open_log(new_disk(), LogConfig(compact=True))
    records = [Record(key=key, value=b"v") for key in (b"a", None, b"", None)]
    for compression in (Compression.NONE, Compression.LZ4):
        rejected = refused(log, encode_batch(records, compression=compression))
        assert rejected.error is ErrorCode.INVALID_RECORD
        assert [number for number, _ in rejected.record_errors] == [1, 3]
    put(log, encode_batch([Record(key=b"", value=None)]))
    await log.close()


# Everything else stays as it came.

texts = st.one_of(st.none(), st.binary(max_size=20))


@settings(max_examples=60, deadline=None)
@given(
    contents=st.lists(
        st.tuples(
            texts,
            texts,
            st.lists(st.tuples(st.text(max_size=5), texts), max_size=4),
            st.integers(-1, 2**41),
        ),
        min_size=1,
        max_size=6,
    ),
    sent=st.sampled_from(list(Compression)),
    wanted=st.sampled_from([CompressionType.PRODUCER, *CODECS]),
)
def test_p15_whatever_a_record_holds_it_is_stored_unchanged(
    contents: Sequence[tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]], int]],
    sent: Compression,
    wanted: CompressionType,
) -> None:
    records = [
        Record(key=key, value=value, headers=headers, timestamp=timestamp)
        for key, value, headers, timestamp in contents
    ]
    data = bytes(encode_batch(records, compression=sent))
    before = bytes(data)
    stored = check_batch(
        data,
        LogConfig(compression_type=wanted, timestamp_after_max_ms=2**63 - 1),
        now_ms=NOW_MS,
        from_client=True,
        trust=HeaderTrust(),
    )
    assert data == before
    view = memoryview(stored.data)
    assert body(view) == body(memoryview(data))
    assert crc_of(view) == stored.header.crc == parse_header(view).crc
    if wanted is CompressionType.PRODUCER:
        assert bytes(view) == data
