"""Appending, reading, rolling, looking up: what a log does while nothing goes wrong."""

from __future__ import annotations

import asyncio

import pytest

from logboat.partitions.storage import (
    CompressionType,
    CorruptBatch,
    LogConfig,
    OffsetGap,
    OffsetOutOfRange,
    RecordsRejected,
)
from logboat.wire import ErrorCode
from logboat.wire.compression import Compression
from logboat.wire.records import (
    ControlType,
    Record,
    TimestampType,
    batches,
    decode_records,
    encode_batch,
    encode_control_batch,
)
from tests.partitions.storage.log_scene import (
    EVERYTHING,
    FOLDER,
    NOW_MS,
    append,
    batch,
    contents,
    new_disk,
    open_log,
    read_all,
)

SMALL = LogConfig(segment_bytes=400, index_interval_bytes=100)


async def test_offsets_and_leader_epoch_are_written_into_the_batch() -> None:
    log = await open_log(new_disk())
    first = append(log, b"a", b"b", leader_epoch=3)
    second = append(log, b"c", leader_epoch=3)
    assert (first.base_offset, first.last_offset, second.base_offset) == (0, 1, 2)
    found = [entry.header for entry in read_all(log)]
    assert [(header.base_offset, header.partition_leader_epoch) for header in found] == [
        (0, 3),
        (2, 3),
    ]
    await log.close()


async def test_the_producers_buffer_is_left_as_it_was() -> None:
    log = await open_log(new_disk())
    append(log, b"before")
    records = batch(b"a")
    copy = bytes(records)
    log.append_as_leader(records, leader_epoch=7, now_ms=NOW_MS)
    assert records == copy
    await log.close()


async def test_an_append_counts_as_synced_only_after_the_sync() -> None:
    log = await open_log(new_disk())
    seen: list[int] = []
    log.on_synced = seen.append
    append(log, b"a")
    assert (log.log_end_offset, log.synced_offset) == (1, 0)
    await log.wait_synced(1)
    assert log.synced_offset == log.recovery_point == 1
    assert seen == [1]
    await log.close()


async def test_c5_a_sync_covers_only_what_was_written_before_it_began() -> None:
    disk = new_disk()
    log = await open_log(disk)
    await log.wait_synced(0)
    await asyncio.sleep(0.01)
    seen: list[int] = []
    log.on_synced = seen.append
    running = 0

    def while_syncing() -> None:
        nonlocal running
        if log.log_end_offset == 1:
            running += 1
            append(log, b"during")

    disk.on_wait = while_syncing
    append(log, b"before")
    await log.wait_synced(1)
    await log.wait_synced(2)
    assert seen == [1, 2]
    assert running == 1
    await log.close()


async def test_in_page_cache_mode_what_is_written_counts() -> None:
    disk = new_disk()
    log = await open_log(disk, LogConfig(synced=False))
    await asyncio.sleep(0.01)
    disk.log.clear()
    append(log, b"a")
    assert log.synced_offset == 0
    await log.wait_synced(1)
    await asyncio.sleep(0.01)
    assert log.synced_offset == 1
    assert log.recovery_point == 0
    assert ("sync", f"{FOLDER}/00000000000000000000.log") not in disk.log
    await log.close()


async def test_appends_of_one_turn_leave_as_one_write() -> None:
    disk = new_disk()
    log = await open_log(disk)
    disk.log.clear()
    for _ in range(10):
        append(log, b"a")
    await log.wait_synced(10)
    assert [kind for kind, path in disk.log if path.endswith(".log")] == ["append", "sync"]
    await log.close()


async def test_a_log_rolls_at_segment_bytes_and_reads_across() -> None:
    log = await open_log(new_disk(), SMALL)
    for number in range(40):
        append(log, b"%d" % number)
    assert len(log.segment_base_offsets) > 5
    assert [entry.header.base_offset for entry in read_all(log)] == list(range(40))
    await log.close()


async def test_a_log_rolls_at_segment_ms_by_the_records_timestamps() -> None:
    log = await open_log(new_disk(), LogConfig(segment_ms=1000, timestamp_after_max_ms=10**9))
    append(log, b"a", timestamp=NOW_MS)
    append(log, b"b", timestamp=NOW_MS + 1000)
    append(log, b"c", timestamp=NOW_MS + 1001)
    assert log.segment_base_offsets == (0, 2)
    await log.close()


async def test_a_log_rolls_when_an_index_is_full() -> None:
    config = LogConfig(segment_index_bytes=16, index_interval_bytes=0)
    log = await open_log(new_disk(), config)
    for _ in range(10):
        append(log, b"a")
    assert len(log.segment_base_offsets) > 2
    assert len(list(read_all(log))) == 10
    await log.close()


