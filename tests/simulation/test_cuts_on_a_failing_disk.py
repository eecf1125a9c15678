"""A log is cut while its disk refuses: every call of every kind of cut fails in turn.

What passes (a full disk, no descriptors) leaves the log as it was, or half cut; then it serves
nothing, and opening it again gives a log that a crash in the middle of the cut could have left: it
begins like the old one and reaches at least to where it was to be cut. A broken disk ends the
process. In either case a crash at that moment, and a second try, come to what was wanted.
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import pytest

from logboat.jepsen_style.simulation import Host, Keep, World
from logboat.jepsen_style.simulation.crash_point import (
    CHANGES,
    RefusedCalls,
    ask,
    for_every_number,
)
from logboat.partitions.storage import (
    LogConfig,
    LogDirectory,
    PartitionLog,
    ProducerStates,
    RecordsRejected,
    StorageFailed,
    partition_log,
)
from logboat.partitions.storage.errors import BatchDamaged
from logboat.partitions.storage.group_commit import PASSING_ERRORS
from logboat.partitions.storage.producer_recovery import rebuild_producers
from logboat.wire.records import HEADER_SIZE, Record, batches, decode_records, encode_batch

CONFIG = LogConfig(segment_bytes=350, index_interval_bytes=100, file_delete_delay_ms=5)
TOPIC_ID = UUID(int=1)
COUNT = 12
START = 3
PRODUCER_ID = 7
DAMAGED = 5

Content = list[tuple[int, int, bytes]]
"""Offset, leader epoch and value of each record."""

BEFORE: Content = [(offset, offset // 4, b"%d" % offset) for offset in range(COUNT)]


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


def append(log: PartitionLog, offset: int, epoch: int) -> None:
    data = encode_batch(
        [Record(value=b"%d" % offset, timestamp=1)],
        producer_id=PRODUCER_ID,
        producer_epoch=0,
        base_sequence=offset,
    )
    log.append_as_leader(data, leader_epoch=epoch, now_ms=1)


def content(log: PartitionLog) -> Content:
    held: Content = []
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        read = log.read(offset, max_bytes=1 << 20, upper_bound=1 << 40, at_least_one=True)
        for part in read.parts:
            for found in batches(part):
                epoch = found.header.partition_leader_epoch
                held += [(r.offset, epoch, r.value or b"") for r in decode_records(found.view)]
        offset = read.next_offset
    return [entry for entry in held if entry[0] >= log.log_start_offset]


@dataclass(frozen=True)
class Cut:
    """`end`: where the log ends when it is done; its start is `start`."""

    work: Callable[[PartitionLog], Awaitable[None]]
    end: int
    start: int = START
    damaged: bool = False


async def _mend(log: PartitionLog) -> None:
    if log.damage is not None:
        await log.truncate_to(log.damage.offset)


CUTS = {
    "many segments": Cut(lambda log: log.truncate_to(6), end=6),
    "one segment": Cut(lambda log: log.truncate_to(COUNT - 1), end=COUNT - 1),
    "all that can be read": Cut(lambda log: log.truncate_to(START - 1), end=2, start=2),
    "start over": Cut(lambda log: log.truncate_fully(50), end=50, start=50),
    "mend": Cut(_mend, end=DAMAGED, damaged=True),
}

FULL = (errno.ENOSPC, CHANGES)
SCARCE = (errno.EMFILE, ("open", "create", "sync_dir"))
BROKEN = (errno.EIO, CHANGES)


@dataclass
class Process:
    """Fills a log, cuts it while its disk refuses, and tries again when told to."""

    cut: Cut
    number: int
    error: int
    kinds: tuple[str, ...]
    tried: bool = False
    failed: bool = True
    """The disk refused something while the log was cut."""
    refused: RefusedCalls | None = None
    again: asyncio.Event = field(default_factory=asyncio.Event)
    after: Content = field(default_factory=list)

    async def main(self, host: Host) -> None:
        directory = await open_directory(host)
        log = await filled_log(directory, host, damaged=self.cut.damaged)
        if self.cut.damaged:
            with pytest.raises(StorageFailed):
                content(log)
            assert log.damage is not None
            assert log.damage.offset == DAMAGED
            await asyncio.sleep(0.1)  # A note of it is written beside the segments.
        self.refused = RefusedCalls(host, self.number, self.error, kinds=self.kinds)
        with suppress(StorageFailed):
            await self.cut.work(log)
        self.failed = self.refused.failed
        # With the regular checkpoint in between, which may fail, too.
        with suppress(OSError):
            await directory.checkpoint()
        self.tried = True
        await self.again.wait()
        if log.half_cut is not None:
            with pytest.raises(StorageFailed, match="cut"):
                append(log, log.log_end_offset, epoch=9)
            with pytest.raises(StorageFailed, match="cut"):
                await log.truncate_to(1)
            log = await open_log(directory)
        self.judge(log)
        self.after = await finished(log, self.cut)
        await asyncio.Event().wait()

    def judge(self, log: PartitionLog) -> None:
        """Nothing that was to stay is missing, nothing is there that was not before."""
        if log.damage is not None:
            assert log.damage.offset == DAMAGED
            return
        held = content(log)
        before = [entry for entry in BEFORE if entry[0] >= log.log_start_offset]
        assert held == before[: len(held)]
        if self.cut.start == START:
            assert log.log_start_offset == START
            assert log.log_end_offset >= self.cut.end

    async def crashed(self, host: Host) -> Content:
        directory = await open_directory(host)
        log = await open_log(directory)
        assert self.cut.damaged or log.damage is None
        self.judge(log)
        after = await finished(log, self.cut)
        await directory.close_logs()
        await directory.close()
        return after


async def filled_log(directory: LogDirectory, host: Host, *, damaged: bool) -> PartitionLog:
    """Most of it an earlier process's, synced and checkpointed, as the last batches are not."""
    log = await open_log(directory)
    for offset, epoch, _ in BEFORE[:-2]:
        append(log, offset, epoch)
    await log.wait_synced(COUNT - 2)
    await log.advance_log_start(START)
    await directory.close_logs()
    if damaged:
        flip_a_bit(host, log)
    log = await open_log(directory)
    for offset, epoch, _ in BEFORE[-2:]:
        append(log, offset, epoch)
    await log.wait_synced(COUNT)
    return log


