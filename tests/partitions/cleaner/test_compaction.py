"""Compaction of a log, in Kafka's words (LogCleaner): what goes, and what stays."""

from __future__ import annotations

import asyncio
import errno
from dataclasses import replace

import pytest

from logboat.partitions.storage import StorageFailed
from logboat.partitions.storage.checkpoints import CLEANED_OFFSETS
from logboat.partitions.storage.cleaner import CleanerSettings
from logboat.partitions.storage.cleaner.key_map import ENTRY_BYTES
from logboat.partitions.storage.errors import RecordsDamaged
from logboat.wire.compression import Compression
from logboat.wire.records import (
    HEADER_SIZE,
    Record,
    batches,
    crc_of,
    decode_records,
    encode_batch,
)
from tests.partitions.cleaner.compaction_scene import CONFIG, HOUR, ROOT, TOPIC_ID, Scene
from tests.seam.memory_disk import Inode

LARGE = replace(CONFIG, segment_bytes=1 << 20)


async def cleaned(scene: Scene) -> bool:
    """Roll, so that all that was written may be cleaned, and do one round."""
    scene.roll()
    scene.put(("active", "x"))
    return await scene.clean()


async def test_the_newest_record_of_each_key_stays_at_its_offset() -> None:
    scene = await Scene.begin()
    for number in range(20):
        scene.put(("a", f"a{number}"), (f"k{number}", "once"))
    before = {record.offset: record for record in scene.records()}
    assert await cleaned(scene)
    assert scene.offsets() == [*range(1, 38, 2), 38, 39, 40]
    for record in scene.records()[:-1]:
        assert record == before[record.offset]
    await scene.close()


async def test_every_offset_can_be_read_whether_its_record_is_there_or_not() -> None:
    scene = await Scene.begin()
    for number in range(30):
        scene.put(("a" if number % 3 else f"k{number}", str(number)))
    assert await cleaned(scene)
    left = [batch.header.base_offset for batch in scene.batches()]
    for offset in range(scene.log.log_end_offset):
        found = scene.log.read(offset, max_bytes=1, upper_bound=1 << 60, at_least_one=True)
        assert found.base_offset == min(there for there in left if there >= offset)
    await scene.close()


async def test_the_active_segment_is_never_cleaned() -> None:
    scene = await Scene.begin(LARGE)
    for number in range(20):
        scene.put(("a", str(number)))
    assert not await scene.clean()
    assert len(scene.offsets()) == 20
    await scene.close()


async def test_nothing_at_or_above_the_high_watermark_is_cleaned() -> None:
    scene = await Scene.begin()
    for number in range(40):
        scene.put(("a", str(number)))
        scene.roll()
    scene.high_watermark = 20
    assert await scene.clean()
    assert scene.offsets() == list(range(19, 40))
    await scene.close()


async def test_s10_nothing_from_an_open_transaction_on_is_cleaned() -> None:
    scene = await Scene.begin()
    for number in range(10):
        scene.put(("a", str(number)))
        scene.roll()
    scene.put(("b", "open"), producer_id=5, producer_epoch=0, base_sequence=0, transactional=True)
    for number in range(10):
        scene.roll()
        scene.put(("a", str(number)))
    assert await scene.clean()
    assert scene.offsets() == list(range(9, 21))
    await scene.close()


# Tombstones.


async def test_a_tombstone_stays_for_delete_retention_after_the_round_that_first_met_it() -> None:
    scene = await Scene.begin(LARGE)
    scene.put(("a", "1"), ("b", "1"))
    scene.put(("a", None), ("c", "1"))
    assert await cleaned(scene)
    (tombstone,) = [batch for batch in scene.batches() if batch.header.last_offset == 3]
    assert tombstone.header.has_delete_horizon
    assert tombstone.header.base_timestamp == scene.clock.now + HOUR
    assert scene.offsets() == [1, 2, 3, 4]
    horizon = tombstone.header.base_timestamp
    written = scene.records()

    scene.clock.now = horizon - 1
    assert await cleaned(scene)
    assert [batch.header.base_timestamp for batch in scene.batches()][1] == horizon
    assert scene.records()[:3] == written[:3], "timestamps of records do not change"

    scene.clock.now = horizon
    assert await cleaned(scene)
    assert scene.offsets() == [1, 3, 5, 6], "the tombstone is gone, and nothing came back"
    await scene.close()


async def test_a_value_written_after_a_tombstone_replaces_it() -> None:
    scene = await Scene.begin(LARGE)
    scene.put(("a", "1"))
    scene.put(("a", None))
    scene.put(("a", "2"))
    assert await cleaned(scene)
    assert [record.value for record in scene.records()] == [b"2", b"x"]
    await scene.close()


