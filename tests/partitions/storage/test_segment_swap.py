"""Compacted segments take the place of the old ones whole; removed ones are freed later."""

from __future__ import annotations

import asyncio
import contextlib
import errno
from random import Random
from typing import get_args

import pytest

from logboat.partitions.storage import LogConfig, PartitionLog, StorageFailed
from logboat.partitions.storage.segment import CLEANED, Segment
from tests.partitions.storage.log_scene import (
    FOLDER,
    NOW_MS,
    append,
    contents,
    new_disk,
    open_log,
)
from tests.seam.memory_disk import Crashed, Loss, MemoryDisk

CONFIG = LogConfig(segment_bytes=200, index_interval_bytes=50, compact=True)
Contents = list[tuple[int, bytes]]


async def log_of(disk: MemoryDisk, count: int) -> PartitionLog:
    log = await open_log(disk, CONFIG)
    for number in range(count):
        append(log, b"%03d" % number, key=b"k", leader_epoch=1)
    await log.wait_synced(count)
    return log


def cleaned(log: PartitionLog, disk: MemoryDisk, old: list[Segment]) -> Segment:
    """A segment with every second batch of `old`."""
    new = Segment.create(FOLDER, old[0].base_offset, log._files, log.config, NOW_MS, state=CLEANED)
    for segment in old:
        for place in segment.scan():
            if place.header.base_offset % 2 == 0:
                new.file().append([segment.read_batch(place)])
                new.note(place.header.last_offset, place.header.size, place.header.max_timestamp)
    return new


def halved(held: Contents, old: list[Segment]) -> Contents:
    low, high = old[0].base_offset, old[-1].next_offset
    return [entry for entry in held if not (low <= entry[0] < high and entry[0] % 2)]


async def test_a_swap_changes_what_is_read_and_nothing_else() -> None:
    disk = new_disk()
    log = await log_of(disk, 12)
    held, old = contents(log), list(log.synced_segments[:3])
    assert await log.replace_segments(old, cleaned(log, disk, old))
    assert contents(log) == halved(held, old)
    assert log.log_start_offset == 0
    append(log, b"next", key=b"k", leader_epoch=1)
    await log.close()
    log = await open_log(disk, CONFIG, clean=True, recovery_point=13)
    assert contents(log)[:-1] == halved(held, old)
    assert log.damage is None
    await log.close()


async def test_a_swap_is_refused_when_what_it_replaces_is_gone() -> None:
    disk = new_disk()
    log = await log_of(disk, 12)
    old = list(log.synced_segments[:3])
    new = cleaned(log, disk, old)
    await log.advance_log_start(old[0].next_offset)
    held = contents(log)
    assert not await log.replace_segments(old, new)
    assert contents(log) == held
    assert not [name for name in disk.list(FOLDER) if name.endswith(CLEANED)]
    await log.close()


async def test_a_cancelled_cleaner_leaves_no_half_made_swap() -> None:
    disk = new_disk()
    log = await log_of(disk, 12)
    held, old = contents(log), list(log.synced_segments[:3])
    cleaner = asyncio.ensure_future(log.replace_segments(old, cleaned(log, disk, old)))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    cleaner.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await cleaner
    await log.close()
    assert not [name for name in disk.list(FOLDER) if name.endswith((".cleaned", ".swap"))]
    log = await open_log(disk, CONFIG, clean=True, recovery_point=12)
    assert contents(log) == halved(held, old)
    await log.close()


@pytest.mark.parametrize("loss", [None, *get_args(Loss)])
async def test_a_crash_at_any_step_of_a_swap_leaves_the_old_or_the_new(loss: Loss | None) -> None:
    seen_old = seen_new = False
    for step in range(1, 200):
        disk = new_disk()
        log = await log_of(disk, 12)
        await asyncio.sleep(0)
        held, old = contents(log), list(log.synced_segments[:3])
        new = halved(held, old)
        crash_at = disk.steps + step
        disk.crash_at = crash_at
        done = False
        with contextlib.suppress(Crashed, BaseExceptionGroup, AssertionError):
            done = await log.replace_segments(old, cleaned(log, disk, old))
        finished = not disk.dead
        if loss is None:
            disk.restart()
        else:
            disk.power_loss(Random(step), loss)
        again = await open_log(disk, CONFIG, recovery_point=12)
        assert again.damage is None
        found = contents(again)
        assert found in ([new] if done else [held, new]), f"step {step}"
        seen_old |= found == held
        seen_new |= found == new
        append(again, b"next", key=b"k", leader_epoch=1)
        await again.close()
        names = disk.list(FOLDER)
        assert not [name for name in names if name.endswith((".cleaned", ".swap", ".deleted"))]
        if finished:
            break
    else:
        pytest.fail("the swap never ended")
    assert seen_old
    assert seen_new


