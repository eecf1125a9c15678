"""Logs in which compaction has left gaps: read, looked up, copied and opened again (case R13)."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from logboat.partitions.storage import LogConfig, OffsetGap, PartitionLog
from logboat.partitions.storage.segment import CLEANED, Segment
from logboat.wire.records import (
    Record,
    batches,
    crc_of,
    decode_records,
    encode_batch,
    parse_header,
)
from logboat.wire.records.batch_header import HEADER
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
from tests.seam.memory_disk import MemoryDisk

COMPACTED = LogConfig(segment_bytes=300, index_interval_bytes=50, compact=True)
NOT_ANY_MORE = LogConfig(segment_bytes=300, index_interval_bytes=50)


def thinned(data: bytes | memoryview, *keep: int, last_offset: int) -> bytes:
    """What compaction makes of a batch: some of its records, the same range of offsets."""
    header = parse_header(data)
    kept = [record for record in decode_records(data) if record.offset in keep]
    body = b"" if not kept else bytes(encode_batch(kept)[61:])
    new = bytearray(
        HEADER.pack(
            *header._replace(
                batch_length=49 + len(body),
                last_offset_delta=last_offset - header.base_offset,
                records_count=len(kept),
            )
        )
    )
    new += body
    new[17:21] = crc_of(new).to_bytes(4, "big")
    return bytes(new)


async def replace(log: PartitionLog, old: Sequence[Segment], pieces: Sequence[bytes]) -> None:
    new = Segment.create(FOLDER, old[0].base_offset, log._files, log.config, NOW_MS, state=CLEANED)
    for piece in pieces:
        header = parse_header(piece)
        new.file().append([piece])
        new.note(header.last_offset, header.size, header.max_timestamp)
    assert await log.replace_segments(old, new)


async def gapped_log(disk: MemoryDisk, layout: str) -> PartitionLog:
    """Offsets 3 to 15 are gone; 16 to 19 follow, one batch each."""
    log = await open_log(disk, COMPACTED)
    append(log, *[b"%d" % n for n in range(16)], key=b"k")
    for number in range(16, 20):
        append(log, b"%d" % number + bytes(100), key=b"k")
    await log.wait_synced(20)
    old = log.synced_segments[:1]
    assert old[0].next_offset == 16
    (first,) = (entry.view for entry in read_all(log) if entry.header.base_offset == 0)
    if layout == "a long last offset":
        await replace(log, old, [thinned(first, 0, 1, 2, last_offset=15)])
    else:
        await replace(log, old, [thinned(first, 0, 1, 2, last_offset=2)])
    return log


LAYOUTS = ["a long last offset", "a batch is gone"]


@pytest.mark.parametrize("reopened", [False, True])
@pytest.mark.parametrize("layout", LAYOUTS)
async def test_r13_a_reader_moves_on_past_a_gap(layout: str, reopened: bool) -> None:
    disk = new_disk()
    log = await gapped_log(disk, layout)
    if reopened:
        await log.close()
        log = await open_log(disk, COMPACTED, clean=True, recovery_point=20)
    for offset in (3, 9, 15, 16):
        position, seen, reads = offset, [], 0
        while position < 20:
            found = log.read(position, max_bytes=1, upper_bound=EVERYTHING, at_least_one=True)
            (read,) = batches(found.parts[0])
            assert read.header.last_offset >= position, "or the client throws it away for ever"
            assert found.next_offset > position
            position = found.next_offset
            seen += [r.offset for r in decode_records(read.view) if r.offset >= offset]
            reads += 1
        assert seen == [16, 17, 18, 19]
        assert reads <= 5
    assert log.log_start_offset == 0
    await log.close()


@pytest.mark.parametrize("layout", LAYOUTS)
async def test_a_log_once_compacted_opens_when_its_topic_is_no_longer(layout: str) -> None:
    disk = new_disk()
    log = await gapped_log(disk, layout)
    held = contents(log)
    await log.close()
    for clean in (True, False):
        log = await open_log(disk, NOT_ANY_MORE, clean=clean, recovery_point=20, compacted=True)
        assert log.damage is None
        assert contents(log) == held
        await log.close()


async def test_in_a_compacted_log_too_what_was_not_synced_may_be_torn() -> None:
    """A gap beyond the recovery point was never compaction's work."""
    disk = new_disk()
    log = await open_log(disk, COMPACTED)
    for number in range(12):
        append(log, b"%d" % number + bytes(60), key=b"k")
    await log.wait_synced(12)
    held, bases = contents(log), log.segment_base_offsets
    await log.close()
    first = disk.open(f"{FOLDER}/{bases[0]:020d}.log")
    first.write_at(0, bytes(first.size()))
    log = await open_log(disk, COMPACTED, compacted=True)
    assert contents(log) == []
    assert log.log_end_offset == 0
    await log.close()
    assert held