def flip_a_bit(host: Host, log: PartitionLog) -> None:
    base_offset = max(base for base in log.segment_base_offsets if base <= DAMAGED)
    node = host.drive.open_file(f"{log.directory}/{base_offset:020}.log", create=False)
    position = 0
    for found in batches(bytes(node.cached)):
        if found.header.base_offset == DAMAGED:
            for image in (node.cached, node.durable):
                image[position + HEADER_SIZE + 2] ^= 1
        position += found.header.size


async def finished(log: PartitionLog, cut: Cut) -> Content:
    """The cut is made, now at the latest, and the log goes on."""
    await cut.work(log)
    assert log.damage is None
    assert (log.log_start_offset, log.log_end_offset) == (cut.start, cut.end)
    held = content(log)
    entry = log.producers.entry(PRODUCER_ID)
    if held:
        assert entry is not None
        assert entry.last_sequence == held[-1][0]
    else:
        assert entry is None
    append(log, cut.end, epoch=9) if held else append_anew(log)
    await log.wait_synced(cut.end + 1)
    assert content(log)[:-1] == held
    return content(log)


def append_anew(log: PartitionLog) -> None:
    log.append_as_leader(encode_batch([Record(value=b"x", timestamp=1)]), leader_epoch=9, now_ms=1)


Then = Callable[[World, Host, Process], Content]


def go_on(world: World, host: Host, process: Process) -> Content:
    with world.on(host.loop):
        process.again.set()
    world.run_until(lambda: bool(process.after) or not host.alive, within=60)
    assert host.exit_error is None
    # Before any checkpoint: what the cut itself has put on the device must do.
    host.power_off(Keep.NONE)
    return process.after


def cut_power(world: World, host: Host, process: Process) -> Content:
    host.power_off(Keep.ANY)
    return ask(world, host, process.crashed)


