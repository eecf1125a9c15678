"""Run by test_power_cuts: appends to one log and tells what is synced, until its device is gone.

python power_cut_program.py <folder>
"""

from __future__ import annotations

import asyncio
import os
import sys
from random import Random
from uuid import UUID

from logboat.partitions.storage import LogConfig, LogDirectory, StorageFailed
from logboat.seam import Fatal, SystemClock
from logboat.seam.real_disk import RealDisk
from logboat.wire.records import Record, encode_batch

CONFIG = LogConfig(segment_bytes=20_000)
"""A roll every few dozen batches: power goes also between the steps of one."""

DEVICE_GONE = 3
"""Exit status. Whether a write, a roll or a sync meets it first is chance."""


def batch(number: int) -> bytes:
    value = b"%d " % number * (1 + number % 200)
    return bytes(encode_batch([Record(value=value, timestamp=1_700_000_000_000 + number)]))


def end(error: BaseException) -> None:
    os._exit(DEVICE_GONE if isinstance(error, Fatal) else 1)


async def open_directory(folder: str, disk: RealDisk) -> LogDirectory:
    return await LogDirectory.open(
        folder,
        cluster_id="c",
        node_id=1,
        disk=disk,
        clock=SystemClock(),
        rng=Random(1),
        on_fatal=end,
    )


async def main(folder: str) -> None:
    directory = await open_directory(folder, RealDisk())
    log = await directory.create_log("t", 0, UUID(int=1), CONFIG)
    log.on_synced = lambda offset: print(offset, flush=True)
    while True:
        for _ in range(5):
            now_ms = SystemClock().now_ms()
            log.append_as_leader(batch(log.log_end_offset), leader_epoch=0, now_ms=now_ms)
        await log.wait_synced(log.log_end_offset - 10)


if __name__ == "__main__":
    try:
        asyncio.run(main(sys.argv[1]))
    except StorageFailed:
        sys.exit(DEVICE_GONE)
