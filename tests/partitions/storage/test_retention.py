"""Old records go by time, by size and on request: whole segments, committed, oldest first."""

from __future__ import annotations

import asyncio
import errno
import logging
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logboat.partitions.storage import LogConfig, PartitionLog, RecordsRejected
from logboat.partitions.storage.retention import Outlived, outlived
from logboat.wire import ErrorCode
from tests.partitions.storage.log_scene import (
    FOLDER,
    NOW_MS,
    TestClock,
    append,
    contents,
    new_disk,
    open_log,
)
from tests.seam.memory_disk import MemoryDisk

NEVER = 2**63 - 1


@dataclass
class Piece:
    base_offset: int
    next_offset: int
    size: int
    newest: int

    def newest_ms(self) -> int:
        return self.newest


def pieces(*newest: int, size: int = 100) -> list[Piece]:
    return [Piece(10 * n, 10 * n + 10, size, time) for n, time in enumerate(newest)]


def judged(segments: list[Piece], **settings: Any) -> Outlived:
    where = {
        "log_start_offset": settings.pop("log_start_offset", 0),
        "high_watermark": settings.pop("high_watermark", segments[-1].next_offset),
        "now_ms": settings.pop("now_ms", 1000),
    }
    settings = {"retention_ms": -1, **settings}
    return outlived(segments, LogConfig(**settings), **where)


def test_segments_older_than_retention_ms_go() -> None:
    assert judged(pieces(100, 200, 900), retention_ms=700).count == 2
    assert judged(pieces(100, 300, 900), retention_ms=700).count == 1, "700 ms old is not older"
    assert judged(pieces(100, 200, 300), retention_ms=-1).count == 0


def test_all_go_by_age_the_last_one_included() -> None:
    assert judged(pieces(1, 2, 3), retention_ms=10).count == 3
    empty = [*pieces(1, 2), Piece(20, 20, 0, 3)]
    assert judged(empty, retention_ms=10).count == 2, "an empty last segment stays"


def test_size_goes_down_to_what_is_allowed_and_not_below() -> None:
    assert judged(pieces(1, 1, 1, 1), retention_bytes=250).by_size == 1
    assert judged(pieces(1, 1, 1, 1), retention_bytes=200).by_size == 2
    assert judged(pieces(1, 1, 1, 1), retention_bytes=0).by_size == 4
    assert judged(pieces(1, 1, 1, 1), retention_bytes=-1).by_size == 0


def test_nothing_at_or_above_the_high_watermark_goes() -> None:
    segments = pieces(1, 1, 1, 1)
    for watermark in range(41):
        by_age = judged(segments, retention_ms=10, high_watermark=watermark)
        by_size = judged(segments, retention_bytes=0, high_watermark=watermark)
        assert by_age.count == by_size.count == watermark // 10


def test_what_lies_below_the_start_goes_whatever_the_policy() -> None:
    segments = pieces(NEVER, NEVER, 1, 1)
    for policy in ({}, {"compact": True, "delete": False}):
        found = judged(segments, log_start_offset=25, **policy)
        assert (found.count, found.below_start) == (2, 2)
    assert judged(segments, log_start_offset=40).count == 3, "the last one is still of use"


def test_a_topic_that_is_only_compacted_keeps_its_old_records() -> None:
    found = judged(pieces(1, 1), compact=True, delete=False, retention_ms=1, retention_bytes=1)
    assert found.count == 0
    assert judged(pieces(1, 1), compact=True, delete=True, retention_ms=1).count == 2


def test_r09_a_record_from_the_future_blocks_age_but_not_size_nor_the_log_start() -> None:
    """Case R09."""
    segments = pieces(1, 2, 5000, 3, 4)
    by_age = judged(segments, retention_ms=100)
    assert (by_age.count, by_age.blocked_by_future) == (2, 20)
    assert judged(segments, retention_ms=100, retention_bytes=100).count == 5
    assert judged(segments, retention_ms=100, log_start_offset=30).count == 5
    assert judged(pieces(1, 2), retention_ms=100).blocked_by_future is None


@given(
    newest=st.lists(st.integers(0, 2000), min_size=1, max_size=8),
    retention_ms=st.integers(-1, 2000),
    retention_bytes=st.integers(-1, 900),
    watermark=st.integers(0, 80),
    start=st.integers(0, 80),
)
def test_what_goes_is_a_prefix_below_the_watermark_and_there_is_a_reason_for_each(
    newest: list[int], retention_ms: int, retention_bytes: int, watermark: int, start: int
) -> None:
    segments = pieces(*newest)
    config = LogConfig(retention_ms=retention_ms, retention_bytes=retention_bytes)
    found = outlived(
        segments, config, log_start_offset=start, high_watermark=watermark, now_ms=1000
    )
    assert found.count == found.below_start + found.by_size + found.by_age
    total = sum(piece.size for piece in segments)
    for number, piece in enumerate(segments[: found.count]):
        assert piece.next_offset <= watermark
        below = piece.next_offset <= start
        old = retention_ms >= 0 and 1000 - piece.newest > retention_ms
        large = retention_bytes >= 0 and total - 100 * number >= retention_bytes + 100
        assert below or old or large


# With a log.


async def aged_log(disk: MemoryDisk, config: LogConfig, clock: TestClock) -> PartitionLog:
    """Twelve records, one every second, four to a segment."""
    log = await open_log(disk, config, clock=clock)
    for number in range(12):
        append(log, b"%03d" % number, timestamp=clock.now, now_ms=clock.now, leader_epoch=number)
        clock.now += 1000
    await log.wait_synced(12)
    return log


def bases(disk: MemoryDisk, suffix: str = ".log") -> list[int]:
    names = [name for name in disk.list(FOLDER) if name.endswith(suffix)]
    return [int(name.partition(".")[0]) for name in names]