# Batches.


@pytest.mark.parametrize("codec", list(Compression))
async def test_a_batch_keeps_its_offsets_sequences_epoch_and_codec(codec: Compression) -> None:
    scene = await Scene.begin(LARGE)
    records = [Record(key=b"k%d" % (n % 4), value=b"v" * 50, timestamp=100 + n) for n in range(8)]
    scene.append(
        encode_batch(
            records,
            compression=codec,
            producer_id=9,
            producer_epoch=2,
            base_sequence=70,
            leader_epoch=3,
        ),
        leader_epoch=3,
    )
    scene.put(("k3", "newer"))
    before = scene.batches()[0].header
    assert await cleaned(scene)
    first = scene.batches()[0]
    after = first.header
    assert [record.offset for record in decode_records(first.view)] == [4, 5, 6]
    assert [record.timestamp for record in decode_records(first.view)] == [104, 105, 106]
    assert after.records_count == 3
    assert (after.base_offset, after.last_offset_delta) == (0, 7)
    assert (after.base_timestamp, after.max_timestamp) == (104, 106)
    assert after.crc == crc_of(first.view)
    assert before._replace(
        batch_length=0, crc=0, records_count=0, base_timestamp=0, max_timestamp=0
    ) == after._replace(batch_length=0, crc=0, records_count=0, base_timestamp=0, max_timestamp=0)
    await scene.close()


async def test_a_record_without_a_key_goes() -> None:
    """It was written before the topic was compacted."""
    scene = await Scene.begin(LARGE)
    scene.append(encode_batch([Record(key=None, value=b"x", timestamp=1)]), from_client=False)
    scene.put(("a", "1"))
    assert await cleaned(scene)
    assert scene.offsets() == [1, 2]
    await scene.close()


async def test_a_user_key_of_a_markers_bytes_is_a_key_like_others() -> None:
    """KAFKA-14055: a marker is not judged by its key."""
    scene = await Scene.begin(LARGE)
    marker_key = b"\x00\x00\x00\x01"
    scene.put(("t", "1"), producer_id=5, producer_epoch=0, base_sequence=0, transactional=True)
    scene.end_transaction(5, commit=True)
    scene.append(encode_batch([Record(key=marker_key, value=b"user", timestamp=1)]))
    assert await cleaned(scene)
    assert [batch.header.is_control for batch in scene.batches()] == [False, True, False, False]
    assert scene.records()[1].value == b"user"
    await scene.close()


# Which log, and how far.


async def test_a_log_waits_until_its_dirty_part_is_large_enough() -> None:
    config = replace(CONFIG, min_cleanable_dirty_ratio=0.5)
    scene = await Scene.begin(config)
    for number in range(40):
        scene.put((f"k{number}", "x" * 50))
    assert await cleaned(scene)
    for number in range(10):
        scene.put((f"k{number}", "y" * 50))
    assert not await cleaned(scene)
    for number in range(60):
        scene.put((f"k{number % 40}", "z" * 50))
    assert await cleaned(scene)
    await scene.close()


async def test_a_record_older_than_max_compaction_lag_does_not_wait() -> None:
    config = replace(CONFIG, min_cleanable_dirty_ratio=1.0, max_compaction_lag_ms=HOUR)
    scene = await Scene.begin(config)
    for number in range(20):
        scene.put(("a", str(number)))
    assert not await cleaned(scene)
    scene.clock.now += HOUR + 20
    assert await scene.clean()
    assert len(scene.offsets()) == 2
    await scene.close()


async def test_a_record_younger_than_min_compaction_lag_stays() -> None:
    scene = await Scene.begin(replace(CONFIG, min_compaction_lag_ms=HOUR))
    for number in range(4):
        scene.put(("a", str(number)))
    scene.roll()
    scene.clock.now += HOUR + 10
    for number in range(4):
        scene.put(("a", str(number)))
    assert await cleaned(scene)
    assert scene.offsets() == [3, 4, 5, 6, 7, 8]
    await scene.close()


async def test_a_map_that_is_full_ends_the_round_and_the_next_goes_on_there() -> None:
    scene = await Scene.begin()
    scene.settings = CleanerSettings(dedupe_buffer_bytes=7 * ENTRY_BYTES)
    for number in range(40):
        scene.put((f"k{number % 20}", str(number)))
    scene.roll()
    scene.put(("active", "x"))
    rounds = 0
    while await scene.clean():
        rounds += 1
    assert rounds > 2
    assert scene.offsets() == list(range(20, 41))
    await scene.close()


