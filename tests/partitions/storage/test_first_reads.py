"""What an earlier process wrote is tested when it is first read (RULES C1).

Damage below the recovery point is not looked for when a log opens: whoever reads there first meets
it, gets nothing of it, and the log ends there until it is cut.
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable
from itertools import accumulate

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from logboat.partitions.storage import LogConfig, PartitionLog, StorageFailed
from logboat.partitions.storage.first_reads import FirstReads
from logboat.partitions.storage.recovery import DAMAGE_FOUND
from logboat.wire.records import Batch, batches
from tests.partitions.storage.log_scene import (
    EVERYTHING,
    FOLDER,
    NOW_MS,
    append,
    batch,
    new_disk,
    open_log,
)
from tests.seam.memory_disk import Inode, MemoryDisk, MemoryFile

SMALL = LogConfig(segment_bytes=400, index_interval_bytes=100)
COUNT = 24
EPOCH_FIELD = range(12, 16)


def inode(disk: MemoryDisk, name: str) -> Inode:
    found = disk._find(f"{FOLDER}/{name}")
    assert isinstance(found, Inode)
    return found


def files(disk: MemoryDisk, suffix: str = ".log") -> list[str]:
    return sorted(name for name in disk.list(FOLDER) if name.endswith(suffix))


async def stopped_log(disk: MemoryDisk, config: LogConfig = SMALL) -> list[bytes]:
    """Several segments, closed in good order; what their batches were."""
    log = await open_log(disk, config)
    for number in range(COUNT):
        append(log, b"%d" % number, leader_epoch=number // 8)
    await log.wait_synced(COUNT)
    held = readable(log)
    await log.close()
    return held


async def reopened(disk: MemoryDisk, **settings: object) -> PartitionLog:
    return await open_log(disk, SMALL, clean=True, recovery_point=COUNT, **settings)


def readable(log: PartitionLog) -> list[bytes]:
    """Every batch up to the end of the log, or to where it says no."""
    found: list[Batch] = []
    position = 0
    while position < log.log_end_offset:
        try:
            read = log.read(position, max_bytes=250, upper_bound=EVERYTHING, at_least_one=True)
        except StorageFailed:
            break
        assert read.next_offset > position
        for part in read.parts:
            found += batches(part)
        position = read.next_offset
    return [bytes(placed.view) for placed in found]


async def test_c1_a_flipped_bit_is_met_by_the_first_reader_who_gets_nothing_of_it() -> None:
    disk = new_disk()
    held = await stopped_log(disk)
    inode(disk, files(disk)[1]).data[60] ^= 1
    first_lost = int(files(disk)[1].removesuffix(".log"))
    log = await reopened(disk)
    assert log.damage is None
    told: list[int] = []
    log.on_damaged = lambda: told.append(log.log_end_offset)
    assert readable(log) == held[:first_lost]
    assert log.damage is not None
    assert log.damage.offset == first_lost
    assert told == [first_lost]
    assert log.log_end_offset == log.synced_offset == first_lost
    with pytest.raises(StorageFailed):
        append(log, b"more")
    assert readable(log) == held[:first_lost]
    await log.close()


async def test_c1_damage_that_a_reader_found_is_found_again_at_the_next_start() -> None:
    """Also when nobody reads there again: the replica must not come back as if nothing were."""
    disk = new_disk()
    held = await stopped_log(disk)
    inode(disk, files(disk)[2]).data[60] ^= 1
    first_lost = int(files(disk)[2].removesuffix(".log"))
    log = await reopened(disk)
    readable(log)
    await asyncio.sleep(0)
    disk.restart()
    log = await reopened(disk)
    assert log.damage is not None
    assert log.damage.offset == first_lost
    await log.truncate_to(first_lost)
    assert log.damage is None
    assert not disk.exists(f"{FOLDER}/{DAMAGE_FOUND}")
    append(log, b"again", leader_epoch=9)
    await log.wait_synced(first_lost + 1)
    await log.close()
    disk.restart()
    log = await open_log(disk, SMALL, clean=True, recovery_point=first_lost + 1)
    assert log.damage is None
    assert readable(log)[:-1] == held[:first_lost]
    await log.close()


async def test_a_log_with_found_damage_is_cut_while_it_is_open() -> None:
    disk = new_disk()
    held = await stopped_log(disk)
    inode(disk, files(disk)[1]).data[200] ^= 1
    log = await reopened(disk)
    readable(log)
    assert log.damage is not None
    offset = log.damage.offset
    await log.truncate_to(offset)
    assert log.damage is None
    for number in range(offset, COUNT):
        append(log, b"%d" % number, leader_epoch=number // 8)
    await log.wait_synced(COUNT)
    assert readable(log) == held
    await log.close()
    log = await reopened(disk)
    assert readable(log) == held
    await log.close()


async def test_damage_that_begins_earlier_than_was_seen_at_first_is_cut_all_the_same() -> None:
    """A block that went astray hit the end of one batch and the header of the next. The start saw
    the header; where to cut was then looked for behind a batch that is damaged, too, for ever."""
    disk = new_disk()
    held = await stopped_log(disk, LogConfig())
    data = inode(disk, files(disk)[0]).data
    starts = list(accumulate((len(batch) for batch in held), initial=0))
    for position in (starts[6] - 1, starts[6] + 16):
        data[position] ^= 1
    log = await open_log(disk, LogConfig(), recovery_point=COUNT)
    assert log.damage is not None
    assert log.damage.offset == 6
    with pytest.raises(StorageFailed):
        await log.truncate_to(log.damage.offset)
    assert log.damage.offset == 5
    await log.truncate_to(log.damage.offset)
    assert log.damage is None
    assert log.log_end_offset == 5
    assert readable(log) == held[:5]
    await log.close()


async def test_a_damaged_header_is_no_gap_that_compaction_left() -> None:
    """A walk that stops at it must not pass on to the next segment as if nothing were between."""
    disk = new_disk()
    held = await stopped_log(disk)
    data = inode(disk, files(disk)[1]).data
    size = len(held[0])
    data[size + 16] ^= 1  # The magic of the second batch there.
    log = await reopened(disk)
    survivors = readable(log)
    assert survivors == held[: len(survivors)]
    assert log.damage is not None
    assert log.damage.offset == int(files(disk)[1].removesuffix(".log")) + 1
    await log.close()


async def test_an_index_that_leads_astray_is_made_anew_and_nothing_is_lost() -> None:
    disk = new_disk()
    held = await stopped_log(disk)
    for position in (0, 3, 4, 7):
        damaged = inode(disk, files(disk, ".index")[1]).data
        damaged[position] ^= 1
        log = await reopened(disk)
        for _ in range(3):
            found = readable(log)
            assert found == held[: len(found)]
            assert log.damage is None
        for offset in range(COUNT):
            read = log.read(offset, max_bytes=1, upper_bound=EVERYTHING, at_least_one=True)
            assert bytes(b"".join(read.parts)) == held[offset]
        await log.close()


async def test_a_sector_that_cannot_be_read_is_lost_like_a_changed_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    disk = new_disk()
    held = await stopped_log(disk)
    log = await reopened(disk)
    bad = f"{FOLDER}/{files(disk)[1]}"
    plain: Callable[[MemoryFile, int, int], bytes] = MemoryFile.read_at

    def read_at(file: MemoryFile, position: int, length: int) -> bytes:
        if file.path == bad and position <= 100 < position + length:
            raise OSError(errno.EIO, "bad sector", file.path)
        return plain(file, position, length)

    monkeypatch.setattr(MemoryFile, "read_at", read_at)
    survivors = readable(log)
    assert survivors == held[: len(survivors)]
    assert log.damage is not None
    assert 0 < log.damage.offset == len(survivors) <= int(files(disk)[1].removesuffix(".log")) + 1
    await log.close()


async def test_lookups_by_time_meet_damage_too() -> None:
    disk = new_disk()
    await stopped_log(disk)
    inode(disk, files(disk)[1]).data[60] ^= 1
    log = await reopened(disk)
    await log.advance_log_start(int(files(disk)[1].removesuffix(".log")))
    with pytest.raises(StorageFailed):
        log.offset_for_timestamp(NOW_MS)
    assert log.damage is not None
    await log.close()


async def test_a_changed_time_in_a_header_does_not_hide_a_record_from_lookups_by_time() -> None:
    disk = new_disk()
    await stopped_log(disk)
    inode(disk, files(disk)[0]).data[35] ^= 0x80  # In the first batch's largest timestamp.
    log = await reopened(disk)
    with pytest.raises(StorageFailed):
        log.offset_for_timestamp(NOW_MS)
    assert log.damage is not None
    await log.close()


async def test_what_this_process_wrote_is_not_tested_again() -> None:
    """The page cache has it, and the checksum was tested when it came."""
    disk = new_disk()
    log = await open_log(disk, SMALL)
    append(log, b"a")
    await log.wait_synced(1)
    inode(disk, files(disk)[0]).data[60] ^= 1
    assert len(readable(log)) == 1
    assert log.damage is None
    await log.close()


@given(
    number=st.integers(0, 50),
    where=st.floats(0, 1, exclude_max=True),
    bit=st.integers(0, 7),
    block=st.booleans(),
)
@example(number=1, where=0.0, bit=7, block=False).via("a first batch whose offset has fallen")
@example(number=4, where=0.5, bit=0, block=False).via("an offset out of every segment's reach")
@example(number=0, where=0.609375, bit=0, block=False).via("an offset behind what fits in a read")
def test_no_changed_byte_of_a_closed_log_is_ever_handed_out(
    number: int, where: float, bit: int, block: bool
) -> None:
    """Any bit flipped, or any run of 100 bytes that was never written, in any file: a reader gets
    what was written, or is refused."""

    async def play() -> None:
        disk = new_disk()
        held = await stopped_log(disk)
        names = files(disk) + files(disk, "index")
        name = names[number % len(names)]
        data = inode(disk, name).data
        if not data:
            return
        position = int(where * len(data))
        if block:
            end = min(position + 100, len(data))
            data[position:end] = bytes(end - position)
        else:
            data[position] ^= 1 << bit
        log = await reopened(disk)
        for _ in range(3):
            found = readable(log)
            alike = [_without_epoch(one) for one in found]
            assert alike == [_without_epoch(one) for one in held[: len(found)]]
        if log.damage is None:
            # Nor is anybody led past one.
            assert len(readable(log)) == len(held)
        await log.close()

    asyncio.run(play())


async def test_c1_a_batch_that_ends_too_early_is_no_gap_of_compaction() -> None:
    """Whoever asks for one of its later records would else be led past them, to the next batch."""
    for last in (False, True):
        disk = new_disk()
        log = await open_log(disk, LogConfig(compact=True))
        log.append_as_leader(batch(b"0", key=b"k"), leader_epoch=0, now_ms=NOW_MS)
        log.append_as_leader(batch(b"1", b"2", b"3", key=b"k"), leader_epoch=0, now_ms=NOW_MS)
        if not last:
            log.append_as_leader(batch(b"4", key=b"k"), leader_epoch=0, now_ms=NOW_MS)
        end = log.log_end_offset
        await log.close()
        data = inode(disk, files(disk)[0]).data
        second = 12 + int.from_bytes(data[8:12], "big")
        data[second + 23 : second + 27] = bytes(4)  # Its last offset delta.
        log = await open_log(disk, LogConfig(compact=True), clean=True, recovery_point=end)
        if last and log.damage is not None:
            continue  # Seen when it was opened: the log does not end where it did.
        with pytest.raises(StorageFailed):
            log.read(2, max_bytes=1000, upper_bound=EVERYTHING, at_least_one=True)
        assert log.damage is not None
        await log.close()


def _without_epoch(data: bytes) -> bytes:
    """The epoch is outside the checksum: only neighbours can contradict it."""
    return data[: EPOCH_FIELD.start] + data[EPOCH_FIELD.stop :]


def test_one_stretch_of_tested_bytes_is_remembered() -> None:
    reads = FirstReads()
    assert not reads.untested(0, 100)
    reads.foreign_size = 1000
    assert reads.untested(0, 100)
    reads.note_tested(0, 100)
    assert not reads.untested(0, 100)
    assert reads.untested(50, 150)
    reads.note_tested(100, 1200)
    assert not reads.untested(0, 1200)
    reads.cut(500)
    assert not reads.untested(400, 2000)


def test_batches_are_as_long_as_the_scene_believes() -> None:
    assert len(batch(b"1")) < 100