def fail_at(cut: Cut, number: int, error: int, kinds: tuple[str, ...], then: Then) -> bool:
    """False: the cut was through before so many calls."""
    process = Process(cut, number, error, kinds)
    ended: list[BaseException | None] = []
    with World(number) as world:
        world.on_host_ended = lambda host, error: ended.append(error)
        host = world.host("n1")
        host.start(process.main)
        world.run_until(lambda: process.tried or not host.alive, within=60)
        assert process.refused is not None
        process.refused.heal()
        if host.alive:
            assert error in PASSING_ERRORS or not process.failed
            after = then(world, host, process)
        else:
            assert error not in PASSING_ERRORS, ended
            host.power_off(Keep.ANY)
            after = ask(world, host, process.crashed)
        kept = [entry for entry in BEFORE if START <= entry[0] < cut.end]
        assert after[:-1] == (kept if cut.start == START else [])
        # Once more, as at an ordinary start.
        again = ask(world, host, look)
    assert again == after
    return process.failed


async def look(host: Host) -> Content:
    directory = await open_directory(host)
    log = await open_log(directory)
    assert log.damage is None
    held = content(log)
    await directory.close_logs()
    return held


@pytest.mark.parametrize("cut", CUTS)
def test_c4_a_cut_that_a_full_disk_refuses_anywhere_is_made_later(cut: str) -> None:
    for_every_number(lambda n: fail_at(CUTS[cut], n, *FULL, go_on), at_least=1)


@pytest.mark.parametrize("cut", CUTS)
def test_c4_a_crash_in_a_cut_that_a_full_disk_has_stopped_anywhere_loses_nothing(cut: str) -> None:
    for_every_number(lambda n: fail_at(CUTS[cut], n, *FULL, cut_power), at_least=1)


@pytest.mark.parametrize("cut", CUTS)
def test_c4_a_cut_without_descriptors_is_made_later(cut: str) -> None:
    for_every_number(lambda n: fail_at(CUTS[cut], n, *SCARCE, go_on), at_least=1)


@pytest.mark.parametrize("cut", ["many segments", "mend"])
def test_c4_a_disk_that_breaks_in_a_cut_ends_the_process(cut: str) -> None:
    for_every_number(lambda n: fail_at(CUTS[cut], n, *BROKEN, go_on), at_least=1)


@pytest.mark.parametrize("opened_in_vain", [False, True])
def test_c7_a_log_that_is_half_cut_and_not_open_again_prevents_the_clean_marker(
    opened_in_vain: bool,
) -> None:
    """The next start would take it as it is."""

    async def main(host: Host) -> None:
        directory = await open_directory(host)
        log = await filled_log(directory, host, damaged=False)
        refused = RefusedCalls(host, 8, *FULL[:1], kinds=FULL[1])
        with pytest.raises(StorageFailed):
            await log.truncate_to(6)
        assert log.half_cut is not None
        if opened_in_vain:
            with pytest.raises(OSError, match="No space left"):
                await open_log(directory)
        refused.heal()
        await directory.close_logs()
        assert not await directory.write_clean_marker(1)

    with World(1) as world:
        ask(world, world.host("n1"), main)


def test_d6_producers_that_could_not_be_rolled_back_with_the_log_are_not_believed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A read fails in passing right behind the cut. What was known of a batch that has been cut
    would have its repetition acknowledged, and nobody has it."""
    refusals = [BatchDamaged(base_offset=0, position=0, reason="passes")]

    async def refused(*args: Any) -> ProducerStates:
        if refusals:
            raise refusals.pop()
        return await rebuild_producers(*args)

    async def main(host: Host) -> None:
        directory = await open_directory(host)
        log = await filled_log(directory, host, damaged=False)
        monkeypatch.setattr(partition_log, "rebuild_producers", refused)
        with pytest.raises(StorageFailed):
            await log.truncate_to(6)
        log = await open_log(directory)
        assert content(log) == BEFORE[START:6]
        with pytest.raises(RecordsRejected, match="OUT_OF_ORDER_SEQUENCE_NUMBER"):
            append(log, COUNT - 1, epoch=9)
        append(log, 6, epoch=9)
        await directory.close_logs()

    with World(1) as world:
        ask(world, world.host("n1"), main)