async def test_a_batch_with_more_keys_than_the_map_holds_is_cleaned_all_the_same() -> None:
    scene = await Scene.begin(LARGE)
    scene.settings = CleanerSettings(dedupe_buffer_bytes=2 * ENTRY_BYTES)
    for _ in range(3):
        scene.put(*((f"k{number}", "x") for number in range(20)))
    scene.roll()
    scene.put(("active", "x"))
    while await scene.clean():
        pass
    assert scene.offsets() == list(range(40, 61))
    await scene.close()


async def test_small_segments_become_one() -> None:
    scene = await Scene.begin()
    for number in range(60):
        scene.put((f"k{number % 3}", str(number)))
    assert len(scene.log.segment_base_offsets) == 5
    assert await cleaned(scene)
    assert await cleaned(scene)
    assert len(scene.log.segment_base_offsets) == 2
    await scene.reopen()
    assert scene.offsets()[:3] == [57, 58, 59]
    names = scene.disk.list(f"{ROOT}/t-0")
    assert not [name for name in names if name.endswith((".cleaned", ".swap", ".deleted"))]
    await scene.close()


async def test_a_clean_log_is_left_alone() -> None:
    scene = await Scene.begin()
    for number in range(40):
        scene.put((f"k{number % 7}", str(number)))
    assert await cleaned(scene)
    steps = scene.disk.steps
    assert not await scene.clean()
    assert scene.disk.steps == steps
    await scene.close()


async def test_a_topic_that_is_not_compacted_is_left_alone() -> None:
    scene = await Scene.begin(replace(CONFIG, compact=False, delete=True))
    for number in range(40):
        scene.put(("a", str(number)))
    assert not await cleaned(scene)
    assert len(scene.offsets()) == 41
    await scene.close()


# What was cleaned is known.


async def test_a_restart_goes_on_from_the_checkpoint() -> None:
    scene = await Scene.begin()
    for number in range(40):
        scene.put((f"k{number % 7}", str(number)))
    assert await cleaned(scene)
    await scene.reopen()
    found = scene.disk._find(f"{ROOT}/{CLEANED_OFFSETS}")
    assert isinstance(found, Inode)
    assert bytes(found.data) == b"0\n1\nt 0 40\n"
    assert not await scene.clean()
    assert scene.directory.cleaned_offset(scene.log) == 40
    await scene.close()


async def test_what_grows_after_a_cut_is_dirty() -> None:
    scene = await Scene.begin()
    for number in range(40):
        scene.put(("a", str(number)))
    assert await cleaned(scene)
    await scene.log.truncate_to(39)
    assert scene.directory.cleaned_offset(scene.log) == 39
    for number in range(40):
        scene.put(("a", str(number)))
    assert await cleaned(scene)
    assert len(scene.offsets()) == 2
    await scene.close()


async def test_a_deleted_log_leaves_nothing_in_the_checkpoint() -> None:
    scene = await Scene.begin()
    for number in range(40):
        scene.put(("a", str(number)))
    assert await cleaned(scene)
    await scene.directory.delete_log("t", 0)
    found = scene.disk._find(f"{ROOT}/{CLEANED_OFFSETS}")
    assert isinstance(found, Inode)
    assert bytes(found.data) == b"0\n0\n"
    await scene.directory.close()


# When something comes between.


async def test_a_cut_during_a_round_ends_it_and_nothing_counts_as_cleaned() -> None:
    scene = await Scene.begin()
    for number in range(40):
        scene.put(("a", str(number)))
    scene.roll()
    scene.put(("active", "x"))
    await scene.log.wait_synced(41)
    cut: asyncio.Task[None] | None = None

    def begin_cut(kind: str, path: str) -> None:
        nonlocal cut
        if kind == "create" and path.endswith(".log.cleaned") and cut is None:
            cut = asyncio.get_running_loop().create_task(scene.log.truncate_to(20))

    scene.disk.fail = begin_cut
    assert not await scene.clean()
    assert cut is not None
    await cut
    assert scene.directory.cleaned_offset(scene.log) is None
    assert scene.log.log_end_offset == 20
    assert scene.state()[b"a"] == b"19"
    assert not [n for n in scene.disk.list(f"{ROOT}/t-0") if n.endswith(".cleaned")]
    await scene.close()


