"""RULES C6, D6: neither the epoch checkpoint nor the batch headers are believed alone.

Twelve batches of one record, of epochs 2 (offsets 0 to 3), 4 (4 to 7) and 5 (8 to 11).
"""

from __future__ import annotations

import re
from struct import pack_into

import pytest

from logboat.partitions.storage import LogConfig
from tests.partitions.storage.log_scene import FOLDER, append, contents, new_disk, open_log
from tests.seam.memory_disk import Inode, MemoryDisk

SMALL = LogConfig(segment_bytes=400, index_interval_bytes=100)
EPOCHS = (2, 4, 5)
COUNT = 12
CHECKPOINT = b"0\n3\n2 0\n4 4\n5 8\n"
TRUTH = [(2, 0), (4, 4), (5, 8)]
EPOCH_AT = 12
"""Where a batch header holds its leader epoch."""


def data_of(disk: MemoryDisk, name: str) -> bytearray:
    found = disk._find(f"{FOLDER}/{name}")
    assert isinstance(found, Inode)
    return found.data


async def stopped_log(config: LogConfig) -> MemoryDisk:
    disk = new_disk()
    log = await open_log(disk, config)
    for number in range(COUNT):
        append(log, b"%d" % number, leader_epoch=EPOCHS[number // 4])
    await log.wait_synced(COUNT)
    await log.close()
    assert bytes(data_of(disk, "leader-epoch-checkpoint")) == CHECKPOINT
    return disk


def give_epoch(disk: MemoryDisk, offset: int, epoch: int) -> None:
    """Into the header of the batch at this offset, past its checksum."""
    for name in disk.list(FOLDER):
        if not name.endswith(".log"):
            continue
        data = data_of(disk, name)
        position = 0
        while position < len(data):
            if int.from_bytes(data[position : position + 8], "big") == offset:
                pack_into(">i", data, position + EPOCH_AT, epoch)
                return
            position += 12 + int.from_bytes(data[position + 8 : position + 12], "big")
    raise AssertionError(f"no batch at {offset}")


def changed_numbers() -> list[bytes]:
    """The checkpoint with one digit of an entry changed, where it still reads as one."""
    body = CHECKPOINT.index(b"2 0")
    return [
        changed
        for match in re.finditer(rb"\d", CHECKPOINT[body:])
        for digit in b"0123456789"
        if (at := body + match.start()) >= 0
        and (changed := CHECKPOINT[:at] + bytes([digit]) + CHECKPOINT[at + 1 :]) != CHECKPOINT
    ]


@pytest.mark.parametrize(
    ("config", "clean"),
    [(SMALL, True), (LogConfig(), False)],
    ids=["many segments, clean stop", "one segment, walked"],
)
async def test_c6_no_changed_number_in_the_epoch_checkpoint_is_believed(
    config: LogConfig, clean: bool
) -> None:
    disk = await stopped_log(config)
    for changed in changed_numbers():
        data_of(disk, "leader-epoch-checkpoint")[:] = changed
        log = await open_log(disk, config, clean=clean, recovery_point=COUNT)
        assert log.damage is None, changed
        assert [(one.epoch, one.start_offset) for one in log.epochs.entries] == TRUTH, changed
        await log.close()
        assert bytes(data_of(disk, "leader-epoch-checkpoint")) == CHECKPOINT


@pytest.mark.parametrize("config", [SMALL, LogConfig()], ids=["many segments", "one segment"])
@pytest.mark.parametrize("epoch", [0, 3, 6, 1 << 20])
async def test_c1_a_changed_epoch_in_the_last_batch_is_damage(
    config: LogConfig, epoch: int
) -> None:
    """It would claim a lineage that no leader knows: what was synced has its epoch in the file."""
    disk = await stopped_log(config)
    give_epoch(disk, COUNT - 1, epoch)
    for _ in range(2):  # The next life must see it, too.
        log = await open_log(disk, config, clean=True, recovery_point=COUNT)
        assert log.damage is not None
        # Where epochs fall, the first of the two batches is taken for the wrong one.
        assert log.damage.offset == (COUNT - 1 if epoch > EPOCHS[-1] else COUNT - 2)
        assert log.epochs.latest_epoch == EPOCHS[-1]
        assert len(contents(log)) == log.damage.offset
        await log.close()
    log = await open_log(disk, config, clean=True, recovery_point=COUNT)
    assert log.damage is not None
    await log.truncate_to(log.damage.offset)
    await log.close()
    log = await open_log(disk, config, recovery_point=log.recovery_point)
    assert log.damage is None
    await log.close()


async def test_headers_that_rise_are_believed_where_the_checkpoint_may_be_what_changed() -> None:
    disk = await stopped_log(SMALL)
    give_epoch(disk, 0, 1)
    log = await open_log(disk, SMALL, clean=True, recovery_point=COUNT)
    assert log.damage is None
    assert [(one.epoch, one.start_offset) for one in log.epochs.entries][:2] == [(1, 0), (2, 1)]
    await log.close()


async def test_a_checkpoint_is_believed_without_reading_all_headers() -> None:
    disk = await stopped_log(SMALL)
    # In the middle of an epoch and of a segment; whoever reads there first finds it.
    give_epoch(disk, 6, 3)
    log = await open_log(disk, SMALL, clean=True, recovery_point=COUNT)
    assert log.damage is None
    assert [(one.epoch, one.start_offset) for one in log.epochs.entries] == TRUTH
    await log.close()


async def test_batches_below_the_log_start_do_not_speak_against_the_checkpoint() -> None:
    disk = await stopped_log(LogConfig())
    log = await open_log(disk, recovery_point=COUNT)
    log.epochs.truncate_from_start(6)
    await log.close()
    log = await open_log(disk, clean=True, recovery_point=COUNT, log_start_offset=6)
    assert log.damage is None
    assert [(one.epoch, one.start_offset) for one in log.epochs.entries] == [(4, 6), (5, 8)]
    await log.close()
