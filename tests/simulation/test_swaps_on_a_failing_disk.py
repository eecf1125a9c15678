"""A log is compacted while its disk refuses: every call of it fails in turn, once or from then on.

Whatever was refused, also by a disk that is broken for a moment, the process lives and the log is
the old or the compacted one: the newest record of every key is where it was. What was left half
done is done as soon as the disk allows it, by a start after a crash, too; no file is left over.
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from uuid import UUID

import pytest

from logboat.jepsen_style.simulation import Host, Keep, World
from logboat.jepsen_style.simulation.crash_point import (
    CHANGES,
    RefusedCalls,
    ask,
    for_every_number,
)
from logboat.partitions.storage import LogConfig, LogDirectory, PartitionLog, StorageFailed
from logboat.partitions.storage.cleaner import CleanerSettings, CleaningCandidate, LogCleaner
from logboat.wire.records import Record, batches, decode_records, encode_batch

CONFIG = LogConfig(
    segment_bytes=350,
    index_interval_bytes=100,
    file_delete_delay_ms=5,
    compact=True,
    min_cleanable_dirty_ratio=0.0,
)
TOPIC_ID = UUID(int=1)
COUNT = 13
KEYS = 4
FOLDER = "data/topic-0"
MOVED_START = 7
CUT_END = 3

Content = list[tuple[int, bytes, bytes]]
"""Offset, key and value of each record."""

UNIQUE = 4
"""Offsets below have keys of their own: of their segment nothing is taken."""

BEFORE: Content = [
    (offset, b"%d" % (offset % KEYS if offset >= UNIQUE else 100 + offset), b"%d" % offset)
    for offset in range(COUNT)
]

FULL = (errno.ENOSPC, CHANGES)
SCARCE = (errno.EMFILE, ("open", "create", "list", "sync_dir"))
BROKEN = (errno.EIO, CHANGES)

LEFT_OVER = (".cleaned", ".swap", ".deleted")


def newest(held: Content) -> dict[bytes, tuple[int, bytes]]:
    return {key: (offset, value) for offset, key, value in held}


async def open_directory(host: Host) -> LogDirectory:
    return await LogDirectory.open(
        "data",
        cluster_id="cluster",
        node_id=1,
        disk=host.disk,
        clock=host.clock,
        rng=host.rng,
        on_fatal=host.exit,
    )


async def open_log(directory: LogDirectory) -> PartitionLog:
    return await directory.create_log("topic", 0, TOPIC_ID, CONFIG)


def append(log: PartitionLog, offset: int) -> None:
    _, key, value = BEFORE[offset] if offset < COUNT else (offset, b"new", b"%d" % offset)
    data = encode_batch([Record(key=key, value=value, timestamp=1)])
    assert log.append_as_leader(data, leader_epoch=1, now_ms=1).base_offset == offset


def content(log: PartitionLog) -> Content:
    held: Content = []
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        read = log.read(offset, max_bytes=1 << 20, upper_bound=1 << 40, at_least_one=True)
        if not read.size:
            break
        for part in read.parts:
            for found in batches(part):
                held += [
                    (r.offset, r.key or b"", r.value or b"") for r in decode_records(found.view)
                ]
        offset = read.next_offset
    return [entry for entry in held if entry[0] >= log.log_start_offset]


def judge(log: PartitionLog, *, start: int = 0, end: int = COUNT) -> None:
    assert log.damage is None
    assert log.half_cut is None
    assert (log.log_start_offset, log.log_end_offset) == (start, end)
    held = content(log)
    assert set(held) <= set(BEFORE)
    for key, found in newest(BEFORE).items():
        if start <= found[0] < end:
            assert newest(held)[key] == found


def cleaner(directory: LogDirectory, log: PartitionLog, host: Host) -> LogCleaner:
    async def candidates() -> list[CleaningCandidate]:
        return [CleaningCandidate(log, log.log_end_offset)]

    return LogCleaner(
        directory,
        clock=host.clock,
        settings=CleanerSettings,
        candidates=candidates,
    )


Meanwhile = Callable[[LogDirectory, PartitionLog], Awaitable[None]]
"""What happens to the log while the disk still refuses."""


async def nothing(directory: LogDirectory, log: PartitionLog) -> None:
    """Readers, at most."""


async def move_the_start(directory: LogDirectory, log: PartitionLog) -> None:
    await log.advance_log_start(MOVED_START)


async def cut(directory: LogDirectory, log: PartitionLog) -> None:
    with suppress(StorageFailed):
        await log.truncate_to(CUT_END)


@dataclass
class Process:
    """Fills a log, compacts it while its disk refuses, and goes on when told to."""

    number: int
    error: int
    kinds: tuple[str, ...]
    times: int | None
    meanwhile: Meanwhile
    tried: bool = False
    failed: bool = False
    refused: RefusedCalls | None = None
    again: asyncio.Event = field(default_factory=asyncio.Event)
    done: bool = False

    @property
    def start(self) -> int:
        return MOVED_START if self.meanwhile is move_the_start else 0

    @property
    def end(self) -> int:
        return CUT_END if self.meanwhile is cut else COUNT

    async def main(self, host: Host) -> None:
        directory = await open_directory(host)
        log = await filled_log(directory)
        compaction = cleaner(directory, log, host)
        self.refused = RefusedCalls(
            host, self.number, self.error, kinds=self.kinds, times=self.times
        )
        await compaction.clean_once()
        with suppress(StorageFailed):  # Without a descriptor nothing is read.
            judge(log)
        await self.meanwhile(directory, log)
        await asyncio.sleep(1.5)  # What is left is tried again meanwhile.
        self.failed = self.refused.failed
        self.tried = True
        await self.again.wait()
        async with asyncio.timeout(30):
            while log.swap_unfinished:  # noqa: ASYNC110
                await asyncio.sleep(0.1)
        if self.meanwhile is cut:
            log = await open_log(directory)
            await log.truncate_to(CUT_END)
            compaction = cleaner(directory, log, host)
        await finished(log, compaction, host, start=self.start, end=self.end)
        await directory.close_logs()
        await directory.write_clean_marker(1)
        self.done = True

    async def crashed(self, host: Host) -> None:
        directory = await open_directory(host)
        log = await open_log(directory)
        if self.meanwhile is move_the_start:
            assert log.log_start_offset <= MOVED_START  # It is checkpointed now and then.
            await log.advance_log_start(MOVED_START)
        if self.meanwhile is cut:
            await log.truncate_to(CUT_END)
        await finished(log, cleaner(directory, log, host), host, start=self.start, end=self.end)
        await directory.close_logs()


async def filled_log(directory: LogDirectory) -> PartitionLog:
    log = await open_log(directory)
    for offset in range(COUNT):
        append(log, offset)
    await log.wait_synced(COUNT)
    assert log.segment_base_offsets[1] == UNIQUE
    await asyncio.sleep(0.1)  # The indexes of what was rolled last.
    await directory.checkpoint()
    return log


async def finished(
    log: PartitionLog, compaction: LogCleaner, host: Host, *, start: int, end: int
) -> None:
    """It is compacted, now at the latest, and goes on."""
    judge(log, start=start, end=end)
    for _ in range(3):
        await compaction.clean_once()
    assert not log.swap_unfinished
    judge(log, start=start, end=end)
    held = content(log)
    sealed = [entry for entry in held if entry[0] < log.segment_base_offsets[-1]]
    assert len(sealed) == len(newest(sealed)), "not compacted"
    append_next(log, end)
    await log.wait_synced(end + 1)
    assert content(log)[: len(held)] == held
    await asyncio.sleep(6)  # One that could not be freed is tried again.
    assert not [name for name in host.disk.list(FOLDER) if name.endswith(LEFT_OVER)]


def append_next(log: PartitionLog, offset: int) -> None:
    data = encode_batch([Record(key=b"new", value=b"x", timestamp=1)])
    assert log.append_as_leader(data, leader_epoch=2, now_ms=1).base_offset == offset


def fail_at(process: Process, *, crash: bool) -> bool:
    """False: compaction was through before so many calls."""
    with World(process.number) as world:
        ended: list[BaseException | None] = []
        world.on_host_ended = lambda host, error: ended.append(error)
        host = world.host("n1")
        host.start(process.main)
        world.run_until(lambda: process.tried or not host.alive, within=60)
        assert host.alive, ended
        assert process.refused is not None
        process.refused.heal()
        if crash:
            host.power_off(Keep.ANY)
            ask(world, host, process.crashed)
        else:
            with world.on(host.loop):
                process.again.set()
            world.run_until(lambda: not host.alive, within=60)
            assert process.done, ended
        # Once more, as at an ordinary start.
        ask(world, host, lambda host: look(host, start=process.start, end=process.end))
    return process.failed


async def look(host: Host, *, start: int, end: int) -> None:
    directory = await open_directory(host)
    log = await open_log(directory)
    assert log.damage is None
    assert (log.log_start_offset, log.log_end_offset) == (start, end + 1)
    kept = [entry for entry in BEFORE if start <= entry[0] < end]
    held = newest(content(log))
    held.pop(b"new")
    assert held == newest(kept) or end < COUNT
    assert not [name for name in host.disk.list(FOLDER) if name.endswith(LEFT_OVER)]
    await directory.close_logs()


def fail_anywhere(
    error: tuple[int, tuple[str, ...]],
    times: int | None,
    *,
    meanwhile: Meanwhile = nothing,
    crash: bool = False,
) -> None:
    for_every_number(
        lambda n: fail_at(Process(n, *error, times, meanwhile), crash=crash), at_least=10
    )


@pytest.mark.parametrize(
    ("error", "times"), [(FULL, 1), (BROKEN, None), (SCARCE, 1), (SCARCE, None)]
)
def test_c4_compaction_that_the_disk_refuses_anywhere_is_done_later(
    error: tuple[int, tuple[str, ...]], times: int | None
) -> None:
    fail_anywhere(error, times)


def test_c4_a_crash_while_a_swap_waits_for_the_disk_loses_nothing() -> None:
    fail_anywhere(BROKEN, None, crash=True)


@pytest.mark.parametrize("crash", [False, True], ids=["goes on", "crash"])
def test_what_is_deleted_while_a_swap_waits_goes_behind_it(crash: bool) -> None:
    fail_anywhere(FULL, None, meanwhile=move_the_start, crash=crash)


@pytest.mark.parametrize("crash", [False, True], ids=["goes on", "crash"])
def test_d6_a_log_is_not_cut_before_its_swap_is_finished(crash: bool) -> None:
    fail_anywhere(FULL, None, meanwhile=cut, crash=crash)


def test_c7_an_orderly_stop_leaves_a_swap_to_the_next_start() -> None:
    """Names cannot be changed; all else can, so the stop is a clean one."""

    def stop_at(number: int) -> bool:
        refused: list[RefusedCalls] = []

        async def first(host: Host) -> None:
            directory = await open_directory(host)
            log = await filled_log(directory)
            kinds = ("rename", "remove")
            refused.append(RefusedCalls(host, number, errno.EIO, kinds=kinds, under=FOLDER))
            await cleaner(directory, log, host).clean_once()
            judge(log)
            await directory.close_logs()
            assert await directory.write_clean_marker(1)

        async def second(host: Host) -> None:
            directory = await open_directory(host)
            assert directory.clean
            log = await open_log(directory)
            await finished(log, cleaner(directory, log, host), host, start=0, end=COUNT)

        with World(number) as world:
            host = world.host("n1")
            ask(world, host, first)
            refused[0].heal()
            ask(world, host, second)
        return refused[0].failed

    for_every_number(stop_at, at_least=10)
