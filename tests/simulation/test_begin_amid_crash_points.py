"""A log that begins amid its first batch (KAFKA-6975), stopped before each change of the disk."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from uuid import UUID

import pytest

from logboat.jepsen_style.simulation import Host, Keep, World
from logboat.jepsen_style.simulation.crash_point import CrashPoint, ask, for_every_number, live
from logboat.partitions.storage import LogConfig, LogDirectory, PartitionLog
from logboat.wire.records import Record, encode_batch

TOPIC_ID = UUID(int=7)
BASE, START, END = 5, 7, 9
BATCH = encode_batch(
    [Record(value=b"%d" % offset, timestamp=1) for offset in range(BASE, END)],
    base_offset=BASE,
    leader_epoch=3,
)


async def open_directory(host: Host) -> LogDirectory:
    return await LogDirectory.open(
        "data",
        cluster_id="simulated",
        node_id=1,
        disk=host.disk,
        clock=host.clock,
        rng=host.rng,
        on_fatal=host.exit,
    )


@dataclass
class Life:
    number: int
    keep: Keep | None
    crash: CrashPoint | None = None
    synced: bool = False

    async def first(self, host: Host) -> None:
        directory = await open_directory(host)
        log = await directory.create_log("topic", 0, TOPIC_ID, LogConfig())
        old = encode_batch([Record(value=b"old", timestamp=1)])
        log.append_as_leader(old, leader_epoch=1, now_ms=1)
        await log.wait_synced(1)
        await log.truncate_fully(START)
        assert log.begins_amid(BATCH)
        self.crash = CrashPoint(host, self.number, self.keep)
        await log.begin_amid(BATCH, committed=END)
        assert (log.log_start_offset, log.log_end_offset) == (START, END)
        await log.wait_synced(END)
        self.synced = True
        await directory.close_logs()
        await directory.close()

    async def second(self, host: Host) -> None:
        directory = await open_directory(host)
        log = await directory.create_log("topic", 0, TOPIC_ID, LogConfig())
        assert log.damage is None
        assert log.log_start_offset == START
        assert log.log_end_offset in ((END,) if self.synced else (START, END))
        if log.log_end_offset == START:
            await log.begin_amid(BATCH, committed=END)
            await log.wait_synced(END)
        assert bytes(read(log)) == bytes(BATCH)
        await directory.close_logs()
        await directory.close()


def read(log: PartitionLog) -> bytearray:
    found = log.read(START, max_bytes=1 << 20, upper_bound=END, at_least_one=True)
    return bytearray(b"".join(found.parts))


def crash_at(number: int, keep: Keep | None) -> bool:
    life = Life(number, keep)
    with World(number) as world:
        host = world.host("n1")
        live(world, host, life.first)
        ask(world, host, life.second)
    assert life.crash is not None
    return life.crash.reached


@pytest.mark.parametrize("keep", [None, *Keep])
def test_a_log_that_begins_amid_a_batch_is_whole_or_empty_after_a_crash(keep: Keep | None) -> None:
    for_every_number(partial(crash_at, keep=keep), at_least=5)
