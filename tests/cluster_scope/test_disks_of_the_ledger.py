"""Which batches a disk holds, as the ledger is told: whole ones, one after the other."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Iterator

import pytest

from logboat.jepsen_style.clients.batches import Batch, encode_batch
from logboat.jepsen_style.cluster_scope.disks import NodeDisk
from logboat.jepsen_style.simulation import Host, World

KEY = "orders-0"
FOLDER = f"data/{KEY}"


class Seen:
    def __init__(self) -> None:
        self.appeared_at: list[int] = []
        self.vanished_at: list[int] = []

    def appeared(self, node_id: int, key: str, batch: Batch, data: bytes) -> None:
        self.appeared_at.append(batch.base_offset)

    def vanished(self, node_id: int, key: str, batch: Batch) -> None:
        self.vanished_at.append(batch.base_offset)


def batch(base_offset: int, *, topic: str = KEY, records: int = 3) -> bytes:
    """As a log holds it: nothing that its checksum covers says where it belongs."""
    values = [f"{topic} {base_offset + number}".encode() for number in range(records)]
    data = bytearray(encode_batch(values, timestamp_ms=1))
    struct.pack_into(">q", data, 0, base_offset)
    return bytes(data)


def write(host: Host, first: int, *batches: bytes) -> None:
    host.disk.make_dirs(FOLDER)
    host.disk.open(f"{FOLDER}/{first:020}.log", create=True).append(list(batches))


@pytest.fixture
def host() -> Iterator[Host]:
    with World(1) as world:
        host = world.host("n1")
        host.start(_idle)
        yield host


async def _idle(_: Host) -> None:
    await asyncio.Event().wait()


def test_batches_that_follow_on_each_other_are_held(host: Host) -> None:
    seen = Seen()
    disk = NodeDisk(1, host.drive, seen)
    write(host, 0, batch(0), batch(3))
    write(host, 6, batch(6))
    assert seen.appeared_at == [0, 3, 6]
    assert disk.end(KEY) == 9
    assert not disk.hides_bytes(KEY)


def test_a_whole_batch_where_another_belongs_is_not_held_and_hides_nothing_else(
    host: Host,
) -> None:
    """What a misdirected write may leave: the batch that it covers is gone, and no other one."""
    write(host, 0, batch(0), batch(3))
    write(host, 6, batch(3, topic="clicks-0"), batch(9))
    seen = Seen()
    disk = NodeDisk(1, host.drive, seen)
    assert seen.appeared_at == [0, 3]
    assert disk.hides_bytes(KEY)
    # The broker cuts it and fills the segment again.
    file = host.disk.open(f"{FOLDER}/{6:020}.log")
    file.truncate(0)
    assert [held.base_offset for held in disk.batches(KEY)] == [0, 3]
    file.append([batch(6)])
    assert [held.base_offset for held in disk.batches(KEY)] == [0, 3, 6]
    assert seen.vanished_at == []
    assert not disk.hides_bytes(KEY)
