"""Many logs that are deleted at once share the writes that make them forgotten."""

from __future__ import annotations

import asyncio
from random import Random
from uuid import UUID

import pytest

from logboat.partitions.storage import LogConfig, LogDirectory
from logboat.partitions.storage.checkpoints import HIGH_WATERMARKS, RECOVERY_POINTS, read_offsets
from tests.partitions.storage.log_scene import TestClock, append, raise_fatal
from tests.seam.memory_disk import Crashed, MemoryDisk

COUNT = 40


class SlowDisk(MemoryDisk):
    """Whose syncs let others have a turn."""

    async def wait(self) -> None:
        await asyncio.sleep(0)


async def opened(disk: MemoryDisk) -> LogDirectory:
    return await LogDirectory.open(
        "/data",
        cluster_id="cluster",
        node_id=1,
        disk=disk,
        clock=TestClock(),
        rng=Random(1),
        on_fatal=raise_fatal,
    )


async def filled(disk: MemoryDisk, count: int = COUNT) -> LogDirectory:
    """Logs with a record each, all of them in the checkpoints."""
    directory = await opened(disk)
    for number in range(count):
        log = await directory.create_log(f"topic{number}", 0, UUID(int=number + 1), LogConfig())
        append(log, b"x")
        await log.wait_synced(1)
    await directory.checkpoint(lambda log: 1)
    return directory


async def delete(directory: LogDirectory, numbers: range) -> None:
    await asyncio.gather(*(directory.delete_log(f"topic{n}", 0) for n in numbers))


async def test_logs_deleted_at_once_share_their_writes() -> None:
    disk = SlowDisk("/data")
    directory = await filled(disk)
    before = len(disk.log)
    await delete(directory, range(1, COUNT))
    syncs = [path for kind, path in disk.log[before:] if kind in ("sync", "sync_dir")]
    assert len(syncs) < 20
    for name in (RECOVERY_POINTS, HIGH_WATERMARKS):
        assert await read_offsets(disk, f"/data/{name}") == {("topic0", 0): 1}
    assert [name for name in disk.list("/data") if name.startswith("topic")] == ["topic0-0"]
    await directory.close()


async def test_no_folder_goes_before_its_log_is_forgotten_durably() -> None:
    """Whatever the loss of power leaves: a log that the checkpoint knows has its folder."""
    for crash_at in range(1, 200):
        disk = SlowDisk("/data")
        directory = await filled(disk, 4)
        disk.crash_at = disk.steps + crash_at
        crashed = False
        try:
            await delete(directory, range(1, 4))
        except Crashed:
            crashed = True
        for _ in range(5):
            await asyncio.sleep(0)
        disk.power_loss(Random(crash_at), "any")
        again = await opened(disk)
        assert again.lost_logs() == []
        assert ("topic0", 0) in {stored.key for stored in again.stored_logs()}
        await again.close()
        if not crashed:
            return
    raise AssertionError("never done")


async def test_a_deletion_on_a_full_disk_waits_for_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """It ended the process, for a job that fails does."""
    monkeypatch.setattr("logboat.partitions.storage.log_directory.RETRY_SECONDS", 0.0)
    disk = SlowDisk("/data")
    directory = await filled(disk, 2)
    disk.capacity = 0
    deletion = asyncio.create_task(directory.delete_log("topic1", 0))
    for _ in range(20):
        await asyncio.sleep(0)
    assert not deletion.done()
    disk.capacity = None
    await deletion
    assert await read_offsets(disk, f"/data/{RECOVERY_POINTS}") == {("topic0", 0): 1}
    await directory.close()
