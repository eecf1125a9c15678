"""A folder that Apache Kafka's own log wrote opens here, after a clean stop and after a kill."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from logboat.partitions.storage import LogConfig, PartitionLog
from logboat.seam.real_disk import RealDisk
from logboat.wire.records import Record, batches, check_crc, decode_records
from tests.partitions.kafka_oracle.oracle import KafkaStorage
from tests.partitions.storage.log_scene import append, open_log, read_all

BATCHES = 200


@pytest.fixture
def disk() -> Iterator[RealDisk]:
    disk = RealDisk()
    yield disk
    disk.close()


def as_written(folder: Path) -> list[bytes]:
    """The batches, as they lie in the files."""
    found = []
    for path in sorted(folder.glob("*.log")):
        for batch in batches(path.read_bytes()):
            check_crc(batch)
            found.append(bytes(batch.view))
    return found


def check_lookups(log: PartitionLog, records: list[Record]) -> None:
    for record in records[:: max(1, len(records) // 20)]:
        found = log.offset_for_timestamp(record.timestamp)
        assert found is not None
        first = next(one for one in records if one.timestamp >= record.timestamp)
        assert (found.offset, found.timestamp_ms) == (first.offset, first.timestamp)


@pytest.mark.foreign
@pytest.mark.parametrize("stop", ["close", "kill"])
async def test_our_recovery_opens_what_kafka_wrote(
    kafka: KafkaStorage, disk: RealDisk, tmp_path: Path, stop: str
) -> None:
    folder = tmp_path / "topic-0"
    program = str(Path(__file__).parent / "KafkaWriter.java")
    said = dict(line.split() for line in kafka.run(program, folder, stop).splitlines())
    end_offset = int(said["end"])
    written = as_written(folder)
    assert len(written) == BATCHES
    assert int(said["segments"]) > 3
    clean = stop == "close"
    log = await open_log(
        disk,
        LogConfig(segment_bytes=4000, index_interval_bytes=300),
        directory=str(folder),
        clean=clean,
        recovery_point=end_offset if clean else 0,
    )
    assert log.damage is None
    assert (log.log_start_offset, log.log_end_offset) == (0, end_offset)
    assert len(log.segment_base_offsets) == int(said["segments"])
    assert [bytes(batch.view) for batch in read_all(log)] == written
    assert [entry.epoch for entry in log.epochs.entries] == [0, 1, 2, 3]
    records = [r for batch in written for r in decode_records(batch)]
    check_lookups(log, records)
    producers = log.producers.entries()
    assert producers[7].last_sequence == producers[8].last_sequence == 39
    assert producers[8].transaction_first_offset < 0, "its last transaction has ended"
    appended = append(log, b"ours", leader_epoch=4)
    assert appended.base_offset == end_offset
    await log.wait_synced(end_offset + 1)
    await log.close()
    said_of_ours = kafka.dump(*sorted(folder.glob("*.log")), *sorted(folder.glob("*index")))
    assert "isvalid: false" not in said_of_ours
    assert "ismatch" not in said_of_ours
    assert said_of_ours.count("baseOffset:") == BATCHES + 1
