"""The same log, cleaned by us and by Kafka's own cleaner: the same batches are left."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from uuid import UUID

import pytest

from logboat.partitions.storage import LogConfig, LogDirectory, PartitionLog
from logboat.partitions.storage.cleaner.cleanable import Cleanable
from logboat.partitions.storage.cleaner.cleaning import CleaningRound
from logboat.partitions.storage.cleaner.key_map import KeyMap
from logboat.partitions.storage.cleaner.pace import Pace
from logboat.partitions.storage.spacer import is_spacer
from logboat.partitions.storage.transaction_index import ENTRY
from logboat.seam import Disk
from logboat.seam.real_disk import RealDisk
from logboat.wire.compression import Compression
from logboat.wire.records import (
    BatchHeader,
    Record,
    batches,
    decode_records,
    encode_batch,
    encode_end_txn_marker,
)
from tests.partitions.kafka_oracle.oracle import KafkaStorage
from tests.partitions.storage.log_scene import NOW_MS, TestClock, raise_fatal

HOUR = 3_600_000
CONFIG = LogConfig(compact=True, delete=False, segment_bytes=3000, delete_retention_ms=HOUR)
TIMES = (NOW_MS, NOW_MS + HOUR // 2, NOW_MS + HOUR, NOW_MS + 2 * HOUR, NOW_MS + 3 * HOUR)
CODECS = (Compression.NONE, Compression.NONE, Compression.GZIP, Compression.ZSTD)

Left = list[tuple[BatchHeader, list[Record]]]


@pytest.fixture
def disk() -> Iterator[RealDisk]:
    disk = RealDisk()
    yield disk
    disk.close()


async def open_directory(disk: Disk, root: Path) -> LogDirectory:
    return await LogDirectory.open(
        str(root),
        cluster_id="c",
        node_id=1,
        disk=disk,
        clock=TestClock(),
        rng=Random(1),
        on_fatal=raise_fatal,
    )


class Writer:
    """Keys that come back, tombstones, idempotent producers, transactions over segments."""

    def __init__(self, log: PartitionLog, seed: int) -> None:
        self.log = log
        self.rng = Random(seed)
        self.sequences: dict[int, int] = {}
        self.open: dict[int, None] = {}

    def write(self, steps: int) -> None:
        for number in range(steps):
            choice = self.rng.random()
            if choice < 0.5:
                self.append(self.records(number), compression=self.rng.choice(CODECS))
            elif choice < 0.65:
                self.produce(self.rng.randrange(10, 13), number, transactional=False)
            elif choice < 0.9:
                producer_id = self.rng.randrange(20, 23)
                self.open[producer_id] = None
                self.produce(producer_id, number, transactional=True)
            elif self.open:
                self.end(self.rng.choice(list(self.open)))
        for producer_id in list(self.open):
            self.end(producer_id)
        for number in range(40):
            self.append([Record(key=b"tail%d" % number, value=b"x" * 90, timestamp=NOW_MS)])

    def records(self, number: int) -> list[Record]:
        return [
            Record(
                key=b"k%d" % self.rng.randrange(12),
                value=None if self.rng.random() < 0.25 else b"v%d" % number * 5,
                headers=[("h", b"1"), ("n", None)],
                timestamp=NOW_MS - 1000 + self.rng.randrange(900),
            )
            for _ in range(self.rng.randrange(1, 6))
        ]

    def produce(self, producer_id: int, number: int, *, transactional: bool) -> None:
        records = self.records(number)
        sequence = self.sequences.get(producer_id, 0)
        self.sequences[producer_id] = sequence + len(records)
        self.append(
            records,
            producer_id=producer_id,
            producer_epoch=1,
            base_sequence=sequence,
            transactional=transactional,
        )

    def append(self, records: list[Record], **settings: object) -> None:
        data = encode_batch(records, **settings)  # type: ignore[arg-type]
        self.log.append_as_leader(data, leader_epoch=3, now_ms=NOW_MS)

    def end(self, producer_id: int) -> None:
        del self.open[producer_id]
        marker = encode_end_txn_marker(
            commit=self.rng.random() < 0.4,
            producer_id=producer_id,
            producer_epoch=1,
            coordinator_epoch=2,
            timestamp=NOW_MS - 50,
        )
        self.log.append_as_leader(marker, leader_epoch=3, now_ms=NOW_MS, from_client=False)


async def clean_ours(directory: LogDirectory, log: PartitionLog, now_ms: int) -> None:
    segments = log.synced_segments
    target = Cleanable(segments, 0, segments[-1].next_offset, 0, 1, overdue=False)
    await CleaningRound(
        log,
        target,
        files=directory.files,
        keys=KeyMap(1 << 20),
        pace=Pace(float("inf")),
        now_ms=now_ms,
    ).run()


def left(folder: Path) -> Left:
    """All batches, but for the empty ones with which we end a segment: Kafka has no such."""
    found = []
    for path in sorted(folder.glob("*.log")):
        for batch in batches(path.read_bytes()):
            header = batch.header
            if is_spacer(header):
                continue
            if header.compression is not Compression.NONE:
                # The same codec, by another library.
                header = header._replace(batch_length=0, crc=0)
            found.append((header, decode_records(batch.view)))
    return found


def aborted(folder: Path) -> list[tuple[int, ...]]:
    data = b"".join(path.read_bytes() for path in sorted(folder.glob("*.txnindex")))
    return list(ENTRY.iter_unpack(data))


@pytest.mark.foreign
@pytest.mark.parametrize(("seed", "rounds"), [(1, 1), (2, 3), (3, 5)])
async def test_we_leave_what_kafkas_cleaner_leaves(
    kafka: KafkaStorage, disk: RealDisk, tmp_path: Path, seed: int, rounds: int
) -> None:
    ours = tmp_path / "ours"
    directory = await open_directory(disk, ours)
    log = await directory.create_log("t", 0, UUID(int=7), CONFIG)
    writer = Writer(log, seed)
    writer.write(250)
    end_offset = log.log_end_offset
    await log.wait_synced(end_offset)
    await directory.close_logs()
    await directory.write_clean_marker(1)
    await directory.close()
    theirs = tmp_path / "theirs"
    shutil.copytree(ours / "t-0", theirs / "t-0")
    whole = left(ours / "t-0")

    directory = await open_directory(disk, ours)
    log = await directory.create_log("t", 0, UUID(int=7), CONFIG)
    states = log.producers.entries()
    for now_ms in TIMES[:rounds]:
        await clean_ours(directory, log, now_ms)
    await directory.close_logs()
    await directory.write_clean_marker(1)
    await directory.close()

    said = kafka.run(
        str(Path(__file__).parent / "KafkaCleaner.java"),
        theirs / "t-0",
        end_offset,
        CONFIG.segment_bytes,
        CONFIG.delete_retention_ms,
        *TIMES[:rounds],
    ).splitlines()
    assert said[0] == f"end {end_offset}"
    assert sorted(said[1:]) == sorted(
        f"producer {producer_id} {entry.producer_epoch} {entry.last_sequence} "
        f"{entry.last_data_offset} {entry.transaction_first_offset}"
        for producer_id, entry in states.items()
    )
    assert aborted(ours / "t-0") == aborted(theirs / "t-0")
    for mine, kafkas in zip(left(ours / "t-0"), left(theirs / "t-0"), strict=False):
        assert mine == kafkas
    assert len(left(ours / "t-0")) == len(left(theirs / "t-0"))
    assert len(left(ours / "t-0")) < len(whole)
    assert rounds > 1 or aborted(ours / "t-0")
    assert [path.name for path in sorted((ours / "t-0").glob("*.log"))] == [
        path.name for path in sorted((theirs / "t-0").glob("*.log"))
    ]


@pytest.mark.foreign
async def test_kafkas_dump_tool_reads_a_compacted_log(
    kafka: KafkaStorage, disk: RealDisk, tmp_path: Path
) -> None:
    """Batches, all four indexes and producer snapshots, with Kafka's own checks."""
    directory = await open_directory(disk, tmp_path / "data")
    config = replace(CONFIG, index_interval_bytes=200)
    log = await directory.create_log("t", 0, UUID(int=7), config)
    Writer(log, 4).write(250)
    await log.wait_synced(log.log_end_offset)
    folder = tmp_path / "data" / "t-0"
    await clean_ours(directory, log, NOW_MS)
    states = log.producers.entries()
    await directory.close_logs()
    await directory.write_clean_marker(1)
    await directory.close()
    kinds = ("*.log", "*.index", "*.timeindex", "*.txnindex", "*.snapshot")
    files = [path for kind in kinds for path in sorted(folder.glob(kind))]
    assert {path.suffix for path in files} == {kind[1:] for kind in kinds}
    said = kafka.dump(*files)
    for complaint in ("ismatch", "corrupt", "nvalid: false", "isvalid: false", "rror"):
        assert complaint not in said.replace("IsValid", "isvalid"), said
    for producer_id, entry in states.items():
        assert (
            f"producerId: {producer_id} producerEpoch: {entry.producer_epoch} "
            f"coordinatorEpoch: {entry.coordinator_epoch}" in said
        )
    for _, producer_id, first, last, stable in aborted(folder):
        assert (
            f"producerId: {producer_id} firstOffset: {first} lastOffset: {last} "
            f"lastStableOffset: {stable}" in said
        )