async def test_retention_moves_the_start_and_what_depends_on_it() -> None:
    disk, clock = new_disk(), TestClock()
    config = LogConfig(segment_ms=3500, retention_ms=9000)
    log = await aged_log(disk, config, clock)
    assert bases(disk) == [0, 4, 8]
    held = contents(log)
    assert (await log.delete_outlived(high_watermark=12)).count == 0
    clock.now += 2000
    assert (await log.delete_outlived(high_watermark=3)).count == 0
    assert (await log.delete_outlived(high_watermark=12)).by_age == 1
    assert log.log_start_offset == 4
    assert contents(log) == held[4:]
    assert log.epochs.entries[0].start_offset == 4
    assert bases(disk) == [4, 8]
    assert bases(disk, ".log.deleted") == [0]
    await log.close()


async def test_when_all_is_old_an_empty_segment_takes_over() -> None:
    disk, clock = new_disk(), TestClock()
    log = await aged_log(disk, LogConfig(segment_ms=3500, retention_ms=1000), clock)
    clock.now += 1_000_000
    assert (await log.delete_outlived(high_watermark=12)).count == 3
    assert log.log_start_offset == log.log_end_offset == 12
    await log.wait_synced(12)
    appended = append(log, b"next", leader_epoch=12, now_ms=clock.now)
    assert appended.base_offset == 12
    await log.wait_synced(13)
    assert bases(disk) == [12]
    await log.close()
    log = await open_log(disk, recovery_point=13)
    assert (log.log_start_offset, log.log_end_offset) == (12, 13)
    await log.close()


async def test_r09_a_record_from_the_future_is_named_in_a_warning_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Case R09."""
    clock = TestClock()
    config = LogConfig(segment_ms=3500, retention_ms=1000, timestamp_after_max_ms=NEVER)
    log = await open_log(new_disk(), config, clock=clock)
    ten_years = 10 * 365 * 24 * 3_600_000
    append(log, b"past", timestamp=NOW_MS)
    append(log, b"later", timestamp=NOW_MS + 4000)
    append(log, b"future", timestamp=NOW_MS + ten_years)
    append(log, b"microseconds", timestamp=NOW_MS * 1000)
    append(log, b"now", timestamp=NOW_MS + 5000)
    await log.wait_synced(5)
    assert len(log.segment_base_offsets) == 4
    clock.now += 60_000
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            await log.delete_outlived(high_watermark=5)
    assert log.log_start_offset == 2, "earlier segments go"
    assert [r.getMessage() for r in caplog.records if "future" in r.getMessage()] == [
        "topic-0: segment 2 holds a record from the future: it and those behind it are not "
        "deleted by age (retention.ms)"
    ]
    await log.advance_log_start(4)
    assert log.log_start_offset == 4
    await log.close()


@pytest.mark.parametrize(
    "timestamp", [NOW_MS + 2 * 3_600_000, NOW_MS * 1000], ids=["two hours", "microseconds"]
)
async def test_r09_a_record_from_the_future_is_refused_by_default(timestamp: int) -> None:
    """Case R09: `message.timestamp.after.max.ms` is an hour since Kafka 4."""
    log = await open_log(new_disk())
    with pytest.raises(RecordsRejected) as caught:
        append(log, b"future", timestamp=timestamp)
    assert caught.value.error is ErrorCode.INVALID_TIMESTAMP
    await log.close()


async def test_r09_records_without_a_timestamp_age_from_when_they_were_written() -> None:
    """Case R09: neither expired at once nor kept for ever, a restart changes nothing."""
    disk, clock = new_disk(), TestClock()
    disk.now_ms = clock.now
    config = LogConfig(segment_bytes=100, retention_ms=60_000)
    log = await open_log(disk, config, clock=clock)
    for _ in range(4):
        append(log, b"value", timestamp=-1)
    await log.wait_synced(4)
    clock.now += 50_000
    assert (await log.delete_outlived(high_watermark=4)).count == 0
    await log.close()
    disk.now_ms = clock.now
    log = await open_log(disk, config, clock=clock, clean=True, recovery_point=4)
    clock.now += 20_000
    assert (await log.delete_outlived(high_watermark=4)).count >= 3
    await log.close()


async def test_o03_retention_frees_space_while_the_disk_is_full() -> None:
    """Case O03."""
    disk, clock = new_disk(), TestClock()
    config = LogConfig(segment_ms=3500, retention_ms=9000, file_delete_delay_ms=0)
    log = await aged_log(disk, config, clock)

    def no_room(kind: str, path: str) -> int | None:
        full = kind in ("append", "create", "write_at") or path.endswith(".deleted")
        return errno.ENOSPC if full and kind != "remove" else None

    clock.now += 10_000
    disk.fail = no_room
    await log.delete_outlived(high_watermark=12)
    assert log.log_start_offset == 8
    assert bases(disk) == [8]
    assert not bases(disk, ".log.deleted")
    disk.fail = None
    await asyncio.sleep(0)
    assert append(log, b"on", leader_epoch=12).base_offset == 12
    await log.wait_synced(13)
    await log.close()


async def test_what_was_just_rolled_goes_after_its_sync() -> None:
    disk, clock = new_disk(), TestClock()
    log = await aged_log(disk, LogConfig(segment_ms=3500, retention_ms=1000), clock)
    clock.now += 1_000_000
    append(log, b"newer", leader_epoch=12, timestamp=clock.now, now_ms=clock.now)
    await log.delete_outlived(high_watermark=12)
    assert log.log_start_offset == 12
    assert list(log.segment_base_offsets) == [8, 12], "8 is still to be synced"
    await log.wait_synced(13)
    assert list(log.segment_base_offsets) == [12]
    await log.close()
