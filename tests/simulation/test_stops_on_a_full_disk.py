"""An orderly stop on a disk that is full: it ends, and what could not be written is read again."""

from __future__ import annotations

import asyncio
import errno
from dataclasses import dataclass
from uuid import UUID

import pytest

from logboat.jepsen_style.simulation import Host, Keep, World
from logboat.jepsen_style.simulation.crash_point import (
    CHANGES,
    RefusedCalls,
    ask,
    for_every_number,
)
from logboat.partitions.storage import LogConfig, LogDirectory, PartitionLog, RecordsRejected
from logboat.wire.records import Record, batches, decode_records, encode_batch

ROOM = tuple(kind for kind in CHANGES if kind not in ("truncate", "remove"))
DESCRIPTORS = ("open", "create", "sync_dir")
TOPIC_ID = UUID(int=1)
COUNT = 9
PRODUCER_ID = 7
WITHIN_S = 10.0
"""Simulated seconds: far more than a log waits, and no wait for ever."""

MODES = {
    "synced": LogConfig(segment_bytes=350, index_interval_bytes=100),
    "page-cache": LogConfig(segment_bytes=350, index_interval_bytes=100, synced=False),
}


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


def append(log: PartitionLog, offset: int, *, sequence: int | None = None) -> None:
    data = encode_batch(
        [Record(value=b"%d" % offset, timestamp=1)],
        producer_id=PRODUCER_ID,
        producer_epoch=0,
        base_sequence=offset if sequence is None else sequence,
    )
    log.append_as_leader(data, leader_epoch=offset // 4, now_ms=1)


def values(log: PartitionLog) -> list[bytes]:
    held: list[bytes] = []
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        read = log.read(offset, max_bytes=1 << 20, upper_bound=1 << 40, at_least_one=True)
        for part in read.parts:
            held += [r.value or b"" for found in batches(part) for r in decode_records(found.view)]
        offset = read.next_offset
    return held


@dataclass
class Stop:
    number: int
    error: int
    kinds: tuple[str, ...]
    config: LogConfig
    under: str = ""
    """Where the disk refuses."""
    refused: RefusedCalls | None = None
    clean: bool = False

    async def first(self, host: Host) -> None:
        directory = await open_directory(host)
        log = await directory.create_log("topic", 0, TOPIC_ID, self.config)
        for offset in range(COUNT - 2):
            append(log, offset)
        await log.wait_synced(COUNT - 2)
        await asyncio.sleep(0.1)
        await directory.checkpoint()
        for offset in range(COUNT - 2, COUNT):  # The last begins an epoch.
            append(log, offset)
        await log.wait_synced(COUNT)
        self.refused = RefusedCalls(
            host, self.number, self.error, kinds=self.kinds, under=self.under
        )
        began = host.loop.time()
        await directory.close_logs()
        self.clean = await directory.write_clean_marker(3)
        await directory.close()
        assert host.loop.time() - began < WITHIN_S

    async def second(self, host: Host) -> None:
        directory = await open_directory(host)
        # A marker whose name could not be synced is there all the same, and true.
        assert directory.clean or not self.clean
        log = await directory.create_log("topic", 0, TOPIC_ID, self.config)
        assert log.damage is None
        assert values(log) == [b"%d" % offset for offset in range(COUNT)]
        entry = log.producers.entry(PRODUCER_ID)
        assert entry is not None
        assert entry.last_sequence == COUNT - 1
        with pytest.raises(RecordsRejected, match="OUT_OF_ORDER"):
            append(log, COUNT, sequence=COUNT + 1)
        append(log, COUNT)
        await log.wait_synced(COUNT + 1)
        await directory.close_logs()
        assert await directory.write_clean_marker(4)
        await directory.close()


def stop_at(stop: Stop, *, power_cut: bool) -> bool:
    with World(stop.number) as world:
        host = world.host("n1")
        ask(world, host, stop.first)
        assert stop.refused is not None
        stop.refused.heal()
        assert not (stop.refused.failed and stop.clean)
        if power_cut:
            host.power_off(Keep.NONE)
        ask(world, host, stop.second)
    return stop.refused.failed


@pytest.mark.parametrize("mode", MODES)
def test_c7_an_orderly_stop_on_a_full_disk_ends_and_loses_nothing(mode: str) -> None:
    for_every_number(
        lambda n: stop_at(Stop(n, errno.ENOSPC, ROOM, MODES[mode]), power_cut=False), at_least=8
    )


def test_c7_an_orderly_stop_without_descriptors_ends_and_loses_nothing() -> None:
    for_every_number(
        lambda n: stop_at(Stop(n, errno.EMFILE, DESCRIPTORS, MODES["synced"]), power_cut=False),
        at_least=5,
    )


def test_c7_a_log_that_found_no_room_prevents_the_clean_marker_that_would_find_some() -> None:
    stop = Stop(1, errno.ENOSPC, ROOM, MODES["synced"], under="data/topic-0")
    assert stop_at(stop, power_cut=False)
    assert not stop.clean


@pytest.mark.parametrize("mode", MODES)
def test_c2_what_a_stop_on_a_full_disk_leaves_survives_a_loss_of_power(mode: str) -> None:
    """In page-cache mode, too: what needs no room is synced."""
    for_every_number(
        lambda n: stop_at(Stop(n, errno.ENOSPC, ROOM, MODES[mode]), power_cut=True), at_least=8
    )
