"""The data directory: whose it is (case O01), how it was left, and which logs are in it."""

from __future__ import annotations

import asyncio
from random import Random
from uuid import UUID

import pytest

from logboat.partitions.storage import (
    DirectoryRefused,
    LogConfig,
    LogDirectory,
    PartitionLog,
)
from logboat.partitions.storage.checkpoints import (
    CheckpointDamaged,
    decode_offsets,
    write_offsets,
)
from logboat.partitions.storage.meta_properties import (
    PARTITION_METADATA,
    MetaProperties,
    decode_clean_marker,
    encode_partition_metadata,
)
from logboat.partitions.storage.stored_logs import FOLDERS_AT_ONCE, find_logs
from logboat.seam import all_at_once, read_file, replace_file
from tests.partitions.storage.log_scene import TestClock, append, contents, raise_fatal
from tests.seam.memory_disk import Crashed, Inode, MemoryDisk

DATA = "/data"
TOPIC_ID = UUID(int=77)
SMALL = LogConfig(segment_bytes=400)


async def open_directory(
    disk: MemoryDisk, *, cluster_id: str = "cluster", node_id: int = 1
) -> LogDirectory:
    return await LogDirectory.open(
        DATA,
        cluster_id=cluster_id,
        node_id=node_id,
        disk=disk,
        clock=TestClock(),
        rng=Random(5),
        on_fatal=raise_fatal,
    )


def content(disk: MemoryDisk, name: str) -> bytearray:
    found = disk._find(f"{DATA}/{name}")
    assert isinstance(found, Inode)
    return found.data


def listing(disk: MemoryDisk) -> dict[str, bytes]:
    return {
        name: bytes(content(disk, name))
        for name in disk.list(DATA)
        if not disk.is_dir(f"{DATA}/{name}")
    }


async def filled(log: PartitionLog, count: int) -> None:
    for number in range(count):
        append(log, b"%d" % number)
    await log.wait_synced(log.log_end_offset)


async def test_an_empty_directory_is_formatted_and_known_again() -> None:
    disk = MemoryDisk()
    first = await open_directory(disk)
    text = content(disk, "meta.properties").decode().splitlines()
    assert text[:3] == ["version=1", "cluster.id=cluster", "node.id=1"]
    assert text[3].startswith("directory.id=")
    assert len(text[3]) == len("directory.id=") + 22
    await first.close()
    second = await open_directory(disk)
    assert second.directory_id == first.directory_id
    await second.close()


@pytest.mark.parametrize(
    "foreign",
    [
        "another node",
        "another cluster",
        "missing",
        "empty",
        "cut",
        "higher version",
        "in use",
    ],
)
async def test_o01_a_directory_that_is_not_ours_is_refused_and_left_alone(foreign: str) -> None:
    disk = MemoryDisk()
    directory = await open_directory(disk)
    log = await directory.create_log("topic", 0, TOPIC_ID, SMALL)
    await filled(log, 3)
    await directory.close_logs()
    await directory.write_clean_marker(9)
    if foreign != "in use":
        await directory.close()
    meta = content(disk, "meta.properties")
    if foreign == "missing":
        disk.remove(f"{DATA}/meta.properties")
    elif foreign == "empty":
        meta.clear()
    elif foreign == "cut":
        del meta[25:]
    elif foreign == "higher version":
        meta[: len(b"version=1")] = b"version=2"
    before = listing(disk)
    with pytest.raises(DirectoryRefused) as caught:
        await open_directory(
            disk,
            cluster_id="other" if foreign == "another cluster" else "cluster",
            node_id=2 if foreign == "another node" else 1,
        )
    assert listing(disk) == before
    assert DATA in str(caught.value)
    assert "\n" not in str(caught.value)


def test_o01_unknown_keys_in_meta_properties_are_ignored() -> None:
    meta = MetaProperties("c", 4, UUID(int=9))
    assert MetaProperties.decode(b"#date\n" + meta.encode() + b"more=x\n") == meta


