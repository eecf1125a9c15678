"""A node's data directory, stopped before each change while it is formatted and given a log.

Once `open` has returned, the directory id is for ever (RULES B3); once `create_log` has returned,
the log is there with its topic id, and what it called synced with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from uuid import UUID

import pytest

from logboat.jepsen_style.simulation import Host, Keep, World
from logboat.jepsen_style.simulation.crash_point import CrashPoint, ask, for_every_number, live
from logboat.partitions.storage import LogConfig, LogDirectory
from logboat.wire.records import Record, encode_batch

TOPIC_ID = UUID(int=7)


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
    created: bool = False
    synced_offset: int = 0
    clean: bool = False

    async def main(self, host: Host) -> None:
        directory = await open_directory(host)
        self.directory_id = directory.directory_id
        log = await directory.create_log("topic", 0, TOPIC_ID, LogConfig())
        self.created = True
        batch = encode_batch([Record(value=b"x", timestamp=1)])
        log.append_as_leader(batch, leader_epoch=1, now_ms=1)
        await log.wait_synced(1)
        self.synced_offset = 1
        await directory.checkpoint({("topic", 0): 1})
        await directory.close_logs()
        await directory.write_clean_marker(5)
        self.clean = True
        await directory.close()


async def inspect(host: Host) -> Promises:
    directory = await open_directory(host)
    found = Promises(directory.directory_id, clean=directory.clean)
    for stored in directory.stored_logs():
        assert stored.topic_id == TOPIC_ID
        log = await directory.open_log(stored, LogConfig())
        assert log.damage is None
        found.created = True
        found.synced_offset = log.synced_offset
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
    assert found.created or not promised.created
    assert again.created == found.created
    assert found.synced_offset >= promised.synced_offset
    assert again.synced_offset >= found.synced_offset
    assert found.clean or not promised.clean
    return crash.reached


@pytest.mark.parametrize("keep", [None, *Keep])
def test_what_the_data_directory_has_promised_survives_a_crash_before_any_change(
    keep: Keep | None,
) -> None:
    for_every_number(partial(crash_at, keep=keep), at_least=20)