@pytest.mark.parametrize("at_least_one", [True, False])
async def test_a_read_ends_with_a_whole_batch_within_max_bytes(at_least_one: bool) -> None:
    log = await open_log(new_disk(), SMALL)
    for number in range(30):
        append(log, b"x" * (number % 7), b"y")
    whole = {base: data for base, data in contents(log)}
    for offset in range(60):
        first = whole[offset - offset % 2]
        for max_bytes in (0, 1, len(first) - 1, len(first), len(first) + 1, 250, 5000):
            found = log.read(
                offset, max_bytes=max_bytes, upper_bound=EVERYTHING, at_least_one=at_least_one
            )
            data = b"".join(found.parts)
            assert len(data) == found.size
            bases = [entry.header.base_offset for entry in batches(data)]
            if bases:
                assert bases[0] == found.base_offset == offset - offset % 2
                assert found.next_offset == bases[-1] + 2
                assert len(data) <= max_bytes or (at_least_one and len(bases) == 1)
            else:
                assert not at_least_one
                assert max_bytes < len(first)
    await log.close()


async def test_a_read_stays_below_its_upper_bound() -> None:
    log = await open_log(new_disk(), SMALL)
    for _ in range(30):
        append(log, b"a", b"b")
    for offset in range(0, 60, 2):
        for bound in range(61):
            found = log.read(offset, max_bytes=1 << 20, upper_bound=bound, at_least_one=True)
            assert found.next_offset <= max(bound, offset)
            if bound >= offset + 2:
                assert found.next_offset > offset
    await log.close()


async def test_a_read_outside_the_log_is_refused() -> None:
    log = await open_log(new_disk())
    append(log, b"a")
    at_end = log.read(1, max_bytes=10, upper_bound=EVERYTHING, at_least_one=True)
    assert (at_end.size, at_end.next_offset) == (0, 1)
    with pytest.raises(OffsetOutOfRange):
        log.read(2, max_bytes=10, upper_bound=EVERYTHING, at_least_one=True)
    await log.advance_log_start(1)
    with pytest.raises(OffsetOutOfRange):
        log.read(0, max_bytes=10, upper_bound=EVERYTHING, at_least_one=True)
    await log.close()


# What a producer may send.


def rejected(log: object, records: bytes | bytearray, **settings: object) -> ErrorCode:
    with pytest.raises(RecordsRejected) as caught:
        log.append_as_leader(  # type: ignore[attr-defined]
            records, **{"leader_epoch": 0, "now_ms": NOW_MS, **settings}
        )
    assert log.log_end_offset == 0  # type: ignore[attr-defined]
    return caught.value.error


async def test_bad_batches_get_kafkas_errors_and_change_nothing() -> None:
    log = await open_log(new_disk(), LogConfig(max_message_bytes=500))
    good = batch(b"a")
    flipped = bytearray(good)
    flipped[-1] ^= 1
    old_magic = bytearray(good)
    old_magic[16] = 1
    with_offset = batch(b"a", base_offset=5)
    assert rejected(log, b"") is ErrorCode.INVALID_RECORD
    assert rejected(log, flipped) is ErrorCode.CORRUPT_MESSAGE
    assert rejected(log, old_magic) is ErrorCode.INVALID_RECORD
    assert rejected(log, good[:-1]) is ErrorCode.CORRUPT_MESSAGE
    assert rejected(log, good[:30]) is ErrorCode.CORRUPT_MESSAGE
    assert rejected(log, good + good) is ErrorCode.INVALID_RECORD
    assert rejected(log, with_offset) is ErrorCode.INVALID_RECORD
    assert rejected(log, batch(b"a" * 500)) is ErrorCode.MESSAGE_TOO_LARGE
    assert rejected(log, batch(b"a", producer_id=1)) is ErrorCode.INVALID_RECORD
    control = encode_control_batch(ControlType.COMMIT, b"", timestamp=NOW_MS)
    assert rejected(log, control) is ErrorCode.INVALID_RECORD
    append_time = batch(b"a", timestamp_type=TimestampType.LOG_APPEND_TIME)
    assert rejected(log, append_time) is ErrorCode.INVALID_TIMESTAMP
    await log.close()


async def test_timestamps_outside_the_limits_are_refused() -> None:
    config = LogConfig(timestamp_before_max_ms=1000, timestamp_after_max_ms=2000)
    log = await open_log(new_disk(), config)
    assert rejected(log, batch(b"a", timestamp=NOW_MS - 1001)) is ErrorCode.INVALID_TIMESTAMP
    assert rejected(log, batch(b"a", timestamp=NOW_MS + 2001)) is ErrorCode.INVALID_TIMESTAMP
    append(log, b"a", timestamp=NOW_MS - 1000)
    append(log, b"a", timestamp=NOW_MS + 2000)
    append(log, b"a", timestamp=-1)
    await log.close()


async def test_log_append_time_is_written_over_the_producers() -> None:
    log = await open_log(new_disk(), LogConfig(log_append_time=True))
    appended = append(log, b"a", b"b", timestamp=5, now_ms=NOW_MS + 9)
    assert appended.log_append_time_ms == NOW_MS + 9
    (stored,) = read_all(log)
    assert [record.timestamp for record in decode_records(stored.view)] == [NOW_MS + 9] * 2
    await log.close()


