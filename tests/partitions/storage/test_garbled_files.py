"""Whatever a crash, a person or a bad sector makes of a file in the data directory, the next start
recovers, or refuses with a sentence that names the file."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from random import Random
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logboat.partitions.storage import (
    DirectoryRefused,
    LogConfig,
    LogDirectory,
    PartitionLog,
    StorageFailed,
)
from logboat.wire.records import encode_end_txn_marker
from tests.partitions.storage.log_scene import NOW_MS, TestClock, batch, contents, raise_fatal
from tests.seam.memory_disk import Folder, MemoryDisk

ROOT = "/data"
TOPIC_ID = UUID(int=0x1234567890ABCDEF)
CONFIG = LogConfig(segment_bytes=400, index_interval_bytes=50)
COUNT = 12

Files = dict[str, bytes]
"""By path."""


async def open_directory(disk: MemoryDisk) -> LogDirectory:
    return await LogDirectory.open(
        ROOT,
        cluster_id="c",
        node_id=1,
        disk=disk,
        clock=TestClock(),
        rng=Random(1),
        on_fatal=raise_fatal,
    )


async def written(*, clean: bool) -> Files:
    """A log with several segments, epochs, a producer, an aborted transaction, a moved start."""
    disk = MemoryDisk()
    directory = await open_directory(disk)
    log = await directory.create_log("topic", 0, TOPIC_ID, CONFIG)
    for number in range(COUNT):
        append(log, number)
    await log.wait_synced(log.log_end_offset)
    await log.advance_log_start(1)
    await directory.checkpoint(lambda log: 5)
    directory.begin_cleaning(log)
    await directory.set_cleaned_offset(log, 4)
    if clean:
        await directory.close_logs()
        await directory.write_clean_marker(7)
    return dict(files_of(disk.root, ""))


def append(log: PartitionLog, number: int) -> None:
    data = batch(
        b"%d" % number,
        producer_id=7,
        producer_epoch=0,
        base_sequence=number,
        transactional=number == 4,
    )
    log.append_as_leader(data, leader_epoch=number // 4, now_ms=NOW_MS)
    if number == 4:
        marker = encode_end_txn_marker(
            commit=False, producer_id=7, producer_epoch=0, coordinator_epoch=0, timestamp=NOW_MS
        )
        log.append_as_leader(marker, leader_epoch=1, now_ms=NOW_MS, from_client=False)


def files_of(folder: Folder, path: str) -> Iterator[tuple[str, bytes]]:
    for name, node in sorted(folder.names.items()):
        if isinstance(node, Folder):
            yield from files_of(node, f"{path}/{name}")
        else:
            yield f"{path}/{name}", bytes(node.data)


def disk_of(files: Files) -> MemoryDisk:
    disk = MemoryDisk()
    for path, data in files.items():
        disk.make_dirs(path.rpartition("/")[0])
        file = disk.open(path, create=True)
        file.append([data])
        file.close()
    return disk


async def started(files: Files, path: str) -> str:
    """What the start comes to."""
    disk = disk_of(files)
    try:
        directory = await open_directory(disk)
    except DirectoryRefused as refused:
        if path in str(refused):
            return "refused"
        raise
    log = await directory.create_log("topic", 0, TOPIC_ID, CONFIG)
    damaged = read_again_and_again(log)
    if damaged:
        # As the only replica, and, where nothing is left to keep, as one of several.
        log = await directory.set_damage_aside(log, CONFIG)
        if log.damage is not None:
            await log.truncate_to(log.damage.offset)
    append_next(log)
    await log.wait_synced(log.log_end_offset)
    await directory.close_logs()
    await directory.write_clean_marker(8)
    await directory.close()
    return "damaged" if damaged else "whole"


def read_again_and_again(log: PartitionLog) -> bool:
    """Whether it is damaged. Where only an index had led astray, the next attempt goes well."""
    for _ in range(10):
        try:
            contents(log)
        except StorageFailed:
            if log.damage is None:
                continue
        return log.damage is not None
    raise AssertionError("refused for ever, and not damaged")


def append_next(log: PartitionLog) -> None:
    log.append_as_leader(batch(b"next"), leader_epoch=9, now_ms=NOW_MS)


@pytest.fixture(scope="module")
def images() -> list[Files]:
    return [asyncio.run(written(clean=clean)) for clean in (True, False)]


EXPECTED = (
    "meta.properties",
    "recovery-point-offset-checkpoint",
    "log-start-offset-checkpoint",
    "replication-offset-checkpoint",
    "cleaner-offset-checkpoint",
    ".kafka_cleanshutdown",
    "partition.metadata",
    "leader-epoch-checkpoint",
    ".snapshot",
    ".index",
    ".timeindex",
    ".txnindex",
    ".log",
)


def test_every_kind_of_file_is_there(images: list[Files]) -> None:
    clean, _ = images
    for kind in EXPECTED:
        assert any(path.endswith(kind) and data for path, data in clean.items()), kind


SMALL = (
    "meta.properties",
    "-checkpoint",
    ".kafka_cleanshutdown",
    "partition.metadata",
    ".snapshot",
)


async def test_any_truncation_of_a_small_file_is_survived_or_named(images: list[Files]) -> None:
    for files in images:
        for path, data in files.items():
            if path.endswith(SMALL):
                for size in range(0, len(data), 1 if len(data) < 60 else 7):
                    await started(files | {path: data[:size]}, path)


@settings(max_examples=80)
@given(choices=st.data())
async def test_any_garbling_of_any_file_is_survived_or_named(
    images: list[Files], choices: st.DataObject
) -> None:
    files = choices.draw(st.sampled_from(images))
    path = choices.draw(st.sampled_from([path for path, data in files.items() if data]))
    data = bytearray(files[path])
    at = choices.draw(st.integers(0, len(data) - 1))
    garbage = choices.draw(
        st.one_of(
            st.binary(min_size=1, max_size=20), st.sampled_from([b"\0" * 64, b"\n", b" ", b"9"])
        )
    )
    if choices.draw(st.booleans()):
        data[at : at + len(garbage)] = garbage[: len(data) - at]
    else:
        data[at:] = garbage
    await started(files | {path: bytes(data)}, path)
