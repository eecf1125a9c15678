"""Rules of a replica's log that are about order on the disk, or about what is never done."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random
from typing import get_args

import pytest

import logboat
from logboat.partitions.storage.epoch_cache import FILE_NAME as EPOCHS_FILE
from logboat.partitions.storage.epoch_cache import EpochCache
from tests.partitions.storage.log_scene import FOLDER, append, new_disk, open_log
from tests.seam.memory_disk import Loss, MemoryDisk

PRODUCT = Path(logboat.__path__[0])


def epochs_on_disk(disk: MemoryDisk) -> dict[int, int]:
    """Epoch -> start offset, as the checkpoint says."""
    file = disk.open(f"{FOLDER}/{EPOCHS_FILE}")
    cache = EpochCache.decode(file.read_at(0, file.size()))
    file.close()
    return {entry.epoch: entry.start_offset for entry in cache.entries}


@pytest.mark.parametrize("loss", get_args(Loss))
async def test_c6_what_counts_as_synced_has_its_epoch_in_the_checkpoint(loss: Loss) -> None:
    disk = new_disk()
    log = await open_log(disk)
    for epoch in (3, 3, 5, 9):
        append(log, b"a", leader_epoch=epoch)
        await log.wait_synced(log.log_end_offset)
        assert epochs_on_disk(disk)[epoch] <= log.synced_offset
    disk.power_loss(Random(1), loss)
    disk.restart()
    assert epochs_on_disk(disk) == {3: 0, 5: 2, 9: 3}


async def test_c6_the_checkpoint_is_synced_before_the_batch() -> None:
    disk = new_disk()
    log = await open_log(disk)
    disk.log.clear()
    append(log, b"a", leader_epoch=4)
    await log.wait_synced(1)
    synced = [path for kind, path in disk.log if kind == "sync"]
    checkpoint = next(number for number, path in enumerate(synced) if EPOCHS_FILE in path)
    assert checkpoint <= next(n for n, path in enumerate(synced) if path.endswith(".log"))
    await log.close()


def test_c7_no_log_file_is_mapped_at_all() -> None:
    """The rule allows sealed segments below the watermark. Nothing has asked for it so far, and a
    mapping that is cut kills the process."""
    calls = re.compile(r"\.map\(|\bmmap\b")
    for part in ("partitions", "raftlog", "node", "groups"):
        for source in sorted((PRODUCT / part).rglob("*.py")):
            assert not calls.search(source.read_text()), f"{source} maps a file"