async def test_c7_a_clean_stop_is_remembered_with_its_broker_epoch_once() -> None:
    disk = MemoryDisk()
    directory = await open_directory(disk)
    assert (directory.clean, directory.previous_broker_epoch) == (False, -1)
    log = await directory.create_log("topic", 0, TOPIC_ID, SMALL)
    await filled(log, 20)
    held = contents(log)
    await directory.checkpoint(lambda log: 17)
    await directory.close_logs()
    assert await directory.write_clean_marker(42)
    await directory.close()
    disk.power_loss(Random(1), "none")

    directory = await open_directory(disk)
    assert (directory.clean, directory.previous_broker_epoch) == (True, 42)
    assert directory.high_watermarks == {("topic", 0): 17}
    (stored,) = directory.stored_logs()
    assert (stored.topic, stored.partition, stored.topic_id) == ("topic", 0, TOPIC_ID)
    disk.log.clear()
    log = await directory.open_log(stored, SMALL)
    assert contents(log) == held
    assert not [path for kind, path in disk.log if kind == "write_at"], "nothing to recover"
    disk.restart()

    directory = await open_directory(disk)
    assert (directory.clean, directory.previous_broker_epoch) == (False, -1)


async def test_c7_no_clean_marker_when_recovery_had_not_run() -> None:
    """KAFKA-15375, RULES C7."""
    disk = MemoryDisk()
    directory = await open_directory(disk)
    await directory.create_log("topic", 0, TOPIC_ID, SMALL)
    disk.restart()
    directory = await open_directory(disk)
    await directory.close_logs()
    assert not await directory.write_clean_marker(1)
    await directory.close()
    assert not disk.exists(f"{DATA}/.kafka_cleanshutdown")


def test_an_unreadable_clean_marker_gives_no_epoch() -> None:
    assert decode_clean_marker(b"") == decode_clean_marker(b"[]") == -1
    assert decode_clean_marker(b'{"version": 0, "brokerEpoch": 7, "more": 1}') == 7


async def test_a_created_log_survives_a_loss_of_power() -> None:
    disk = MemoryDisk()
    directory = await open_directory(disk)
    log = await directory.create_log("my-topic", 12, TOPIC_ID, SMALL)
    await filled(log, 5)
    held = contents(log)
    disk.power_loss(Random(1), "none")
    directory = await open_directory(disk)
    (stored,) = directory.stored_logs()
    assert (stored.topic, stored.partition) == ("my-topic", 12)
    log = await directory.open_log(stored, SMALL)
    assert contents(log) == held
    await directory.close()


async def test_every_crash_while_creating_leaves_a_log_or_none() -> None:
    for crash_at in range(1, 40):
        disk = MemoryDisk()
        directory = await open_directory(disk)
        disk.crash_at = disk.steps + crash_at
        try:
            await directory.create_log("topic", 0, TOPIC_ID, SMALL)
        except Crashed:
            created = False
        else:
            created = True
        disk.power_loss(Random(crash_at), "prefix")
        directory = await open_directory(disk)
        stored = directory.stored_logs()
        assert stored or not created
        log = await directory.create_log("topic", 0, TOPIC_ID, SMALL)
        await filled(log, 2)
        await directory.close()
        if created:
            return
    pytest.fail("creation never ended")


async def test_a_topic_created_again_begins_empty() -> None:
    """Case P24: the old life's records, producers and checkpoints are gone."""
    disk = MemoryDisk()
    directory = await open_directory(disk)
    log = await directory.create_log("topic", 0, TOPIC_ID, SMALL)
    await filled(log, 20)
    await directory.checkpoint(lambda log: 20)
    for _ in range(2):
        again = await directory.create_log("topic", 0, UUID(int=78), SMALL)
    assert again.log_end_offset == 0
    await filled(again, 1)
    disk.power_loss(Random(3), "none")
    directory = await open_directory(disk)
    (stored,) = directory.stored_logs()
    assert stored.topic_id == UUID(int=78)
    log = await directory.open_log(stored, SMALL)
    assert log.damage is None
    assert log.log_end_offset == 1
    await directory.close()