async def test_a_full_disk_leaves_the_log_as_it_was() -> None:
    scene = await Scene.begin()
    for number in range(40):
        scene.put(("a", str(number)))
    scene.roll()
    scene.put(("active", "x"))
    await scene.log.wait_synced(41)
    before = [bytes(batch.view) for batch in scene.batches()]
    scene.disk.fail = lambda kind, path: (
        errno.ENOSPC if kind == "append" and ".cleaned" in path else None
    )
    assert not await scene.clean()
    assert [bytes(batch.view) for batch in scene.batches()] == before
    assert not [n for n in scene.disk.list(f"{ROOT}/t-0") if n.endswith(".cleaned")]
    scene.disk.fail = None
    assert await scene.clean()
    await scene.close()


async def test_nothing_is_compacted_in_a_log_whose_swap_waits_for_the_disk() -> None:
    """A start that found a segment being made would drop the finished one."""
    scene = await Scene.begin()
    for number in range(40):
        scene.put(("a", str(number)))
    scene.roll()
    for number in range(40):
        scene.put(("b", str(number)))
    scene.roll()
    scene.put(("active", "x"))
    before = scene.state()
    scene.disk.fail = lambda kind, path: (
        errno.EIO if kind == "rename" and path.endswith(".timeindex") else None
    )
    assert not await scene.clean()
    assert scene.log.swap_unfinished
    names = scene.disk.list(f"{ROOT}/t-0")
    assert any(name.endswith(".log.swap") for name in names)
    assert not await scene.clean()
    assert not [name for name in scene.disk.list(f"{ROOT}/t-0") if name.endswith(".cleaned")]
    assert scene.state() == before
    scene.disk.fail = None
    async with asyncio.timeout(30):
        while scene.log.swap_unfinished:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    assert await scene.clean()
    assert scene.state() == before
    await scene.close()


async def test_c1_damage_is_not_set_aside_beside_a_swap_that_waits() -> None:
    """What is made for it would have the next start drop the swap, whose old segments are gone."""
    scene = await Scene.begin()
    for number in range(40):
        scene.put(("a", str(number)))
    scene.roll()
    damaged = scene.put(("b", "lost"))
    scene.put(("c", "kept"))
    scene.roll()
    scene.put(("active", "x"))
    before = scene.state()
    scene.disk.fail = lambda kind, path: (
        errno.EIO if kind == "rename" and path.endswith(".timeindex") else None
    )
    assert not await scene.clean()
    assert scene.log.swap_unfinished
    found = scene.disk._find(f"{ROOT}/t-0/{damaged:020d}.log")
    assert isinstance(found, Inode)
    found.data[HEADER_SIZE + 2] ^= 1
    for segment in scene.log.synced_segments:
        segment.first_reads.foreign_size = segment.size  # As an earlier process's, it is tested.
    with pytest.raises(StorageFailed):
        scene.state()
    assert scene.log.damage is not None
    with pytest.raises(StorageFailed, match="swap of segments is not finished"):
        await scene.directory.set_damage_aside(scene.log, scene.config)
    scene.disk.fail = None
    scene.log = await scene.directory.create_log("t", 0, TOPIC_ID, scene.config)
    if scene.log.damage is None:  # It was not noted yet, and is found again.
        with pytest.raises(StorageFailed):
            scene.state()
    scene.log = await scene.directory.set_damage_aside(scene.log, scene.config)
    assert scene.log.damage is None
    with pytest.raises(RecordsDamaged):
        scene.log.read(damaged, max_bytes=1, upper_bound=1 << 60, at_least_one=True)
    kept = scene.log.read(damaged + 1, max_bytes=1, upper_bound=1 << 60, at_least_one=True)
    assert b"kept" in bytes(kept.parts[0])
    newest = records_below(scene, damaged)[-1]
    assert (newest.key, newest.value) == (b"a", before[b"a"])
    assert not [n for n in scene.disk.list(f"{ROOT}/t-0") if n.endswith((".swap", ".cleaned"))]
    await scene.close()


def records_below(scene: Scene, offset: int) -> list[Record]:
    found: list[Record] = []
    position = 0
    while position < offset:
        read = scene.log.read(position, max_bytes=1 << 20, upper_bound=offset, at_least_one=True)
        for part in read.parts:
            found += [record for batch in batches(part) for record in decode_records(batch.view)]
        position = read.next_offset
    return found


async def test_a_damaged_segment_is_not_copied() -> None:
    scene = await Scene.begin()
    for number in range(40):
        scene.put(("a", str(number)))
    scene.roll()
    scene.put(("active", "x"))
    await scene.log.wait_synced(41)
    found = scene.disk._find(f"{ROOT}/t-0/{0:020d}.log")
    assert isinstance(found, Inode)
    found.data[150] ^= 1
    before = bytes(found.data)
    assert not await scene.clean()
    assert not await scene.clean()
    assert bytes(found.data) == before
    await scene.close()


