"""Run by test_few_descriptors: more logs than descriptors, in a process of its own.

python many_logs_program.py <folder> <logs> <descriptors>
"""

from __future__ import annotations

import asyncio
import os
import resource
import sys
from random import Random
from uuid import UUID

from logboat.partitions.replicas import CREATING_AT_ONCE
from logboat.partitions.storage import LogConfig, LogDirectory, PartitionLog, open_files_within
from logboat.seam import SystemClock
from logboat.seam.real_disk import RealDisk
from logboat.wire.records import Record, encode_batch

CONFIG = LogConfig(segment_bytes=250)
ROUNDS = 3
"""The third record begins a second segment."""


def fail(error: BaseException) -> None:
    print(f"fatal: {error!r}")
    os._exit(1)


async def open_directory(folder: str, disk: RealDisk) -> LogDirectory:
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return await LogDirectory.open(
        folder,
        cluster_id="c",
        node_id=1,
        disk=disk,
        clock=SystemClock(),
        rng=Random(1),
        on_fatal=fail,
        open_files=open_files_within(limit),
    )


async def main(folder: str, count: int) -> None:
    disk = RealDisk()
    directory = await open_directory(folder, disk)
    logs = await made(directory, count)
    now_ms = SystemClock().now_ms()
    data = encode_batch([Record(value=b"x" * 20, timestamp=now_ms)])
    for _ in range(ROUNDS):
        for log in logs:
            log.append_as_leader(data, leader_epoch=0, now_ms=now_ms)
        # All of them at once: dirty logs are synced side by side (RULES C5).
        await asyncio.gather(*(log.wait_synced(log.log_end_offset) for log in logs))
    check(logs)
    await directory.close_logs()
    await directory.write_clean_marker(1)
    await directory.close()

    directory = await open_directory(folder, disk)
    check([await directory.open_log(stored, CONFIG) for stored in directory.stored_logs()])
    await directory.close()
    disk.close()
    print("ok", len(os.listdir("/proc/self/fd")))


async def made(directory: LogDirectory, count: int) -> list[PartitionLog]:
    """As many at once as `Replicas` makes."""
    turns = asyncio.Semaphore(CREATING_AT_ONCE)

    async def make(number: int) -> PartitionLog:
        async with turns:
            return await directory.create_log("t", number, UUID(int=number + 1), CONFIG)

    return await asyncio.gather(*(make(number) for number in range(count)))


def check(logs: list[PartitionLog]) -> None:
    for log in logs:
        assert (log.log_end_offset, log.synced_offset) == (ROUNDS, ROUNDS)
        assert len(log.segment_base_offsets) > 1
        found = log.read(0, max_bytes=1 << 20, upper_bound=ROUNDS, at_least_one=True)
        assert found.size > 0


if __name__ == "__main__":
    limit = int(sys.argv[3])
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
