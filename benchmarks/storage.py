"""How fast one node's storage appends, starts, recovers and compacts, and how few files it needs.

    python benchmarks/storage.py SECTION... [--rounds N] [--gigabytes N] [--megabytes N] [--write]

Sections: append, start, scan, compaction, descriptors. Each is a section of docs/NUMBERS.md and
takes at most three minutes on a machine that does nothing else. `--gigabytes` is what lies in the
log that is started (100 segments), `--megabytes` what is appended, scanned and compacted. Needs
twice that much room where temporary files live.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from random import Random
from uuid import UUID

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from figures import Figure, machine, table, tell
from run import NODE, compile_as_installed, single_node

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

DESCRIPTORS = 1_024
PARTITIONS = 2_000

QUIET_PROBES = 25
BUSY_PROBES = 75
"""An eighth of a second of them while the cleaner is held, three eighths beside it, and so on, so
that what else the machine does falls on both: the device alone has pauses of 50 to 200 ms. One
quiet stretch before one busy stretch gave ratios of 0.7, 0.9, 3.9 and 10.8 on a shared machine."""

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


async def start_times(
    folder: str, gigabytes: float, rounds: int
) -> tuple[list[float], list[float]]:
    """Seconds to open after a clean stop, and after a kill with a checkpoint at the end."""
    disk = RealDisk()
    size = int(gigabytes * (1 << 30))
    config = LogConfig(synced=False, segment_bytes=size // SEGMENTS, segment_index_bytes=10 << 20)
    async with log_at(folder, config, disk) as (_, log):
        await append_all(log, size // (GROUP_BATCHES * BATCH_BYTES), synced=False)
        end_offset = log.log_end_offset
    times: dict[bool, list[float]] = {True: [], False: []}
    for clean in [True, False] * rounds:
        if not clean:
            os.remove(f"{folder}/.kafka_cleanshutdown")
        began = time.monotonic()
        async with log_at(folder, config, disk) as (directory, log):
            times[clean].append(time.monotonic() - began)
            assert (directory.clean, log.log_end_offset) == (clean, end_offset)
    disk.close()
    return times[True], times[False]


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


@dataclass
class Beside:
    """Latencies in ms of a lone synced append, quiet and while another log is compacted."""

    quiet: list[float]
    busy: list[float]
    megabytes_per_s: float
    longest_slice_ms: float
    """Wall time: it includes what the machine took away meanwhile."""


async def compaction_beside_producer(folder: str, megabytes: int) -> Beside:
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
            quiet += await latencies(quiet_log, QUIET_PROBES)
            began = time.monotonic()
            pace.gate.set()
            busy += await latencies(quiet_log, BUSY_PROBES)
            took += time.monotonic() - began
        await cleaning
    disk.close()
    return Beside(quiet, busy, megabytes / took, 1_000 * pace.longest_slice_s)


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


def percentile(times: list[float], share: float) -> float:
    return sorted(times)[int(share * (len(times) - 1))]


# Few descriptors.

FEW = ["sh", "-c", f'ulimit -n {DESCRIPTORS}; exec "$@"', "sh", *NODE]


@dataclass
class Scarce:
    """Seconds."""

    created: float
    written: float
    restarted: float


def with_few_descriptors() -> Scarce:
    """A node of PARTITIONS partitions: made, each written, killed, and each written again."""
    with tempfile.TemporaryDirectory() as directory:
        settings = {"log.dirs": f"{directory}/data"}
        with single_node(FEW, **settings) as (host, port, _):
            servers = f"{host}:{port}"
            created = timed(lambda: create_topic(servers))
            written = timed(lambda: write_each(servers))
        with single_node(FEW, **settings) as (host, port, started):
            write_each(f"{host}:{port}")
            restarted = time.monotonic() - started
    return Scarce(created, written, restarted)


def timed(work: Callable[[], None]) -> float:
    began = time.monotonic()
    work()
    return time.monotonic() - began


def create_topic(servers: str) -> None:
    admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
    topic = NewTopic("many", PARTITIONS, 1)
    for made in admin.create_topics([topic], request_timeout=120).values():
        made.result(120)


def write_each(servers: str) -> None:
    """A record into each partition, acknowledged by all replicas (there is one)."""
    failed: list[object] = []
    producer = Producer(
        {"bootstrap.servers": servers, "acks": "all", "linger.ms": 20, "log_level": 0}
    )
    for partition in range(PARTITIONS):
        producer.produce(
            "many",
            b"x",
            partition=partition,
            on_delivery=lambda error, _: failed.append(error) if error else None,
        )
    left = producer.flush(120)
    if left or failed:
        raise SystemExit(
            f"{left} records were not acknowledged, {len(failed)} failed: {failed[:1]}"
        )


# Sections of the page.


def append_section(arguments: argparse.Namespace) -> list[Figure]:
    through_disk = Figure("append and sync through Disk, 1 MB each", "MB/s", "")
    ours = Figure("append and sync through a log, 16 KB batches", "MB/s", "")
    plain = Figure("writev and fdatasync, same bytes", "MB/s", "the reference")
    disk_ratio = Figure("Disk / plain loop", "", "0.7")
    ratio = Figure("log / plain loop", "", "")
    for _ in range(arguments.rounds):
        with tempfile.TemporaryDirectory() as root:
            # The reference stands on both sides of what is compared with it.
            before = plain_rate(root, arguments.megabytes // 2)
            through_disk.values.append(asyncio.run(disk_rate(root, arguments.megabytes)))
            ours.values.append(asyncio.run(append_rate(f"{root}/data", arguments.megabytes)))
            after = plain_rate(root, arguments.megabytes // 2)
        plain.values.append(2 / (1 / before + 1 / after))
        disk_ratio.values.append(through_disk.values[-1] / plain.values[-1])
        ratio.values.append(ours.values[-1] / plain.values[-1])
    return [plain, through_disk, disk_ratio, ours, ratio]


def start_section(arguments: argparse.Namespace) -> list[Figure]:
    name = f"start, {arguments.gigabytes:g} GB in {SEGMENTS} segments"
    clean = Figure(f"{name}, clean stop", "s", "1 s")
    checkpointed = Figure("the same after a kill, checkpointed", "s", "1 s")
    with tempfile.TemporaryDirectory() as root:
        clean.values, checkpointed.values = asyncio.run(
            start_times(f"{root}/data", arguments.gigabytes, arguments.rounds)
        )
    return [clean, checkpointed]


def scan_section(arguments: argparse.Namespace) -> list[Figure]:
    walk = Figure("scan of an unchecked tail, 16 KB batches", "GB/s", "0.7")
    recovery = Figure("its recovery, written and synced again", "GB/s", "")
    for _ in range(arguments.rounds):
        with tempfile.TemporaryDirectory() as root:
            walked, recovered = asyncio.run(scan_rates(f"{root}/data", arguments.megabytes))
        walk.values.append(walked)
        recovery.values.append(recovered)
    return [walk, recovery]


def compaction_section(arguments: argparse.Namespace) -> list[Figure]:
    name = f"while {arguments.megabytes} MB are compacted"
    figures = {
        share: (
            Figure(f"p{100 * share:g} of a synced append, quiet", "ms", ""),
            Figure(f"p{100 * share:g} of it {name}", "ms", ""),
        )
        for share in (0.5, 0.99)
    }
    slower = Figure("p99, compacting / quiet", "", "2")
    slices = Figure("longest slice of the cleaner", "ms", "5 ms")
    rate = Figure("compaction beside it", "MB/s", "")
    for _ in range(arguments.rounds):
        with tempfile.TemporaryDirectory() as root:
            found = asyncio.run(compaction_beside_producer(f"{root}/data", arguments.megabytes))
        for share, (quiet, busy) in figures.items():
            quiet.values.append(percentile(found.quiet, share))
            busy.values.append(percentile(found.busy, share))
        slower.values.append(percentile(found.busy, 0.99) / percentile(found.quiet, 0.99))
        slices.values.append(found.longest_slice_ms)
        rate.values.append(found.megabytes_per_s)
    return [*(figure for pair in figures.values() for figure in pair), slower, slices, rate]


def descriptors_section(arguments: argparse.Namespace) -> list[Figure]:
    name = f"{PARTITIONS:,} partitions, ulimit -n {DESCRIPTORS:,}"
    created = Figure(f"{name}: made", "s", "works")
    written = Figure("a record into each, acks=all", "s", "works")
    restarted = Figure("from a start after a kill to a record in each", "s", "works")
    for _ in range(arguments.rounds):
        found = with_few_descriptors()
        created.values.append(found.created)
        written.values.append(found.written)
        restarted.values.append(found.restarted)
    return [created, written, restarted]


SECTIONS: dict[str, Callable[[argparse.Namespace], list[Figure]]] = {
    "append": append_section,
    "start": start_section,
    "scan": scan_section,
    "compaction": compaction_section,
    "descriptors": descriptors_section,
}


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("sections", nargs="+", choices=list(SECTIONS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--gigabytes", type=float, default=10)
    parser.add_argument("--megabytes", type=int, default=1_000)
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    compile_as_installed()
    for section in arguments.sections:
        figures = SECTIONS[section](arguments)
        text = f"Machine: {machine()}. `benchmarks/storage.py {section}`.\n\n" + table(figures)
        tell(f"Storage: {section}", text, write=arguments.write)
    return 0


if __name__ == "__main__":
    sys.exit(main())