async def test_the_loop_turns_while_a_round_runs() -> None:
    """RULES F1: no slice is longer than a few hundred records."""
    scene = await Scene.begin(LARGE)
    for number in range(4):
        scene.put(*((f"k{n}", f"{number}") for n in range(5000)))
    scene.roll()
    scene.put(("active", "x"))
    await scene.log.wait_synced(scene.log.log_end_offset)
    turns = 0
    done = asyncio.get_running_loop().create_task(scene.clean())
    while not done.done():
        turns += 1
        await asyncio.sleep(0)
    assert await done
    assert turns > 2 * 20_000 / 400
    await scene.close()


# Producers and transactions: what the log alone must still say.


async def without_snapshots(scene: Scene) -> None:
    """The log opens with nothing but its batches to tell of producers."""
    await scene.close()
    for name in scene.disk.list(f"{ROOT}/t-0"):
        if name.endswith(".snapshot"):
            scene.disk.remove(f"{ROOT}/t-0/{name}")
    await scene.open()


async def test_s10_the_last_batch_of_a_producer_keeps_its_header() -> None:
    """Else the producer's next batch would look like a gap, or its repeat like a new one."""
    scene = await Scene.begin(LARGE)
    producer = {"producer_id": 9, "producer_epoch": 1}
    for sequence in (0, 2, 4):
        scene.put(("a", "1"), ("b", "1"), **producer, base_sequence=sequence)
    scene.put(("a", "2"), ("b", "2"))
    assert await cleaned(scene)
    (first, *_) = scene.batches()
    header = first.header
    assert (header.base_offset, header.last_offset, header.records_count) == (4, 5, 0)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (9, 1, 4)
    await without_snapshots(scene)
    entry = scene.log.producers.entry(9)
    assert entry is not None
    assert (entry.last_sequence, entry.last_data_offset) == (5, 5)
    end_offset = scene.log.log_end_offset
    assert scene.put(("a", "1"), ("b", "1"), **producer, base_sequence=4) == 4
    assert scene.put(("a", "3"), **producer, base_sequence=6) == end_offset
    await scene.close()


async def test_a_producer_that_was_forgotten_keeps_nothing() -> None:
    scene = await Scene.begin(LARGE)
    scene.put(("a", "1"), producer_id=9, producer_epoch=1, base_sequence=0)
    scene.put(("a", "2"))
    scene.log.producers.expire(scene.clock.now + 1000, 1000)
    assert await cleaned(scene)
    assert [batch.header.base_offset for batch in scene.batches()] == [1, 2]
    await scene.close()


@pytest.mark.parametrize("commit", [True, False])
async def test_s10_a_marker_outlives_its_transaction_and_is_gone_later(commit: bool) -> None:
    """KAFKA-8522: its time begins when nothing of the transaction is left."""
    scene = await Scene.begin(LARGE)
    transaction = {"producer_id": 9, "producer_epoch": 0, "transactional": True}
    scene.put(("a", "1"), **transaction, base_sequence=0)
    marker = scene.end_transaction(9, commit=commit)
    scene.put(("t", "later"), **transaction, base_sequence=1)
    scene.end_transaction(9, commit=True)
    for rounds in range(3):
        assert await cleaned(scene)
        await without_snapshots(scene)
        assert scene.log.last_stable_offset(scene.log.log_end_offset) == scene.log.log_end_offset
        there = [batch.header for batch in scene.batches() if batch.header.base_offset == marker]
        if commit:
            assert len(there) == 1, "its data is still there"
            assert not there[0].has_delete_horizon
        else:
            assert bool(there) == (rounds < 2)
            assert not there or there[0].has_delete_horizon == (rounds > 0)
        scene.clock.now += HOUR
    await scene.close()


async def test_an_emptied_batch_of_a_transaction_keeps_its_marker() -> None:
    """A header without its marker would open the transaction again, for ever."""
    scene = await Scene.begin(LARGE)
    transaction = {"producer_id": 9, "producer_epoch": 0, "transactional": True}
    scene.put(("a", "1"), **transaction, base_sequence=0)
    scene.end_transaction(9, commit=False)
    for _ in range(3):
        assert await cleaned(scene)
        await without_snapshots(scene)
        assert [batch.header.records_count for batch in scene.batches()][:2] == [0, 1]
        assert scene.log.last_stable_offset(scene.log.log_end_offset) == scene.log.log_end_offset
        assert len(scene.log.aborted_transactions(0, 10)) == 1
        scene.clock.now += 2 * HOUR
    await scene.close()