async def test_a_deleted_log_is_gone_whatever_happens() -> None:
    disk = MemoryDisk()
    directory = await open_directory(disk)
    log = await directory.create_log("topic", 0, TOPIC_ID, SMALL)
    await filled(log, 20)
    disk.fail = lambda kind, path: 5 if kind == "remove_tree" and path.endswith("delete") else None
    with pytest.raises(OSError, match="injected"):
        await directory.delete_log("topic", 0)
    disk.power_loss(Random(3), "none")
    directory = await open_directory(disk)
    assert directory.stored_logs() == []
    assert not [name for name in disk.list(DATA) if name.startswith("topic")]
    await directory.close()


class CountingDisk(MemoryDisk):
    looked_into = 0

    def is_dir(self, path: str) -> bool:
        self.looked_into += 1
        return super().is_dir(path)


async def test_f1_thousands_of_folders_are_looked_into_in_slices() -> None:
    disk = CountingDisk()
    names = [f"topic-{number}" for number in range(10 * FOLDERS_AT_ONCE)]
    for name in names:
        disk.make_dirs(f"{DATA}/{name}")
        await replace_file(
            disk, f"{DATA}/{name}/{PARTITION_METADATA}", encode_partition_metadata(TOPIC_ID)
        )
    finding = asyncio.create_task(find_logs(disk, DATA, names))
    turns = []
    while not finding.done():
        before = disk.looked_into
        await asyncio.sleep(0)
        turns.append(disk.looked_into - before)
    assert max(turns) <= FOLDERS_AT_ONCE
    assert [stored.key for stored in (await finding).values()] == [
        ("topic", number) for number in range(len(names))
    ]


async def test_a_stray_log_is_kept_under_another_name() -> None:
    disk = MemoryDisk()
    directory = await open_directory(disk)
    log = await directory.create_log("topic", 0, TOPIC_ID, SMALL)
    await filled(log, 3)
    (stored,) = directory.stored_logs()
    await directory.set_stray(stored)
    assert directory.stored_logs() == []
    assert f"topic-0.{TOPIC_ID.hex}-stray" in disk.list(DATA)
    await directory.close()


async def test_records_of_nobody_knows_which_topic_are_kept_when_their_name_is_needed() -> None:
    disk = MemoryDisk()
    directory = await open_directory(disk)
    await filled(await directory.create_log("topic", 0, TOPIC_ID, LogConfig()), 3)
    await directory.checkpoint()
    before = bytes(content(disk, f"topic-0/{0:020}.log"))
    assert before
    disk.restart()
    disk.open(f"{DATA}/topic-0/partition.metadata").write_at(0, b"garbled")
    directory = await open_directory(disk)
    assert directory.lost_logs() == [("topic", 0)]
    log = await directory.create_log("topic", 0, TOPIC_ID, LogConfig())
    assert log.damage is not None
    assert log.log_end_offset == 0
    (kept,) = [name for name in disk.list(DATA) if name.endswith("-stray")]
    assert bytes(content(disk, f"{kept}/{0:020}.log")) == before


async def test_a_stray_log_whose_name_another_life_has_taken_is_gone_already() -> None:
    disk = MemoryDisk()
    directory = await open_directory(disk)
    await directory.create_log("topic", 0, TOPIC_ID, SMALL)
    (stored,) = directory.stored_logs()
    other = UUID(int=TOPIC_ID.int + 1)
    await filled(await directory.create_log("topic", 0, other, SMALL), 3)
    await directory.set_stray(stored)
    assert [stored.topic_id for stored in directory.stored_logs()] == [other]
    await directory.delete_log("topic", 0)
    await directory.set_stray(stored)
    assert directory.stored_logs() == []
    await directory.close()


