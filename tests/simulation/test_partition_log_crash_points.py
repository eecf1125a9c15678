"""A partition's log, stopped before each change of its disk in turn, by kill and by power cuts.

After recovery it is one that the process had, or that a cut was on its way to, and holds everything
that had been called synced (RULES C2, C4, C6); epochs and producers agree with its records (D6).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from uuid import UUID

import pytest

from logboat.jepsen_style.simulation import Host, Keep, World
from logboat.jepsen_style.simulation.crash_point import (
    CrashPoint,
    FailedSync,
    ask,
    for_every_number,
    live,
)
from logboat.partitions.storage import LogConfig, PartitionLog
from logboat.seam import read_file, write_file_atomically
from logboat.wire.records import Batch, Record, batches, decode_records, encode_batch

FOLDER = "data/topic-0"
CHECKPOINT = "data/checkpoint"
CONFIG = LogConfig(segment_bytes=500, index_interval_bytes=100)
PRODUCER_ID = 7

Content = tuple[tuple[int, int, bytes], ...]
"""Offset, leader epoch and value of each record."""


async def open_log(host: Host) -> PartitionLog:
    disk = host.disk
    disk.make_dirs(FOLDER)
    await disk.sync_dir(".")
    await disk.sync_dir("data")
    recovery_point = int(read_file(disk, CHECKPOINT)) if disk.exists(CHECKPOINT) else 0

    async def checkpoint(recovery_point: int, _log_start_offset: int) -> None:
        await write_file_atomically(disk, CHECKPOINT, b"%d" % recovery_point)

    return await PartitionLog.open(
        FOLDER,
        topic="topic",
        partition=0,
        topic_id=UUID(int=1),
        config=CONFIG,
        disk=disk,
        clock=host.clock,
        on_fatal=host.exit,
        recovery_point=recovery_point,
        before_truncation=checkpoint,
    )


def stored(log: PartitionLog) -> list[Batch]:
    found: list[Batch] = []
    position = log.log_start_offset
    while position < log.log_end_offset:
        read = log.read(position, max_bytes=1 << 20, upper_bound=1 << 40, at_least_one=True)
        assert read.next_offset > position
        found += [batch for part in read.parts for batch in batches(part)]
        position = read.next_offset
    return found


def content_of(log: PartitionLog) -> Content:
    return tuple(
        (record.offset, batch.header.partition_leader_epoch, record.value or b"")
        for batch in stored(log)
        for record in decode_records(batch.view)
    )


@dataclass
class Script:
    """What one process did, as far as it got."""

    states: list[Content] = field(default_factory=lambda: [()])
    durable: int = 0
    """Number of the newest state that was called durable."""
    sequence: int = 0
    cutting_to: int | None = None

    async def main(self, host: Host) -> None:
        log = await open_log(host)
        for epoch, cut in ((0, 2), (2, 5), (5, 9)):
            for number in range(6):
                self._append(log, epoch, size=number * 31)
                if number % 3 == 2:
                    await self._sync(log)
            await self._sync(log)
            self.cutting_to = cut
            await log.truncate_to(cut)
            self.cutting_to = None
            self.states.append(self.states[-1][:cut])
            self.durable = len(self.states) - 1
            # What producers remember was rolled back with the records.
            self.sequence = len(self.states[-1])
        self._append(log, 5, size=10)
        await log.close()
        self.durable = len(self.states) - 1

    def _append(self, log: PartitionLog, epoch: int, *, size: int) -> None:
        value = b"%d/%d" % (epoch, self.sequence) + bytes(size)
        log.append_as_leader(batch_of(value, self.sequence), leader_epoch=epoch, now_ms=1)
        self.sequence += 1
        self.states.append((*self.states[-1], (log.log_end_offset - 1, epoch, value)))

    async def _sync(self, log: PartitionLog) -> None:
        state = len(self.states) - 1
        await log.wait_synced(log.log_end_offset)
        self.durable = state


def batch_of(value: bytes, sequence: int) -> bytearray:
    return encode_batch(
        [Record(value=value, timestamp=1)],
        producer_id=PRODUCER_ID,
        producer_epoch=0,
        base_sequence=sequence,
    )


async def recovered(host: Host) -> Content:
    """Reopen, look, and go on: the last record's duplicate is known, the next one is taken."""
    log = await open_log(host)
    assert log.damage is None
    content = content_of(log)
    firsts: dict[int, int] = {}
    for offset, epoch, _ in content:
        firsts.setdefault(epoch, offset)
    # An epoch that has begun at the end and written nothing yet leaves no trace in the records.
    written = [entry for entry in log.epochs.entries if entry.start_offset < log.log_end_offset]
    assert {entry.epoch: entry.start_offset for entry in written} == firsts
    if content:
        offset, _, value = content[-1]
        again = log.append_as_leader(batch_of(value, offset), leader_epoch=9, now_ms=1)
        assert again.duplicate
        assert again.base_offset == offset
    end = log.log_end_offset
    assert end == len(content)
    log.append_as_leader(batch_of(b"on", end), leader_epoch=9, now_ms=1)
    await log.wait_synced(end + 1)
    assert content_of(log) == (*content, (end, 9, b"on"))
    await log.close()
    return content


