"""A partition's log by itself, on a real disk: appends and syncs, starts, recovery, compaction.

    python benchmarks/storage.py [--rounds 3] [--gigabytes 10] [--megabytes 1000] [--write]

`--gigabytes` is what lies in the log that is started (100 segments), `--megabytes` what is
appended, scanned and compacted. Needs twice that much room where temporary files live.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import sys
import tempfile
import time
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from uuid import UUID

from figures import Figure, machine, table, tell
from run import compile_as_installed

from logboat.partitions.storage import LogConfig, LogDirectory, PartitionLog
from logboat.partitions.storage.batch_scan import Scan
from logboat.partitions.storage.cleaner.cleanable import Cleanable
from logboat.partitions.storage.cleaner.cleaning import CleaningRound
from logboat.partitions.storage.cleaner.key_map import KeyMap
from logboat.partitions.storage.cleaner.pace import Pace
from logboat.seam import SystemClock
from logboat.seam.real_disk import RealDisk
from logboat.wire.records import HEADER_SIZE, Record, encode_batch

BATCH_BYTES = 16 << 10
GROUP_BATCHES = 64
"""Appended in one turn of the loop: one write of a megabyte."""

GROUPS_AHEAD = 4
"""Appended while older ones are synced, as by producers with requests in flight."""

SEGMENTS = 100
WINDOW_PROBES = 200
"""About a second of them while the cleaner is held, as many beside it, and so on, so that what else
the machine does falls on both. One quiet stretch before one busy stretch gave ratios of 0.7, 0.9,
3.9 and 10.8 on a shared machine. Load that comes in bursts still shows: measure at a quiet time."""

PROBE_EVERY_S = 0.005
KEYS = 100_000


def fail(error: BaseException) -> None:
    raise SystemExit(f"fatal: {error!r}")


def batch_of(size: int = BATCH_BYTES) -> bytes:
    value = bytes(size - HEADER_SIZE - 12)
    return bytes(encode_batch([Record(value=value, timestamp=SystemClock().now_ms())]))


@asynccontextmanager
async def log_at(
    folder: str, config: LogConfig, disk: RealDisk
) -> AsyncIterator[tuple[LogDirectory, PartitionLog]]:
    """Stopped in order at the end."""
    directory = await LogDirectory.open(
        folder,
        cluster_id="benchmark",
        node_id=1,
        disk=disk,
        clock=SystemClock(),
        rng=Random(1),
        on_fatal=fail,
    )
    log = await directory.create_log("t", 0, UUID(int=1), config)
    log.on_rolled_back = fail  # type: ignore[assignment]
    try:
        yield directory, log
    finally:
        await directory.close_logs()
        await directory.write_clean_marker(1)
        await directory.close()


async def append_all(log: PartitionLog, groups: int, *, synced: bool) -> None:
    data, now_ms = batch_of(), SystemClock().now_ms()
    ahead: deque[asyncio.Future[None]] = deque()
    for _ in range(groups):
        for _ in range(GROUP_BATCHES):
            log.append_as_leader(data, leader_epoch=0, now_ms=now_ms)
        if synced:
            ahead.append(asyncio.ensure_future(log.wait_synced(log.log_end_offset)))
        await asyncio.sleep(0)
        if len(ahead) >= GROUPS_AHEAD:
            await ahead.popleft()
    await asyncio.gather(*ahead)


# Append and sync.


async def append_rate(folder: str, megabytes: int) -> float:
    """MB/s through log and disk."""
    disk = RealDisk()
    async with log_at(folder, LogConfig(), disk) as (_, log):
        groups = (megabytes << 20) // (GROUP_BATCHES * BATCH_BYTES)
        began = time.monotonic()
        await append_all(log, groups, synced=True)
        rate = megabytes / (time.monotonic() - began)
    disk.close()
    return rate


async def disk_rate(folder: str, megabytes: int) -> float:
    """MB/s through the disk alone."""
    disk = RealDisk()
    file = disk.open(f"{folder}/file", create=True)
    parts = [batch_of()] * GROUP_BATCHES
    began = time.monotonic()
    for _ in range((megabytes << 20) // (GROUP_BATCHES * BATCH_BYTES)):
        file.append(parts)
        await file.sync()
    rate = megabytes / (time.monotonic() - began)
    file.close()
    disk.close()
    return rate


def plain_rate(folder: str, megabytes: int) -> float:
    """MB/s of a loop of writev and fdatasync on the same bytes."""
    parts = [batch_of()] * GROUP_BATCHES
    with tempfile.TemporaryFile(dir=folder) as file:
        began = time.monotonic()
        for _ in range((megabytes << 20) // (GROUP_BATCHES * BATCH_BYTES)):
            os.writev(file.fileno(), parts)
            os.fdatasync(file.fileno())
        return megabytes / (time.monotonic() - began)


# Starts.


async def start_times(folder: str, gigabytes: float) -> tuple[float, float]:
    """Seconds to open after a clean stop, and after a kill with a checkpoint at the end."""
    disk = RealDisk()
    size = int(gigabytes * (1 << 30))
    config = LogConfig(synced=False, segment_bytes=size // SEGMENTS, segment_index_bytes=10 << 20)
    async with log_at(folder, config, disk) as (_, log):
        await append_all(log, size // (GROUP_BATCHES * BATCH_BYTES), synced=False)
        end_offset = log.log_end_offset
    times = []
    for clean in (True, False):
        if not clean:
            os.remove(f"{folder}/.kafka_cleanshutdown")
        began = time.monotonic()
        async with log_at(folder, config, disk) as (directory, log):
            times.append(time.monotonic() - began)
            assert (directory.clean, log.log_end_offset) == (clean, end_offset)
    disk.close()
    return times[0], times[1]


# An unchecked tail.


async def scan_rates(folder: str, megabytes: int) -> tuple[float, float]:
    """GB/s of the walk with checksums, and of the whole recovery, which writes and syncs again."""
    disk = RealDisk()
    config = LogConfig(synced=False)
    async with log_at(folder, config, disk) as (_, log):
        await append_all(log, (megabytes << 20) // (GROUP_BATCHES * BATCH_BYTES), synced=False)
        path, size = log._active.log_path, log._active.size
    file = disk.open(path)
    began = time.monotonic()
    scan = Scan(file, 0, size, verify_from=0)
    count = sum(1 for _ in scan)
    walked = time.monotonic() - began
    assert (scan.fault, count) == (None, size // len(batch_of()))
    file.close()
    for name in (".kafka_cleanshutdown", "recovery-point-offset-checkpoint"):
        os.remove(f"{folder}/{name}")
    began = time.monotonic()
    async with log_at(folder, config, disk) as (_, log):
        recovered = time.monotonic() - began
        assert log.log_end_offset == count
    disk.close()
    return size / walked / 1e9, size / recovered / 1e9


# Compaction beside a producer.


async def compaction_beside_producer(folder: str, megabytes: int) -> tuple[float, float, float]:
    """p99 in ms of a lone synced append, quiet and while another log is compacted; MB/s."""
    disk = RealDisk()
    config = LogConfig(compact=True, delete=False, segment_bytes=64 << 20, synced=False)
    async with log_at(folder, config, disk) as (directory, dirty):
        quiet_log = await directory.create_log("quiet", 0, UUID(int=2), LogConfig())
        rng, now_ms = Random(1), SystemClock().now_ms()
        while dirty.size_bytes < megabytes << 20:
            records = [
                Record(key=b"key %d" % rng.randrange(KEYS), value=bytes(1000), timestamp=now_ms)
                for _ in range(16)
            ]
            data = encode_batch(records)
            dirty.append_as_leader(data, leader_epoch=0, now_ms=now_ms)
            await asyncio.sleep(0)
        await asyncio.sleep(1.0)  # Until all but the last segment are on the device.
        segments = dirty.synced_segments
        pace = GatedPace()
        work = CleaningRound(
            dirty,
            Cleanable(segments, 0, segments[-1].next_offset, 0, 1, overdue=False),
            disk=disk,
            files=directory.files,
            keys=KeyMap(128 << 20),
            pace=pace,
            now_ms=now_ms,
        )
        cleaning = asyncio.ensure_future(work.run())
        quiet: list[float] = []
        busy: list[float] = []
        took = 0.0
        while not cleaning.done():
            pace.gate.clear()
            quiet += await latencies(quiet_log, WINDOW_PROBES)
            began = time.monotonic()
            pace.gate.set()
            busy += await latencies(quiet_log, WINDOW_PROBES)
            took += time.monotonic() - began
        await cleaning
    disk.close()
    return p99(quiet), p99(busy), megabytes / took


class GatedPace(Pace):
    """Of a cleaner that works only while its gate is open."""

    def __init__(self) -> None:
        super().__init__(float("inf"))
        self.gate = asyncio.Event()

    async def rest(self) -> None:
        await super().rest()
        await self.beside(self.gate.wait())


async def latencies(log: PartitionLog, count: int) -> list[float]:
    """In ms, from a request's arrival to its sync; a late start counts as waiting."""
    data, loop = batch_of(1024), asyncio.get_running_loop()
    times = []
    due = loop.time()
    for _ in range(count):
        due = max(due + PROBE_EVERY_S, loop.time() - PROBE_EVERY_S)
        await asyncio.sleep(due - loop.time())
        log.append_as_leader(data, leader_epoch=0, now_ms=SystemClock().now_ms())
        await log.wait_synced(log.log_end_offset)
        times.append(1_000 * (loop.time() - due))
    return times