async def test_removed_segments_are_freed_after_the_delay() -> None:
    disk = new_disk()
    log = await log_of(disk, 12)
    log.update_config(LogConfig(segment_bytes=200, compact=True, file_delete_delay_ms=20))
    begun = asyncio.get_running_loop().time()
    await log.advance_log_start(7)
    doomed = [name for name in disk.list(FOLDER) if name.endswith(".log.deleted")]
    assert len(doomed) == 3
    freeing = log._deletes._task
    assert freeing is not None
    await freeing
    assert asyncio.get_running_loop().time() >= begun + 0.02
    assert not any(name.endswith(".deleted") for name in disk.list(FOLDER))
    await log.close()


async def test_what_waited_to_be_freed_at_the_end_is_freed_at_the_next_start() -> None:
    disk = new_disk()
    log = await log_of(disk, 12)
    await log.advance_log_start(7)
    held = contents(log)
    await log.close()
    assert any(name.endswith(".deleted") for name in disk.list(FOLDER))
    log = await open_log(disk, CONFIG, clean=True, recovery_point=12, log_start_offset=7)
    assert not any(name.endswith(".deleted") for name in disk.list(FOLDER))
    assert contents(log) == held
    await log.close()


def refusing(disk: MemoryDisk, *suffixes: str) -> None:
    """Names that end like these cannot be given, or taken away."""
    disk.fail = lambda kind, path: (
        errno.EIO if kind in ("rename", "remove") and path.endswith(suffixes) else None
    )


async def test_a_log_whose_swap_waits_for_the_disk_is_read_and_written() -> None:
    disk = new_disk()
    log = await log_of(disk, 12)
    held, old = contents(log), list(log.synced_segments[:3])
    refusing(disk, ".index")
    with pytest.raises(OSError, match="injected"):
        await log.replace_segments(old, cleaned(log, disk, old))
    assert log.swap_unfinished
    assert contents(log) == halved(held, old)
    append(log, b"next", key=b"k", leader_epoch=1)
    await log.wait_synced(13)
    await log.advance_log_start(old[-1].next_offset)
    assert log.synced_segments[0].base_offset == 0, "gone before the swap"
    disk.fail = None
    async with asyncio.timeout(30):
        while log.swap_unfinished:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    assert log.synced_segments[0].base_offset == old[-1].next_offset
    assert [offset for offset, _ in contents(log)] == [*range(old[-1].next_offset, 13)]
    await log.close()
    assert not [name for name in disk.list(FOLDER) if name.endswith((".cleaned", ".swap"))]


async def test_what_compaction_could_not_remove_does_not_undo_a_later_swap() -> None:
    """A start that finds a `.cleaned` log drops every `.swap`, and the old ones are gone."""
    disk = new_disk()
    log = await log_of(disk, 12)
    held, old = contents(log), list(log.synced_segments[:3])
    left_over = Segment.create(
        FOLDER, old[1].base_offset, log._files, log.config, NOW_MS, state=CLEANED
    )
    assert disk.exists(left_over.log_path)
    refusing(disk, ".log")  # The swap is decided, the old ones are removed, it has no name yet.
    with pytest.raises(OSError, match="injected"):
        await log.replace_segments(old, cleaned(log, disk, old))
    disk.fail = None
    disk.power_loss(Random(1), "all")
    again = await open_log(disk, CONFIG, recovery_point=12)
    assert again.damage is None
    assert contents(again) == halved(held, old)
    await again.close()


async def test_a_swap_is_given_up_when_damage_is_met_while_it_is_made() -> None:
    disk = new_disk()
    log = await log_of(disk, 12)
    old = list(log.synced_segments[:3])
    new = cleaned(log, disk, old)

    def meet_damage() -> None:
        disk.on_wait = None
        log._end_damaged(1, "met by a reader")

    disk.on_wait = meet_damage
    assert not await log.replace_segments(old, new)
    assert log.segment_base_offsets == tuple(segment.base_offset for segment in old[:2])
    assert not [name for name in disk.list(FOLDER) if name.endswith((".cleaned", ".swap"))]
    await log.close()


async def test_d6_a_log_whose_swap_waits_is_not_cut_before() -> None:
    disk = new_disk()
    log = await log_of(disk, 12)
    old = list(log.synced_segments[1:3])
    refusing(disk, ".index")
    with pytest.raises(OSError, match="injected"):
        await log.replace_segments(old, cleaned(log, disk, old))
    held = contents(log)
    with pytest.raises(StorageFailed, match="is not cut"):
        await log.truncate_to(old[0].base_offset)
    assert contents(log) == held
    assert log.half_cut is None
    append(log, b"next", key=b"k", leader_epoch=1)
    disk.fail = None
    await log.truncate_to(old[0].base_offset)
    assert not log.swap_unfinished
    assert contents(log) == held[: old[0].base_offset]
    disk.power_loss(Random(1), "all")
    again = await open_log(disk, CONFIG, recovery_point=old[0].base_offset)
    assert again.damage is None
    assert contents(again) == held[: old[0].base_offset]
    await again.close()
