"""Snapshots: their format, how they get on the disk, and that a broken one is never served."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logboat.raftlog.engine_snapshots import SnapshotReceiver, align, predecessor
from logboat.raftlog.journal import Journal
from logboat.raftlog.messages import SnapshotChunk
from logboat.raftlog.snapshots import (
    BrokenSnapshot,
    Snapshot,
    SnapshotId,
    SnapshotStore,
    decode_snapshot,
    encode_snapshot,
)
from logboat.seam import Fatal
from tests.seam.memory_disk import Crashed, MemoryDisk


def snapshot(index: int, term: int = 3, state: bytes = b"state" * 300) -> Snapshot:
    return Snapshot(SnapshotId(index, term), term - 1, b"\0command", state)


def encoded(of: Snapshot) -> bytes:
    return b"".join(bytes(part) for part in encode_snapshot(of))


async def a_store(disk: MemoryDisk) -> SnapshotStore:
    store = SnapshotStore(disk, "q", kept=2)
    store.open()
    return store


@given(st.integers(0, 2**60), st.integers(0, 2**60), st.binary(), st.binary())
def test_decoding_inverts_encoding(index: int, term: int, command: bytes, state: bytes) -> None:
    whole = Snapshot(SnapshotId(index, term), term // 2, command, state)
    assert decode_snapshot(encoded(whole)) == whole


@given(st.data())
def test_every_flipped_bit_and_every_cut_is_noticed(data: st.DataObject) -> None:
    good = bytearray(encoded(snapshot(7, state=b"state")))
    position = data.draw(st.integers(0, len(good) - 1))
    with pytest.raises(BrokenSnapshot):
        decode_snapshot(good[:position])
    good[position] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(BrokenSnapshot):
        decode_snapshot(good)


async def test_at_most_two_are_kept_and_the_newest_is_found_again() -> None:
    disk = MemoryDisk("q")
    store = await a_store(disk)
    for index in (10, 20, 30):
        await store.install(SnapshotId(index, 3), encode_snapshot(snapshot(index)))
    assert len(disk.list("q")) == 2
    disk.power_loss(Random(0), "any")
    again = await a_store(disk)
    assert again.latest == SnapshotId(30, 3)
    assert again.load(SnapshotId(30, 3)) == snapshot(30)


async def test_a_crash_at_any_write_leaves_the_old_or_the_new_snapshot() -> None:
    async def write(disk: MemoryDisk) -> bool:
        store = await a_store(disk)
        try:
            await store.install(SnapshotId(20, 3), encode_snapshot(snapshot(20)))
        except Crashed:
            return False
        return True

    async def prepared() -> MemoryDisk:
        disk = MemoryDisk("q")
        await (await a_store(disk)).install(SnapshotId(10, 3), encode_snapshot(snapshot(10)))
        disk.restart()
        return disk

    disk = await prepared()
    before = disk.steps
    await write(disk)
    for crash_at in range(1, disk.steps - before + 2):
        for seed in range(10):
            disk = await prepared()
            disk.crash_at = disk.steps + crash_at
            done = await write(disk)
            disk.power_loss(Random(seed), "any")
            store = await a_store(disk)
            assert store.latest is not None
            assert store.latest.index == 20 or not done
            assert store.load(store.latest) == snapshot(store.latest.index)
            assert not any(name.endswith(".tmp") for name in disk.list("q"))


async def test_a_broken_snapshot_on_disk_ends_the_process_and_names_the_file() -> None:
    disk = MemoryDisk("q")
    store = await a_store(disk)
    id = SnapshotId(10, 3)
    await store.install(id, encode_snapshot(snapshot(10)))
    disk.flip_bit(f"q/{id.file_name}", 200)
    with pytest.raises(Fatal, match=id.file_name):
        store.load(id)


def chunks(of: bytes, size: int, index: int = 10) -> list[SnapshotChunk]:
    return [
        SnapshotChunk(4, 0, index, 3, len(of), offset, of[offset : offset + size])
        for offset in range(0, len(of), size)
    ]


async def test_chunks_of_one_snapshot_make_it_whole_and_durable() -> None:
    disk = MemoryDisk("q")
    store = await a_store(disk)
    receiver = SnapshotReceiver(store, max_bytes=10_000)
    data = encoded(snapshot(10))
    taken = [receiver.take(2, chunk) for chunk in chunks(data, 100)]
    assert [whole is None for whole in taken] == [True] * (len(taken) - 1) + [False]
    assert taken[-1] is not None
    assert await receiver.install(chunks(data, 100)[-1], taken[-1]) == snapshot(10)
    disk.power_loss(Random(1), "any")
    assert (await a_store(disk)).latest == SnapshotId(10, 3)


async def test_chunks_of_different_transmissions_are_never_mixed() -> None:
    receiver = SnapshotReceiver(await a_store(MemoryDisk("q")), max_bytes=10_000)
    data = encoded(snapshot(10))
    parts = chunks(data, 600)
    assert len(parts) == 3
    assert receiver.take(2, parts[0]) is None
    assert receiver.take(3, parts[1]) is None  # another sender
    assert receiver.take(2, parts[1]) is None
    assert receiver.take(2, parts[2]) is None
    assert receiver.take(2, parts[0]) is None
    assert receiver.take(2, parts[2]) is None  # one is missing
    for part in parts[:-1]:
        assert receiver.take(2, part) is None
    assert receiver.take(2, parts[-1]) == bytearray(data)


async def test_a_broken_received_snapshot_ends_the_process_and_is_not_installed() -> None:
    disk = MemoryDisk("q")
    store = await a_store(disk)
    receiver = SnapshotReceiver(store, max_bytes=10_000)
    data = bytearray(encoded(snapshot(10)))
    data[100] ^= 1
    last = chunks(bytes(data), 5000)[-1]
    with pytest.raises(Fatal, match="broken"):
        await receiver.install(last, data)
    mislabelled = chunks(encoded(snapshot(11)), 5000, index=10)[-1]
    with pytest.raises(Fatal, match="announced"):
        await receiver.install(mislabelled, bytearray(encoded(snapshot(11))))
    assert store.latest is None
    assert disk.list("q") == []


async def test_a_snapshot_beyond_the_limit_is_refused_by_its_first_chunk() -> None:
    receiver = SnapshotReceiver(await a_store(MemoryDisk("q")), max_bytes=1000)
    with pytest.raises(Fatal, match="limit"):
        receiver.take(2, SnapshotChunk(4, 0, 10, 3, 1001, 0, b""))


# The journal and the snapshots of one node, after a crash between the two.


async def a_journal(*terms: int, first: int = 1) -> Journal:
    journal = await Journal.open(MemoryDisk("q"), "q", segment_bytes=4096, rng=Random(0))
    journal.fresh = False
    journal.set_term(max(terms), None)
    for index, term in enumerate(terms, start=first):
        journal.append(index, term, b"\0command")
    return journal


async def with_snapshot(index: int, term: int) -> SnapshotStore:
    store = await a_store(MemoryDisk("q"))
    await store.install(SnapshotId(index, term), encode_snapshot(snapshot(index, term)))
    return store


async def test_a_journal_not_yet_compacted_keeps_everything_behind_the_snapshot() -> None:
    # The engine would find its log to begin elsewhere and empty it.
    journal = await a_journal(1, 1, 1, 1, 1, 1)
    align(journal, await with_snapshot(4, 1), fresh=False)
    assert [index for _, index, _ in journal.entries] == [3, 4, 5, 6]
    assert journal.commit_index == 4


async def test_a_journal_that_ends_before_the_snapshot_begins_with_it() -> None:
    journal = await a_journal(1, 1)
    align(journal, await with_snapshot(40, 3), fresh=False)
    assert journal.entries == [predecessor(snapshot(40)), (b"\0command", 40, 3)]
    assert (journal.term, journal.voted_for) == (3, None)


async def test_a_tail_that_contradicts_the_snapshot_is_dropped() -> None:
    journal = await a_journal(1, 1, 2, 2, 2)
    align(journal, await with_snapshot(4, 3), fresh=False)
    assert [(index, term) for _, index, term in journal.entries] == [(3, 2), (4, 3)]


async def test_a_journal_whose_snapshot_is_missing_stops_the_node() -> None:
    journal = await a_journal(1, 1, 1, first=30)
    with pytest.raises(Fatal, match="no snapshot"):
        align(journal, await a_store(MemoryDisk("q")), fresh=False)
    with pytest.raises(Fatal, match="newest snapshot ends at 4"):
        align(journal, await with_snapshot(4, 1), fresh=False)


async def test_a_snapshot_whose_journal_is_missing_stops_the_node() -> None:
    journal = await Journal.open(MemoryDisk("q"), "q", segment_bytes=4096, rng=Random(0))
    with pytest.raises(Fatal, match="no journal"):
        align(journal, await with_snapshot(4, 1), fresh=journal.fresh)