async def look(host: Host) -> Content:
    """Reopen, and say what counts."""
    log = await open_log(host)
    content = content_of(log)
    assert log.synced_offset == len(content)
    return content


def crash_at(number: int, keep: Keep | None, seed: int, *, cut_after: bool = False) -> bool:
    """Run the script, die before change `number`, and judge. False when it ended before.

    With `cut_after` power is lost right after the recovery, and only then is judged.
    """
    script = Script()
    with World(seed) as world:
        host = world.host("n1")

        crash = CrashPoint(host, number, keep)
        live(world, host, script.main)
        counted: Content = ()
        if cut_after:
            counted = ask(world, host, look)
            host.power_off(Keep.NONE)
        content = ask(world, host, recovered)
    possible = script.states[script.durable :]
    least = min(len(state) for state in possible)
    if script.cutting_to is not None:
        # A cut that is interrupted half-way has removed only a part of what it was to remove.
        least = min(least, script.cutting_to)
    where = f"change {number}, {keep}, seed {seed}"
    assert len(content) >= least, f"{where}: {len(content)} records, {least} were synced"
    assert any(state[: len(content)] == content for state in possible), f"{where}: {content}"
    assert content[: len(counted)] == counted, f"{where}: recovery counted more than was synced"
    return crash.reached


@pytest.mark.parametrize("keep", [None, *Keep])
def test_after_a_crash_before_any_change_of_the_disk_the_log_recovers_all_that_was_synced(
    keep: Keep | None,
) -> None:
    for_every_number(lambda number: crash_at(number, keep, seed=number), at_least=60)


def test_what_recovery_counts_survives_a_loss_of_power_right_after_it() -> None:
    for_every_number(
        lambda number: crash_at(number, None, seed=number, cut_after=True), at_least=60
    )


def test_c4_what_counts_after_a_failed_sync_survives_a_loss_of_power() -> None:
    """The kernel takes the pages for clean: they read back, and a mere sync passes them over."""
    for_every_number(fail_sync, at_least=20)


def fail_sync(number: int) -> bool:
    """Let the `number`-th sync fail; the process ends, what the next one counts must be durable."""
    script = Script()
    with World(number) as world:
        host = world.host("n1")
        sync = FailedSync(host, number, kinds=" effect")
        world.on_host_ended = lambda host, error: None
        live(world, host, script.main)
        counted = ask(world, host, look)
        host.power_off(Keep.NONE)
        kept = ask(world, host, recovered)
    least = min(len(state) for state in script.states[script.durable :])
    if script.cutting_to is not None:
        least = min(least, script.cutting_to)
    assert len(counted) >= least, f"sync {number}"
    assert kept[: len(counted)] == counted, f"sync {number}"
    return sync.failed
