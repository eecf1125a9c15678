"""The files of replicas are read and compared without the broker's code; sabotage is precise."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from logboat.testing.demo.sabotage import cut_batch
from logboat.testing.log_files import DamagedLog, partition_folder, stored_batches
from logboat.testing.replica_equality import ReplicaView, first_difference
from logboat.wire.records import Record, encode_batch


def batch(base_offset: int, count: int, epoch: int = 0) -> bytes:
    records = [Record(value=b"%d" % (base_offset + n), timestamp=1) for n in range(count)]
    return bytes(encode_batch(records, base_offset=base_offset, leader_epoch=epoch))


def write_replica(data_dir: Path, segments: dict[int, list[bytes]]) -> str:
    folder = Path(partition_folder(str(data_dir), "t", 0))
    folder.mkdir(parents=True)
    for base_offset, batches in segments.items():
        (folder / f"{base_offset:020d}.log").write_bytes(b"".join(batches))
        (folder / f"{base_offset:020d}.index").write_bytes(b"")
    return str(folder)


def test_batches_are_found_across_segments(tmp_path: Path) -> None:
    folder = write_replica(tmp_path, {0: [batch(0, 2), batch(2, 1, epoch=3)], 3: [batch(3, 4)]})
    found = [(b.base_offset, b.next_offset, b.leader_epoch) for b in stored_batches(folder)]
    assert found == [(0, 2, 0), (2, 3, 3), (3, 7, 0)]


def test_preallocated_zeros_end_a_segment(tmp_path: Path) -> None:
    folder = write_replica(tmp_path, {0: [batch(0, 2), bytes(4096)]})
    assert len(list(stored_batches(folder))) == 1


@pytest.mark.parametrize("harm", ["torn", "flipped"])
def test_damage_is_named_not_skipped(tmp_path: Path, harm: str) -> None:
    good = bytearray(batch(0, 2))
    if harm == "torn":
        del good[-1:]
    else:
        good[-1] ^= 1
    folder = write_replica(tmp_path, {0: [bytes(good)]})
    with pytest.raises(DamagedLog):
        list(stored_batches(folder))


def views(folders: list[str], *, starts: list[int], watermark: int) -> dict[int, ReplicaView]:
    return {
        node_id: ReplicaView(folder, start, watermark)
        for node_id, (folder, start) in enumerate(zip(folders, starts, strict=True), 1)
    }


def test_replicas_are_equal_though_their_segments_differ(tmp_path: Path) -> None:
    first = write_replica(tmp_path / "1", {0: [batch(0, 2), batch(2, 2)]})
    second = write_replica(tmp_path / "2", {0: [batch(0, 2)], 2: [batch(2, 2)]})
    assert first_difference(views([first, second], starts=[0, 0], watermark=4)) is None


def test_only_what_all_still_hold_up_to_the_watermark_is_compared(tmp_path: Path) -> None:
    first = write_replica(tmp_path / "1", {0: [batch(0, 2), batch(2, 2), batch(4, 1)]})
    second = write_replica(tmp_path / "2", {2: [batch(2, 2), batch(4, 1, epoch=9)]})
    assert first_difference(views([first, second], starts=[0, 2], watermark=4)) is None


@pytest.mark.parametrize("second", [[batch(0, 2)], [batch(0, 2), batch(2, 2, epoch=1)], []])
def test_a_missing_or_different_batch_is_a_difference(tmp_path: Path, second: list[bytes]) -> None:
    folders = [
        write_replica(tmp_path / "1", {0: [batch(0, 2), batch(2, 2)]}),
        write_replica(tmp_path / "2", {0: second}),
    ]
    difference = first_difference(views(folders, starts=[0, 0], watermark=4))
    assert difference == f"nodes 1 and 2 differ at offset {2 if second else 0}"


def test_sabotage_cuts_the_batch_and_all_that_would_tell_of_it(tmp_path: Path) -> None:
    data_dirs = [tmp_path / "1", tmp_path / "2"]
    for data_dir in data_dirs:
        folder = write_replica(data_dir, {0: [batch(0, 2), batch(2, 3)], 5: [batch(5, 1)]})
        (data_dir / ".kafka_cleanshutdown").write_text("")
    assert cut_batch([str(data_dir) for data_dir in data_dirs], "t", 0, 3) == 4
    for data_dir in data_dirs:
        folder = partition_folder(str(data_dir), "t", 0)
        assert [b.base_offset for b in stored_batches(folder)] == [0]
        assert os.listdir(folder) == [f"{0:020d}.log"]
        assert not (data_dir / ".kafka_cleanshutdown").exists()


def test_sabotage_of_an_offset_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    write_replica(tmp_path, {0: [batch(0, 2)]})
    with pytest.raises(ValueError, match="does not hold offset 2"):
        cut_batch([str(tmp_path)], "t", 0, 2)
