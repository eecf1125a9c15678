"""Rolls, retention, DeleteRecords and swaps of compacted segments, stopped before each change of
the disk in turn, by kill and by power cuts.

Whatever is left: the start lies where it was moved to, or where an earlier one was checkpointed;
from there on every record that was synced is there, with its own bytes, except those that
compaction took, and of a swap under way all that it was to take are gone or none is.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from uuid import UUID

import pytest

from logboat.jepsen_style.simulation import Host, Keep, World
from logboat.jepsen_style.simulation.crash_point import CrashPoint
from logboat.partitions.storage import LogConfig, LogDirectory, PartitionLog
from logboat.partitions.storage.cleaner.batch_rebuild import emptied
from logboat.partitions.storage.retention import outlived
from logboat.partitions.storage.segment import CLEANED, Segment
from logboat.wire.records import Record, batches, decode_records, encode_batch

TOPIC_ID = UUID(int=1)
KEY = ("topic", 0)
CONFIG = LogConfig(
    segment_bytes=350,
    index_interval_bytes=100,
    compact=True,
    delete=True,
    retention_bytes=700,
    retention_ms=-1,
    file_delete_delay_ms=5,
)


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
    for stored in directory.stored_logs():
        return await directory.open_log(stored, CONFIG)
    return await directory.create_log(*KEY, TOPIC_ID, CONFIG)


def value_of(offset: int) -> bytes:
    return b"value %d" % offset + bytes(offset % 3 * 20)


def offsets_in(log: PartitionLog) -> list[int]:
    """Of the records that can be read, each of which has the bytes it was written with."""
    found = []
    position = log.log_start_offset
    while position < log.log_end_offset:
        read = log.read(position, max_bytes=1 << 20, upper_bound=1 << 40, at_least_one=True)
        assert read.next_offset > position
        for part in read.parts:
            for batch in batches(part):
                for record in decode_records(batch.view):
                    assert record.value == value_of(record.offset)
                    if record.offset >= log.log_start_offset:
                        found.append(record.offset)
        position = read.next_offset
    return found


@dataclass
class Script:
    """What one process did, as far as it got."""

    ended: bool = False
    written: int = 0
    synced: int = 0
    starts: list[int] = field(default_factory=lambda: [0])
    """Where the start was moved to."""
    checkpointed: int = 0
    """Number of the start that is durable."""
    taken: set[int] = field(default_factory=set)
    """By compaction, for good."""
    being_taken: set[int] = field(default_factory=set)

    async def main(self, host: Host) -> None:
        directory = await open_directory(host)
        log = await open_log(directory)
        await self.write(log, 9)
        await self.compact(log, host, segments=2)
        await self.write(log, 4)
        await self.move(log, 5)
        await self.checkpoint(directory)
        await self.write(log, 7)
        await self.retain(log)
        await self.compact(log, host, segments=1)
        await self.write(log, 3)
        await self.move(log, log.log_end_offset)
        await self.write(log, 2)
        await self.checkpoint(directory)
        await directory.close()
        self.ended = True

    async def write(self, log: PartitionLog, count: int) -> None:
        for _ in range(count):
            offset = log.log_end_offset
            record = Record(key=b"k", value=value_of(offset), timestamp=1)
            self.written = offset + 1
            log.append_as_leader(encode_batch([record]), leader_epoch=offset // 4, now_ms=1)
        await log.wait_synced(log.log_end_offset)
        self.synced = log.log_end_offset

    async def move(self, log: PartitionLog, offset: int) -> None:
        self.starts.append(offset)
        await log.advance_log_start(offset)

    async def retain(self, log: PartitionLog) -> None:
        end = log.log_end_offset
        found = outlived(
            log._segments.all,
            CONFIG,
            log_start_offset=5,
            high_watermark=end,
            now_ms=log._clock.now_ms(),
        )
        assert found.by_size > 0
        self.starts.append(log.segment_base_offsets[found.count])
        await log.delete_outlived(high_watermark=end)
        assert log.log_start_offset == self.starts[-1]

    async def checkpoint(self, directory: LogDirectory) -> None:
        number = len(self.starts) - 1
        await directory.checkpoint()
        self.checkpointed = number

    async def compact(self, log: PartitionLog, host: Host, *, segments: int) -> None:
        """Every second record goes."""
        old = log.synced_segments[:segments]
        new = Segment.create(
            log.directory, old[0].base_offset, log._files, CONFIG, 1, state=CLEANED
        )
        taken = set()
        for segment in old:
            for place in segment.scan():
                header = place.header
                data = segment.read_batch(place)
                if header.base_offset % 2:
                    taken.add(header.base_offset)
                    if header.next_offset < old[-1].next_offset:
                        continue
                    data = bytes(emptied(header))
                new.file().append([data])
                new.note(header.last_offset, len(data), header.max_timestamp)
        self.being_taken = taken
        assert await log.replace_segments(old, new)
        self.taken |= taken
        self.being_taken = set()


async def recovered(host: Host) -> tuple[int, int, list[int]]:
    """Reopen, look, go on, and look again after a clean restart."""
    directory = await open_directory(host)
    log = await open_log(directory)
    assert log.damage is None
    found = offsets_in(log)
    end = log.log_end_offset
    names = host.disk.list(log.directory)
    assert not [name for name in names if name.endswith((".cleaned", ".swap", ".deleted"))]
    record = Record(key=b"k", value=value_of(end), timestamp=1)
    log.append_as_leader(encode_batch([record]), leader_epoch=99, now_ms=1)
    await log.wait_synced(end + 1)
    start = log.log_start_offset
    await directory.close_logs()
    await directory.write_clean_marker(1)
    await directory.close()
    directory = await open_directory(host)
    log = await open_log(directory)
    assert directory.clean
    assert log.damage is None
    assert (log.log_start_offset, offsets_in(log)) == (start, [*found, end])
    await directory.close()
    return start, end, found


def crash_at(number: int, keep: Keep | None) -> bool:
    """Run the script, die before change `number`, and judge. False when it ended before."""
    script = Script()
    with World(number) as world:
        host = world.host("n1")
        crash = CrashPoint(host, number, keep)
        host.start(script.main)
        world.run_until(lambda: not host.alive, within=60)
        host.drive.on_call = None
        if not crash.reached:
            assert script.ended
        done = host.start(recovered)
        world.run_until(lambda: not host.alive, within=60)
        start, end, found = done.result()
    where = f"change {number}, {keep}: from {start} to {end} {found}"
    assert start >= script.starts[script.checkpointed], where
    assert start <= script.starts[-1], where
    assert end <= script.written, where
    assert end >= max(script.synced, start), where
    expected = {offset for offset in range(start, end)} - script.taken
    undecided = script.being_taken & expected
    assert set(found) in (expected, expected - undecided), where
    return crash.reached


@pytest.mark.parametrize(
    ("keep", "step"),
    [(None, 1), (Keep.NONE, 1), (Keep.PREFIX, 2), (Keep.ANY, 2), (Keep.ALL, 4)],
)
def test_a_crash_before_any_change_of_the_disk_deletes_what_was_to_go_or_not_and_nothing_else(
    keep: Keep | None, step: int
) -> None:
    number = step
    while crash_at(number, keep):
        number += step
    assert number > 100
