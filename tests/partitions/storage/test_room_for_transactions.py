"""S3, S4, S7, S11: what the log already does for transactions, over whole logs."""

from __future__ import annotations

import errno
from random import Random

import pytest

from logboat.partitions.storage import LogConfig, PartitionLog, StorageFailed
from logboat.partitions.storage.cleaner.batch_rebuild import emptied
from logboat.partitions.storage.producer_recovery import snapshot_path
from logboat.partitions.storage.producer_states import ProducerStates
from logboat.wire.records import encode_end_txn_marker, parse_header
from tests.partitions.storage.log_scene import (
    FOLDER,
    NOW_MS,
    append,
    batch,
    contents,
    new_disk,
    open_log,
    read_all,
)
from tests.seam.memory_disk import Loss

PID = 4


def write(log: PartitionLog, producer_id: int, sequence: int, *, transactional: bool) -> None:
    append(
        log,
        b"%d" % sequence,
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=sequence,
        transactional=transactional,
    )


def end(log: PartitionLog, producer_id: int, *, commit: bool) -> None:
    marker = encode_end_txn_marker(
        commit=commit,
        producer_id=producer_id,
        producer_epoch=0,
        coordinator_epoch=3,
        timestamp=NOW_MS,
    )
    log.append_as_leader(marker, leader_epoch=0, now_ms=NOW_MS, from_client=False)


def fill(log: PartitionLog) -> None:
    """Three producers: one idempotent, one that aborts and begins again, one with a commit."""
    for sequence in range(6):
        write(log, PID, sequence, transactional=False)
        write(log, PID + 1, 2 * sequence, transactional=True)
        write(log, PID + 1, 2 * sequence + 1, transactional=True)
        if sequence % 2:
            end(log, PID + 1, commit=False)
        write(log, PID + 2, sequence, transactional=True)
    end(log, PID + 2, commit=True)


def told(producers: ProducerStates) -> tuple[object, ...]:
    return producers.entries(), producers.last_stable_offset(1 << 40), producers.map_end_offset


@pytest.mark.parametrize("clean", [True, False])
async def test_s4_leader_follower_and_recovery_come_to_the_same_state(clean: bool) -> None:
    config = LogConfig(segment_bytes=700)
    leader_disk = new_disk()
    leader = await open_log(leader_disk, config)
    fill(leader)
    follower = await open_log(new_disk(), config)
    for found in list(read_all(leader)):
        follower.append_as_follower(bytes(found.view))
    assert told(follower.producers) == told(leader.producers)
    aborted = leader.aborted_transactions(0, 1 << 40)
    assert follower.aborted_transactions(0, 1 << 40) == aborted
    assert len(aborted) == 3

    await leader.wait_synced(leader.log_end_offset)
    if clean:
        await leader.close()
    else:
        leader_disk.restart()
    again = await open_log(leader_disk, config, clean=clean, recovery_point=0)
    assert told(again.producers) == told(leader.producers)
    assert again.aborted_transactions(0, 1 << 40) == aborted
    await again.close()
    await follower.close()


@pytest.mark.parametrize("loss", ["none", "prefix", "any", "all"])
async def test_s7_a_snapshot_beyond_what_survived_is_thrown_away(loss: Loss) -> None:
    """The name of a snapshot says up to where it holds: after a loss of power the log may end
    before it, and then grow again with other batches."""
    disk = new_disk()
    log = await open_log(disk, LogConfig(segment_bytes=700))
    fill(log)
    await log.wait_synced(log.log_end_offset)
    end_offset = log.log_end_offset
    # As if the snapshot's own sync had come first: it names an offset that no batch reaches.
    beyond = disk.open(snapshot_path(FOLDER, end_offset + 100), create=True)
    write(log, 99, 0, transactional=False)
    beyond.append([log.producers.snapshot()])
    await beyond.sync()
    await disk.sync_dir(FOLDER)
    disk.power_loss(Random(1), loss)
    again = await open_log(disk, LogConfig(segment_bytes=700), recovery_point=0)
    assert not disk.exists(snapshot_path(FOLDER, end_offset + 100))
    assert (again.producers.entry(99) is not None) == (again.log_end_offset > end_offset)
    assert again.producers.map_end_offset == again.log_end_offset
    await again.close()


async def test_s3_a_write_that_fails_leaves_no_trace_of_its_transaction() -> None:
    disk = new_disk()
    log = await open_log(disk)
    log.on_rolled_back = lambda _: None
    write(log, PID, 0, transactional=True)
    await log.wait_synced(log.log_end_offset)
    before = told(log.producers)
    disk.fail = lambda kind, path: errno.ENOSPC if kind == "append" else None
    write(log, PID, 1, transactional=True)
    end(log, PID, commit=False)
    with pytest.raises(StorageFailed):
        await log.wait_synced(log.log_end_offset)
    disk.fail = None
    assert told(log.producers) == before
    assert log.aborted_transactions(0, 1 << 40) == []
    assert log.last_stable_offset(1 << 40) == 0
    await log.close()


@pytest.mark.parametrize("clean", [True, False])
async def test_s11_batches_without_records_are_read_indexed_and_recovered(clean: bool) -> None:
    """Compaction leaves them, and a follower is sent them."""
    disk = new_disk()
    config = LogConfig(segment_bytes=700, index_interval_bytes=100)
    log = await open_log(disk, config)
    for number in range(20):
        data = batch(b"v", timestamp=NOW_MS + number, producer_id=PID, base_sequence=number)
        data[0:8] = number.to_bytes(8, "big")
        if number % 3:
            data = emptied(parse_header(data))
        log.append_as_follower(bytes(data))
    await log.wait_synced(20)
    before = contents(log)
    assert len(before) == 20
    if clean:
        await log.close()
    else:
        disk.restart()
    again = await open_log(disk, config, clean=clean, recovery_point=0)
    assert contents(again) == before
    for offset in range(20):
        assert next(read_all(again, offset)).header.base_offset == offset
    found = again.offset_for_timestamp(NOW_MS + 1)
    assert found is not None
    assert (found.offset, found.timestamp_ms) == (3, NOW_MS + 3)
    entry = again.producers.entry(PID)
    assert entry is not None
    assert entry.last_sequence == 19
    await again.close()