async def test_a_topics_own_compression_is_applied() -> None:
    log = await open_log(new_disk(), LogConfig(compression_type=CompressionType.GZIP))
    append(log, b"a" * 100, b"b", producer_id=4, producer_epoch=0, base_sequence=0)
    append(log, b"c", compression=Compression.GZIP)
    first, second = read_all(log)
    assert first.header.compression is second.header.compression is Compression.GZIP
    assert (first.header.producer_id, first.header.base_sequence) == (4, 0)
    assert [record.value for record in decode_records(first.view)] == [b"a" * 100, b"b"]
    assert log.log_end_offset == 3
    await log.close()


async def test_a_compacted_topic_takes_no_record_without_a_key() -> None:
    log = await open_log(new_disk(), LogConfig(compact=True))
    assert rejected(log, batch(b"a")) is ErrorCode.INVALID_RECORD
    append(log, b"a", key=b"k")
    await log.close()


# Followers.


async def test_a_follower_takes_the_leaders_batches_as_they_are() -> None:
    leader = await open_log(new_disk(), SMALL)
    follower = await open_log(new_disk(), LogConfig(segment_bytes=300, index_interval_bytes=50))
    for number in range(20):
        append(leader, b"%d" % number, b"x", leader_epoch=number // 5)
    data = b"".join(bytes(entry.view) for entry in read_all(leader))
    first = follower.append_as_follower(data[: len(data) // 2])
    assert first is not None
    assert first.base_offset == 0
    while follower.log_end_offset < leader.log_end_offset:
        found = leader.read(
            follower.log_end_offset, max_bytes=200, upper_bound=EVERYTHING, at_least_one=True
        )
        assert follower.append_as_follower(b"".join(found.parts)) is not None
    assert contents(follower) == contents(leader)
    assert follower.epochs.entries == leader.epochs.entries
    await leader.close()
    await follower.close()


async def test_a_follower_refuses_damage_and_gaps_whole() -> None:
    follower = await open_log(new_disk())
    good, next_one = batch(b"a"), batch(b"b", base_offset=1)
    damaged = bytearray(next_one)
    damaged[-1] ^= 1
    with pytest.raises(CorruptBatch):
        follower.append_as_follower(good + damaged)
    with pytest.raises(OffsetGap):
        follower.append_as_follower(good + batch(b"b", base_offset=2))
    with pytest.raises(OffsetGap):
        follower.append_as_follower(next_one)
    assert follower.log_end_offset == 0
    assert follower.append_as_follower(good[:-1]) is None
    assert follower.append_as_follower(good + next_one[:-1]) is not None
    assert follower.log_end_offset == 1
    await follower.close()


# Lookup by time: case P07.


@pytest.mark.parametrize("layout", ["four batches", "one batch", "lz4", "many segments"])
async def test_offsets_by_timestamp(layout: str) -> None:
    config = LogConfig(segment_bytes=100) if layout == "many segments" else LogConfig()
    disk = new_disk()
    log = await open_log(disk, config)
    records = [Record(value=b"v", timestamp=time) for time in (2, 4, 6, 8)]
    if layout in ("four batches", "many segments"):
        for record in records:
            log.append_as_leader(encode_batch([record]), leader_epoch=1, now_ms=NOW_MS)
    else:
        codec = Compression.LZ4 if layout == "lz4" else Compression.NONE
        data = encode_batch(records, compression=codec)
        log.append_as_leader(data, leader_epoch=1, now_ms=NOW_MS)
    expected = {0: 0, 1: 0, 2: 0, 3: 1, 4: 1, 5: 2, 6: 2, 7: 3, 8: 3}
    for reopened in (False, True):
        if reopened:
            await log.close()
            log = await open_log(disk, config, clean=True, recovery_point=4)
        for timestamp, offset in expected.items():
            found = log.offset_for_timestamp(timestamp)
            assert found is not None
            assert (found.offset, found.timestamp_ms) == (offset, 2 * offset + 2)
            assert found.leader_epoch == 1
        assert log.offset_for_timestamp(9) is None
        newest = log.offset_of_max_timestamp()
        assert newest is not None
        assert (newest.offset, newest.timestamp_ms) == (3, 8)
        below = log.offset_of_max_timestamp(upper_bound=2)
        if layout in ("four batches", "many segments"):
            assert below is not None
            assert below.offset == 1
        assert log.offset_for_timestamp(6, upper_bound=2) is None
    await log.close()


async def test_a_read_below_what_is_still_held_meets_no_damage() -> None:
    """Found by a random life: after a restart the walk to a batch's end went on into bytes that
    were appended in this turn of the loop and not written yet."""
    disk = new_disk()
    log = await open_log(disk)
    append(log, b"first")
    await log.close()
    log = await open_log(disk, clean=True)
    append(log, b"second")
    found = log.read(0, max_bytes=1, upper_bound=1, at_least_one=True)
    assert (found.base_offset, found.next_offset) == (0, 1)
    assert log.damage is None
    await log.close()