async def test_names_of_deleted_folders_stay_legal() -> None:
    disk = MemoryDisk()
    directory = await open_directory(disk)
    await directory.create_log("t" * 249, 12345, TOPIC_ID, SMALL)
    (stored,) = directory.stored_logs()
    await directory.set_stray(stored)
    assert all(len(name) <= 255 for name in disk.list(DATA))
    await directory.close()


async def test_a_cut_never_leaves_a_checkpoint_above_the_log() -> None:
    """Otherwise the next start would take the cut for damage."""
    disk = MemoryDisk()
    directory = await open_directory(disk)
    log = await directory.create_log("topic", 0, TOPIC_ID, SMALL)
    await filled(log, 20)
    await directory.checkpoint()
    before = disk.steps
    await log.truncate_to(7)
    steps = disk.steps - before
    for crash_at in range(1, steps + 1):
        disk = MemoryDisk()
        directory = await open_directory(disk)
        log = await directory.create_log("topic", 0, TOPIC_ID, SMALL)
        await filled(log, 20)
        await directory.checkpoint()
        disk.crash_at = disk.steps + crash_at
        with pytest.raises(Crashed):
            await log.truncate_to(7)
        disk.power_loss(Random(crash_at), "any")
        directory = await open_directory(disk)
        (stored,) = directory.stored_logs()
        log = await directory.open_log(stored, SMALL)
        assert log.damage is None, f"step {crash_at} of {steps}"
        assert log.log_end_offset >= 7
        await directory.close()


async def test_o05_many_logs_share_few_descriptors() -> None:
    disk = MemoryDisk()
    opened = 0

    class Counting(MemoryDisk):
        pass

    directory = await LogDirectory.open(
        DATA,
        cluster_id="c",
        node_id=1,
        disk=disk,
        clock=TestClock(),
        rng=Random(5),
        on_fatal=raise_fatal,
        open_files=4,
    )
    logs = [await directory.create_log("topic", n, TOPIC_ID, SMALL) for n in range(12)]
    for log in logs:
        await filled(log, 10)
    for log in logs:
        assert len(contents(log)) == 10
        opened = max(opened, len(directory._files._files))
    assert opened <= 4
    await directory.close()


@pytest.mark.parametrize("damaged", [b"0\n1\n", b"0\n1\nt 0\n", b"0\n1\nt 0 1 2\n", b"3\n0\n"])
def test_a_damaged_checkpoint_is_an_error(damaged: bytes) -> None:
    with pytest.raises(CheckpointDamaged):
        all_at_once(decode_offsets(damaged))


async def test_checkpoints_have_kafkas_text() -> None:
    offsets = {("b", 1): 5, ("a", 10): 7, ("a", 2): 6}
    disk = MemoryDisk()
    await write_offsets(disk, "/offsets", offsets)
    written = read_file(disk, "/offsets")
    assert written == b"0\n3\nb 1 5\na 10 7\na 2 6\n"
    assert all_at_once(decode_offsets(written)) == offsets


def test_settings_come_from_topic_then_broker_then_default() -> None:
    config = LogConfig.resolve(
        {"segment.bytes": "1048576", "cleanup.policy": "compact,delete"},
        {"log.retention.hours": "2", "log.segment.bytes": "9", "message.max.bytes": "77"},
    )
    assert config.synced
    assert config.segment_bytes == 1048576
    assert config.retention_ms == 2 * 3_600_000
    assert config.max_message_bytes == 77
    assert config.compact
    assert config.delete
    assert not LogConfig.resolve({"flush.messages": "9223372036854775807"}, {}).synced
    minutes = {"log.retention.minutes": "3", "log.retention.hours": "2"}
    assert LogConfig.resolve({}, minutes).retention_ms == 180_000
    assert LogConfig.resolve({}, {"log.retention.hours": "-1"}).retention_ms == -1
    assert LogConfig.resolve({}, {}) == LogConfig()
