"""A node's data directory, stopped before each change while it is formatted and given logs.

Once `open` has returned, the directory id is for ever (RULES B3); once `create_log` has returned,
the log is there with its topic id, and what it called synced with it. Logs that are made side by
side share syncs of the directory, and each may rely on its own.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from functools import partial
from uuid import UUID

import pytest

from logboat.jepsen_style.simulation import Host, Keep, World
from logboat.jepsen_style.simulation.crash_point import CrashPoint, ask, for_every_number, live
from logboat.partitions.storage import LogConfig, LogDirectory
from logboat.wire.records import Record, encode_batch

TOPIC_ID = UUID(int=7)
LOGS = 2


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
class Promises:
    """What one process had promised when it died."""

    directory_id: UUID | None = None
    synced: dict[int, int] = field(default_factory=dict)
    """Partition -> synced end, of those that were created."""
    clean: bool = False

    async def main(self, host: Host) -> None:
        directory = await open_directory(host)
        self.directory_id = directory.directory_id
        await asyncio.gather(*(self.fill(directory, number) for number in range(LOGS)))
        await directory.checkpoint(lambda log: 1)
        await directory.close_logs()
        await directory.write_clean_marker(5)
        self.clean = True
        await directory.close()

    async def fill(self, directory: LogDirectory, number: int) -> None:
        log = await directory.create_log("topic", number, TOPIC_ID, LogConfig())
        self.synced[number] = 0
        batch = encode_batch([Record(value=b"x", timestamp=1)])
        log.append_as_leader(batch, leader_epoch=1, now_ms=1)
        await log.wait_synced(1)
        self.synced[number] = 1


async def inspect(host: Host) -> Promises:
    directory = await open_directory(host)
    found = Promises(directory.directory_id, clean=directory.clean)
    for stored in directory.stored_logs():
        assert stored.topic_id == TOPIC_ID
        log = await directory.open_log(stored, LogConfig())
        assert log.damage is None
        found.synced[stored.partition] = log.synced_offset
    await directory.close_logs()
    return found


def crash_at(number: int, keep: Keep | None) -> bool:
    promised = Promises()
    with World(number) as world:
        host = world.host("n1")
        crash = CrashPoint(host, number, keep)
        live(world, host, promised.main)
        # Power is lost once more: what the first start after the crash says must be durable, too.
        found = ask(world, host, inspect)
        host.power_off(Keep.NONE)
        again = ask(world, host, inspect)
    assert promised.directory_id in (None, found.directory_id)
    assert again.directory_id == found.directory_id
    for number, synced_offset in promised.synced.items():
        assert found.synced[number] >= synced_offset
    for number, synced_offset in found.synced.items():
        assert again.synced[number] >= synced_offset
    assert found.clean or not promised.clean
    return crash.reached


@pytest.mark.parametrize("keep", [None, *Keep])
def test_what_the_data_directory_has_promised_survives_a_crash_before_any_change(
    keep: Keep | None,
) -> None:
    for_every_number(partial(crash_at, keep=keep), at_least=20)