async def test_a_missing_segment_is_damage_where_nothing_was_ever_compacted() -> None:
    disk = new_disk()
    log = await open_log(disk, NOT_ANY_MORE)
    for number in range(12):
        append(log, b"%d" % number + bytes(60))
    await log.wait_synced(12)
    bases = log.segment_base_offsets
    await log.close()
    disk.remove(f"{FOLDER}/{bases[1]:020d}.log")
    log = await open_log(disk, NOT_ANY_MORE, clean=True, recovery_point=12)
    assert log.damage is not None
    assert log.damage.offset == bases[1]
    await log.close()


@pytest.mark.parametrize("layout", LAYOUTS)
async def test_a_follower_copies_the_gaps_of_what_is_committed(layout: str) -> None:
    """Also when the topic is no longer compacted, and opens again with them."""
    leader = await gapped_log(new_disk(), layout)
    data = b"".join(data for _, data in contents(leader))
    disk = new_disk()
    follower = await open_log(disk, NOT_ANY_MORE)
    if layout == "a batch is gone":
        with pytest.raises(OffsetGap):
            follower.append_as_follower(data, committed=15)
    follower.append_as_follower(data, committed=16)
    await follower.wait_synced(20)
    assert contents(follower) == contents(leader)
    bases = follower.segment_base_offsets
    await follower.close()
    for clean in (True, False):
        follower = await open_log(
            disk, NOT_ANY_MORE, clean=clean, recovery_point=20 if clean else 0
        )
        assert follower.damage is None
        assert follower.segment_base_offsets == bases
        assert contents(follower) == contents(leader)
        await follower.close()
    await leader.close()


async def test_lookups_by_time_pass_over_what_compaction_emptied() -> None:
    disk = new_disk()
    log = await open_log(disk, COMPACTED)
    for time in (100, 500, 200, 300):
        log.append_as_leader(
            encode_batch([Record(key=b"k", value=bytes(60), timestamp=time)]),
            leader_epoch=0,
            now_ms=NOW_MS,
        )
    for _ in range(3):
        append(log, bytes(60), key=b"k", timestamp=50)
    await log.wait_synced(7)
    old = log.synced_segments
    held = [
        data for _, data in contents(log) if parse_header(data).base_offset < old[-1].next_offset
    ]
    pieces = [
        thinned(data, last_offset=1) if parse_header(data).base_offset == 1 else data
        for data in held
    ]
    await replace(log, old, pieces)
    for reopened in (False, True):
        if reopened:
            await log.close()
            log = await open_log(disk, COMPACTED, clean=True, recovery_point=7)
        found = log.offset_for_timestamp(150)
        assert found is not None
        assert (found.offset, found.timestamp_ms) == (2, 200)
        assert log.offset_for_timestamp(301) is None
        newest = log.offset_of_max_timestamp()
        assert newest is not None
        assert (newest.offset, newest.timestamp_ms) == (3, 300)
        empty = log.read(1, max_bytes=1, upper_bound=EVERYTHING, at_least_one=True)
        assert empty.next_offset == 2
    await log.close()


async def test_the_newest_record_below_a_bound_or_above_the_start() -> None:
    log = await open_log(new_disk(), LogConfig(index_interval_bytes=100))
    times = [10, 20, 90, 30, 40, 80, 50, 60]
    for time in times:
        log.append_as_leader(batch(bytes(40), timestamp=time), leader_epoch=0, now_ms=NOW_MS)
    for bound in range(1, 9):
        found = log.offset_of_max_timestamp(upper_bound=bound)
        assert found is not None
        expected = max(times[:bound])
        assert (found.offset, found.timestamp_ms) == (times.index(expected), expected)
    for start in range(1, 8):
        await log.advance_log_start(start)
        found = log.offset_of_max_timestamp()
        assert found is not None
        expected = max(times[start:])
        assert (found.offset, found.timestamp_ms) == (times.index(expected), expected)
    await log.close()
