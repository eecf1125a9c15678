"""One sync of a directory for all who changed names in it before it began (RULES C4, C5)."""

from __future__ import annotations

import asyncio
from random import Random
from uuid import UUID

import pytest

from logboat.partitions.storage import LogConfig, LogDirectory
from logboat.partitions.storage.shared_sync import SharedDirectorySync
from logboat.seam import SyncFailed
from tests.partitions.storage.log_scene import TestClock, raise_fatal
from tests.seam.memory_disk import MemoryDisk


class SlowDisk(MemoryDisk):
    """Its syncs of directories end when they are told to."""

    def __init__(self) -> None:
        super().__init__("/data")
        self.begun: list[asyncio.Future[None]] = []

    async def sync_dir(self, path: str) -> None:
        end: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.begun.append(end)
        await end


async def turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_c5_those_who_ask_during_a_sync_share_the_next_one() -> None:
    disk = SlowDisk()
    names = SharedDirectorySync(disk, "/data")
    first = asyncio.create_task(names.sync())
    await turns()
    others = [asyncio.create_task(names.sync()) for _ in range(10)]
    await turns()
    assert len(disk.begun) == 1
    disk.begun[0].set_result(None)
    await turns()
    assert first.done()
    # Their names may have been changed after the first sync began.
    assert not any(other.done() for other in others)
    assert len(disk.begun) == 2
    disk.begun[1].set_result(None)
    await asyncio.gather(*others)
    assert len(disk.begun) == 2


async def test_c4_a_failed_sync_of_names_is_not_tried_again() -> None:
    disk = SlowDisk()
    names = SharedDirectorySync(disk, "/data")
    waiting = [asyncio.create_task(names.sync()) for _ in range(3)]
    await turns()
    disk.begun[0].set_exception(SyncFailed("sync of /data failed"))
    ends = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(end) for end in ends] == [SyncFailed] * 3
    with pytest.raises(SyncFailed):
        await names.sync()
    assert len(disk.begun) == 1


async def test_a_sync_whose_caller_went_away_counts_for_nobody() -> None:
    disk = SlowDisk()
    names = SharedDirectorySync(disk, "/data")
    gone, left = asyncio.create_task(names.sync()), asyncio.create_task(names.sync())
    await turns()
    gone.cancel()
    await turns()
    assert not left.done()
    disk.begun[1].set_result(None)
    await left


async def test_logs_made_side_by_side_share_the_syncs_of_their_names() -> None:
    synced: list[str] = []

    class Watched(MemoryDisk):
        async def sync_dir(self, path: str) -> None:
            await asyncio.sleep(0)
            synced.append(path)
            await super().sync_dir(path)

    directory = await LogDirectory.open(
        "/data",
        cluster_id="c",
        node_id=1,
        disk=Watched(),
        clock=TestClock(),
        rng=Random(5),
        on_fatal=raise_fatal,
    )
    synced.clear()
    await asyncio.gather(
        *(directory.create_log("t", n, UUID(int=7), LogConfig()) for n in range(20))
    )
    for number in range(20):
        assert f"/data/t-{number}" in synced
    assert 1 <= synced.count("/data") <= 4
    await directory.close()
