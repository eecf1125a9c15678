"""Files of a stopped node, changed as a disk changes them; and what is then done for the node."""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random
from uuid import UUID

import pytest

from logboat.client.cluster.folder import ClusterFolder
from logboat.jepsen_style.processes.caretaker import TRIES, WELL_S, Caretaker
from logboat.jepsen_style.processes.damage import damage, wipe
from logboat.jepsen_style.processes.keeper import Keeper
from logboat.jepsen_style.schedule import Fault, Target
from logboat.jepsen_style.schedule.damage import SECTOR_BYTES
from logboat.jepsen_style.schedule.kinds import Option
from logboat.partitions.storage.meta_properties import decode_uuid, encode_uuid
from logboat.testing import LocalCluster

LOG = "orders-0/00000000000000000000.log"
FILES = {
    LOG: bytes(range(1, 251)) * 8 + bytes(4_000),
    "orders-0/00000000000000000000.index": b"index" * 300,
    "orders-0/leader-epoch-checkpoint": b"0\n1\n0 0\n",
    "quorum/journal-1.log": b"journal" * 300,
    "meta.properties": b"version=1\n",
}


def data_directory(folder: Path) -> Path:
    for name, content in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder


def changed(folder: Path) -> dict[str, bytes]:
    return {
        name: content
        for name, before in FILES.items()
        if (content := (folder / name).read_bytes()) != before
    }


def is_empty(folder: Path) -> bool:
    return folder.is_dir() and not any(folder.iterdir())


def fault(kind: str, **options: Option) -> Fault:
    return Fault(0, kind, Target("node", number=1), 100, options)


@pytest.mark.parametrize(
    ("place", "name"),
    [
        ("log", LOG),
        ("index", "orders-0/00000000000000000000.index"),
        ("checkpoint", "orders-0/leader-epoch-checkpoint"),
        ("quorum", "quorum/journal-1.log"),
    ],
)
def test_a_bit_is_flipped_in_a_file_of_the_chosen_place(
    tmp_path: Path, place: str, name: str
) -> None:
    data = data_directory(tmp_path)
    damage(data, fault("bit-flip", place=place, where=0.9, bit=3), Random(1))
    ((found, content),) = changed(data).items()
    assert found == name
    bits = [(a ^ b).bit_count() for a, b in zip(content, FILES[name], strict=True)]
    assert sum(bits) == 1
    # The rest of a preallocated file holds nothing that could be missed.
    assert bits.index(1) < len(FILES[name].rstrip(b"\0"))


def test_a_stale_block_reads_as_zeros_within_what_was_written(tmp_path: Path) -> None:
    data = data_directory(tmp_path)
    damage(data, fault("stale-block", where=0.4), Random(1))
    content = changed(data)[LOG]
    sector = content[SECTOR_BYTES : 2 * SECTOR_BYTES]
    assert not any(sector)
    assert content[:SECTOR_BYTES] == FILES[LOG][:SECTOR_BYTES]
    assert content[2 * SECTOR_BYTES :] == FILES[LOG][2 * SECTOR_BYTES :]


def test_a_misdirected_write_leaves_the_file_as_long_as_it_was(tmp_path: Path) -> None:
    data = data_directory(tmp_path)
    damage(data, fault("misdirected-write", place="quorum", where=0.9), Random(3))
    content = changed(data)["quorum/journal-1.log"]
    assert len(content) == len(FILES["quorum/journal-1.log"])


def test_where_there_is_no_file_nothing_is_changed(tmp_path: Path) -> None:
    assert damage(tmp_path, fault("bit-flip"), Random(1)) is None


def test_a_wiped_disk_is_an_empty_directory(tmp_path: Path) -> None:
    wipe(data_directory(tmp_path))
    assert is_empty(tmp_path)


def test_a_directory_id_is_read_as_the_broker_writes_it() -> None:
    written = UUID(int=0x123456789ABCDEF0FEDCBA9876543210)
    assert decode_uuid(encode_uuid(written)) == written


class NeverStarts(LocalCluster):
    """A cluster of one node, which once dead ends as soon as it begins."""

    folder = ClusterFolder("/nowhere")

    def __init__(self, data: Path) -> None:
        super().__init__(1)
        self.lives = True
        self.starts = 0
        self._data = data

    @property
    def node_ids(self) -> list[int]:
        return [1]

    def data_dir(self, node_id: int) -> str:
        return str(self._data)

    def is_running(self, node_id: int) -> bool:
        return self.lives

    def start(self, node_id: int, *, wait: bool = True) -> None:
        self.starts += 1


def test_a_damaged_disk_on_which_no_start_succeeds_is_replaced(tmp_path: Path) -> None:
    async def test() -> None:
        cluster = NeverStarts(data_directory(tmp_path))
        keeper = Keeper(cluster)
        caretaker = Caretaker(cluster, keeper)
        caretaker.take_on(1)
        cluster.lives = False
        for _ in range(TRIES):
            await caretaker.look_after(1)
        assert changed(tmp_path) == {}
        await caretaker.look_after(1)
        assert is_empty(tmp_path)
        assert cluster.starts == TRIES + 1
        assert keeper.failures == []
        assert keeper.dead() == []

    asyncio.run(test())


class SlowToEnd(Caretaker):
    """Each process lives long, and ends without having answered anybody; `answers` changes that."""

    answers = False

    def _answers(self, node_id: int) -> bool:
        return self.answers

    async def long_life(self, cluster: NeverStarts) -> None:
        cluster.lives = True
        self._nodes[1] -= 2 * WELL_S
        await self.look_after(1)
        cluster.lives = False
        await self.look_after(1)


def test_who_lives_long_without_an_answer_has_not_started_well(tmp_path: Path) -> None:
    """On a busy machine it takes its time to find out that its disk is damaged."""

    async def test() -> None:
        cluster = NeverStarts(data_directory(tmp_path))
        caretaker = SlowToEnd(cluster, Keeper(cluster))
        caretaker.take_on(1)
        for _ in range(TRIES):
            await caretaker.long_life(cluster)
        assert changed(tmp_path) == {}
        await caretaker.long_life(cluster)
        assert is_empty(tmp_path)

    asyncio.run(test())


def test_who_has_answered_once_is_given_all_its_starts_again(tmp_path: Path) -> None:
    async def test() -> None:
        cluster = NeverStarts(data_directory(tmp_path))
        caretaker = SlowToEnd(cluster, Keeper(cluster))
        caretaker.take_on(1)
        for _ in range(TRIES):
            await caretaker.long_life(cluster)
        caretaker.answers = True
        await caretaker.long_life(cluster)
        caretaker.answers = False
        for _ in range(TRIES):
            await caretaker.long_life(cluster)
        assert changed(tmp_path) == {}

    asyncio.run(test())