def p99(times: list[float]) -> float:
    return sorted(times)[int(0.99 * (len(times) - 1))]


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--gigabytes", type=float, default=10)
    parser.add_argument("--megabytes", type=int, default=1_000)
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    compile_as_installed()
    gigabytes, megabytes = arguments.gigabytes, arguments.megabytes

    through_disk = Figure("append and sync through Disk, 1 MB each", "MB/s", "")
    ours = Figure("append and sync through a log, 16 KB batches", "MB/s", "")
    plain = Figure("writev and fdatasync, same bytes", "MB/s", "the reference")
    disk_ratio = Figure("Disk / plain loop", "", "0.7")
    ratio = Figure("log / plain loop", "", "0.7")
    clean = Figure(f"start, {gigabytes:g} GB in {SEGMENTS} segments, clean stop", "s", "1 s")
    checkpointed = Figure("the same after a kill, checkpointed", "s", "1 s")
    walk = Figure("scan of an unchecked tail, 16 KB batches", "GB/s", "0.7")
    recovery = Figure("its recovery, written and synced again", "GB/s", "")
    quiet = Figure("p99 of a synced append, quiet", "ms", "")
    busy = Figure(f"p99 of it while {megabytes} MB are compacted", "ms", "")
    slower = Figure("compacting / quiet", "", "2")
    compaction = Figure("compaction beside it", "MB/s", "")
    for number in range(arguments.rounds):
        print(f"round {number + 1} of {arguments.rounds}", file=sys.stderr)
        with tempfile.TemporaryDirectory() as root:

            def fresh(root: str = root) -> str:
                for path in Path(root).iterdir():
                    shutil.rmtree(path) if path.is_dir() else path.unlink()
                return f"{root}/data"

            plain.values.append(plain_rate(root, megabytes))
            through_disk.values.append(asyncio.run(disk_rate(root, megabytes)))
            disk_ratio.values.append(through_disk.values[-1] / plain.values[-1])
            ours.values.append(asyncio.run(append_rate(fresh(), megabytes)))
            ratio.values.append(ours.values[-1] / plain.values[-1])
            for figure, value in zip(
                (clean, checkpointed), asyncio.run(start_times(fresh(), gigabytes)), strict=True
            ):
                figure.values.append(value)
            for figure, value in zip(
                (walk, recovery), asyncio.run(scan_rates(fresh(), megabytes)), strict=True
            ):
                figure.values.append(value)
            found = asyncio.run(compaction_beside_producer(fresh(), megabytes))
            for figure, value in zip((quiet, busy, compaction), found, strict=True):
                figure.values.append(value)
            slower.values.append(found[1] / found[0])
    figures = [plain, through_disk, disk_ratio, ours, ratio, clean, checkpointed, walk, recovery]
    text = f"Machine: {machine()}. `benchmarks/storage.py`, {arguments.rounds} rounds.\n\n" + table(
        [*figures, quiet, busy, slower, compaction]
    )
    tell("Storage", text, write=arguments.write)
    return 0


if __name__ == "__main__":
    sys.exit(main())
