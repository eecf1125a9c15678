"""A log opens again from any state, with every synced batch and nothing that was never written."""

from __future__ import annotations

import asyncio
import contextlib
import errno
from random import Random
from typing import get_args

import pytest

from logboat.partitions.storage import LogConfig, StorageFailed
from logboat.wire.records import crc_of
from tests.partitions.storage.log_scene import (
    FOLDER,
    NOW_MS,
    append,
    batch,
    contents,
    new_disk,
    open_log,
)
from tests.seam.memory_disk import Crashed, Inode, Loss, MemoryDisk, MemoryFile

SMALL = LogConfig(segment_bytes=400, index_interval_bytes=100)
LOSSES: tuple[Loss, ...] = get_args(Loss)


def inode(disk: MemoryDisk, name: str) -> Inode:
    found = disk._find(f"{FOLDER}/{name}")
    assert isinstance(found, Inode)
    return found


def names(disk: MemoryDisk, suffix: str) -> list[str]:
    return [name for name in disk.list(FOLDER) if name.endswith(suffix)]


async def stopped_log(count: int, config: LogConfig = SMALL) -> tuple[MemoryDisk, list]:  # type: ignore[type-arg]
    """A disk with a cleanly closed log of `count` batches, and its contents."""
    disk = new_disk()
    log = await open_log(disk, config)
    for number in range(count):
        append(log, b"%d" % number, leader_epoch=number // 4)
    await log.wait_synced(count)
    held = contents(log)
    await log.close()
    return disk, held


async def test_the_last_batch_torn_at_any_byte_is_cut_off() -> None:
    disk, held = await stopped_log(5, LogConfig())
    log_file = inode(disk, "0" * 20 + ".log")
    whole, last = bytes(log_file.data), len(held[-1][1])
    for cut in range(last):
        for filler in (b"", b"\xff" * 100):
            log_file.data = bytearray(whole[: len(whole) - last + cut] + filler)
            log = await open_log(disk)
            assert contents(log) == held[:-1]
            assert log.damage is None
            assert len(log_file.data) == len(whole) - last
            append(log, b"next", leader_epoch=1)
            await log.wait_synced(5)
            assert log.log_end_offset == 5
            await log.close()


@pytest.mark.parametrize(
    "tail",
    [bytes(4096), bytes(1 << 20), batch(b"x")[:30], None],
    ids=["zeros", "a megabyte of zeros", "half a batch", "a flipped bit"],
)
@pytest.mark.parametrize("clean", [True, False])
async def test_r07_what_follows_the_last_valid_batch_is_cut_off(
    tail: bytes | None, clean: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """Case R07, also behind a clean-shutdown marker: something else has written since. A warning
    names file and position."""
    disk, held = await stopped_log(5, LogConfig())
    if tail is None:
        flipped = batch(b"flipped", base_offset=5)
        flipped[-3] ^= 4
        tail = bytes(flipped)
    file = inode(disk, "0" * 20 + ".log").data
    position = len(file)
    file.extend(tail)
    log = await open_log(disk, clean=clean, recovery_point=5)
    assert contents(log) == held
    said = [r.getMessage() for r in caplog.records if r.levelname in ("WARNING", "ERROR")]
    assert any("0" * 20 + ".log" in text and str(position) in text for text in said), said
    assert append(log, b"next", leader_epoch=1).base_offset == 5
    await log.close()


async def test_r07_a_valid_batch_whose_checksum_is_zero_survives() -> None:
    """Case R07: no single zero field means "preallocated"."""
    disk, held = await stopped_log(1, LogConfig())
    data = batch(b"1234", base_offset=1)
    # CRC-32C is linear: changes of single payload bits add up, so some set of them gives zero.
    start = len(data) - 5
    zero = _solve_crc(data, start)
    assert crc_of(zero) == 0
    zero[17:21] = bytes(4)
    inode(disk, "0" * 20 + ".log").data.extend(zero)
    log = await open_log(disk)
    assert contents(log) == [*held, (1, bytes(zero))]
    await log.close()


def _solve_crc(data: bytearray, start: int) -> bytearray:
    base = crc_of(data)
    basis: dict[int, tuple[int, int]] = {}
    for bit in range(32):
        changed = bytearray(data)
        changed[start + bit // 8] ^= 1 << bit % 8
        vector, combination = crc_of(changed) ^ base, 1 << bit
        while vector:
            top = vector.bit_length()
            if top not in basis:
                basis[top] = vector, combination
                break
            vector, combination = vector ^ basis[top][0], combination ^ basis[top][1]
    rest, chosen = base, 0
    while rest:
        vector, combination = basis[rest.bit_length()]
        rest, chosen = rest ^ vector, chosen ^ combination
    solved = bytearray(data)
    for bit in range(32):
        if chosen >> bit & 1:
            solved[start + bit // 8] ^= 1 << bit % 8
    return solved


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
@pytest.mark.parametrize("damage", ["missing", "odd length", "zeros", "wrong", "empty"])
async def test_a_missing_or_damaged_index_is_rebuilt(clean: bool, suffix: str, damage: str) -> None:
    disk, held = await stopped_log(40)
    for name in names(disk, suffix):
        if damage == "missing":
            disk.remove(f"{FOLDER}/{name}")
        elif damage == "odd length":
            inode(disk, name).data.extend(b"x")
        elif damage == "zeros":
            data = inode(disk, name).data
            data[:] = bytes(len(data))
        elif damage == "wrong":
            data = inode(disk, name).data
            data[:] = b"\xff" * len(data)
        else:
            inode(disk, name).data.clear()
    log = await open_log(disk, SMALL, clean=clean, recovery_point=40)
    assert contents(log) == held
    for offset in range(40):
        found = log.read(offset, max_bytes=1, upper_bound=1 << 40, at_least_one=True)
        assert found.base_offset == offset
    assert log.damage is None
    await log.close()


@pytest.mark.parametrize(
    "content",
    [None, b"", b"0\n1\n", b"7\n0\n", b"\xff\xfe", b"0\n1\n5 x\n", b"0\n2\n5 3\n4 9\n"],
)
async def test_c6_a_missing_or_damaged_epoch_checkpoint_is_rebuilt(content: bytes | None) -> None:
    disk, _ = await stopped_log(12)
    path = f"{FOLDER}/leader-epoch-checkpoint"
    assert bytes(inode(disk, "leader-epoch-checkpoint").data) == b"0\n3\n0 0\n1 4\n2 8\n"
    if content is None:
        disk.remove(path)
    elif content:
        inode(disk, "leader-epoch-checkpoint").data[:] = content
    else:
        inode(disk, "leader-epoch-checkpoint").data.clear()
    log = await open_log(disk, SMALL, clean=content != b"", recovery_point=12 if content else 0)
    assert [(entry.epoch, entry.start_offset) for entry in log.epochs.entries] == [
        (0, 0),
        (1, 4),
        (2, 8),
    ]
    await log.close()
    assert bytes(inode(disk, "leader-epoch-checkpoint").data) == b"0\n3\n0 0\n1 4\n2 8\n"


async def test_left_over_files_are_removed() -> None:
    disk, held = await stopped_log(12)
    for name in (
        "leader-epoch-checkpoint.tmp",
        "00000000000000000777.index",
        "00000000000000000777.timeindex",
        "00000000000000000003.log.deleted",
        "00000000000000000003.log.cleaned",
        "00000000000000000999.snapshot",
    ):
        disk.open(f"{FOLDER}/{name}", create=True)
    log = await open_log(disk, SMALL)
    assert contents(log) == held
    await log.close()
    assert not [name for name in disk.list(FOLDER) if "777" in name or "999" in name]
    assert not names(disk, ".tmp") + names(disk, ".deleted") + names(disk, ".cleaned")


async def test_a_half_made_roll_is_undone_or_kept() -> None:
    disk, held = await stopped_log(5, LogConfig())
    disk.open(f"{FOLDER}/00000000000000000005.log", create=True)
    log = await open_log(disk)
    assert contents(log) == held
    assert log.segment_base_offsets == (0, 5)
    await log.close()
    inode(disk, "0" * 20 + ".log").data[-1] ^= 1
    log = await open_log(disk)
    assert contents(log) == held[:-1]
    assert log.segment_base_offsets == (0,)
    await log.close()


async def test_r07_a_new_log_file_of_zeros_is_an_empty_log() -> None:
    disk = new_disk()
    disk.open(f"{FOLDER}/{'0' * 20}.log", create=True).append([bytes(1 << 20)])
    log = await open_log(disk)
    assert log.log_end_offset == 0
    assert append(log, b"a").base_offset == 0
    await log.close()


# Damage below the recovery point.


@pytest.mark.parametrize("where", ["sealed", "active", "segment gone", "all gone"])
async def test_r07_damage_below_the_recovery_point_is_reported_and_not_cut(where: str) -> None:
    disk, held = await stopped_log(40)
    logs = names(disk, ".log")
    if where == "segment gone":
        disk.remove(f"{FOLDER}/{logs[1]}")
    elif where == "all gone":
        for name in logs:
            disk.remove(f"{FOLDER}/{name}")
    else:
        data = inode(disk, logs[-1 if where == "active" else 1]).data
        del data[-10:]
    before = {name: len(inode(disk, name).data) for name in names(disk, ".log")}
    log = await open_log(disk, SMALL, recovery_point=40)
    assert log.damage is not None
    assert log.damage.recovery_point == 40
    assert log.damage.offset == log.log_end_offset < 40
    assert {name: len(inode(disk, name).data) for name in before} == before
    survivors = contents(log)
    assert survivors == held[: len(survivors)]
    with pytest.raises(StorageFailed):
        append(log, b"a", leader_epoch=99)
    # The replica has left the ISR: now the cut is wanted.
    await log.truncate_to(log.damage.offset)
    assert log.damage is None
    assert contents(log) == survivors
    assert append(log, b"a", leader_epoch=99).base_offset == len(survivors)
    await log.close()
    log = await open_log(disk, SMALL, recovery_point=log.recovery_point, clean=True)
    assert log.damage is None
    assert contents(log)[:-1] == survivors
    await log.close()


async def test_c4_recovery_writes_the_tail_again_and_syncs_it() -> None:
    disk = new_disk()
    log = await open_log(disk)
    append(log, b"a")
    await log.wait_synced(1)
    append(log, b"b")
    log._try_write()
    disk.restart()
    disk.log.clear()
    log = await open_log(disk, recovery_point=1)
    path = f"{FOLDER}/{'0' * 20}.log"
    kinds = [kind for kind, where in disk.log if where in (path, FOLDER)]
    assert kinds == ["write_at", "sync", "sync_dir"]
    assert log.recovery_point == 2
    await log.close()


# A full disk.


async def test_a_full_disk_takes_back_what_nobody_has_seen_and_loses_nothing() -> None:
    disk = new_disk()
    log = await open_log(disk, SMALL)
    taken_back: list[int] = []
    log.on_rolled_back = taken_back.append
    for number in range(5):
        append(log, b"%d" % number, producer_id=1, producer_epoch=0, base_sequence=number)
    await log.wait_synced(5)
    held, producers = contents(log), log.producers.entries()
    epochs = log.epochs.entries
    disk.capacity = disk._used(disk.root) + 30
    append(log, b"5", producer_id=1, producer_epoch=0, base_sequence=5, leader_epoch=9)
    append(log, b"x", leader_epoch=9)
    waiting = asyncio.ensure_future(log.wait_synced(6))
    with pytest.raises(StorageFailed):
        await waiting
    assert taken_back == [5]
    assert log.log_end_offset == log.synced_offset == 5
    assert log.producers.entries() == producers
    assert log.epochs.entries == epochs
    assert contents(log) == held
    disk.capacity = None
    again = append(log, b"5", producer_id=1, producer_epoch=0, base_sequence=5, leader_epoch=9)
    assert (again.base_offset, again.duplicate) == (5, False)
    await log.wait_synced(6)
    await log.close()
    log = await open_log(disk, SMALL)
    assert contents(log)[:5] == held
    assert log.log_end_offset == 6
    await log.close()


async def test_a_roll_without_descriptors_refuses_the_append_and_goes_on_later() -> None:
    disk = new_disk()
    log = await open_log(disk, SMALL)
    log.on_rolled_back = lambda _: None
    for _ in range(4):
        append(log, b"a" * 10)
    await log.wait_synced(4)
    disk.fail = lambda kind, path: errno.EMFILE if kind == "create" else None
    with pytest.raises(StorageFailed):  # noqa: PT012
        for _ in range(10):
            append(log, b"a" * 10)
    end_offset = log.log_end_offset
    disk.fail = None
    assert append(log, b"a" * 10).base_offset == end_offset
    await log.wait_synced(end_offset + 1)
    await log.close()


# Crash points.


class Workload:
    """A fixed piece of life of a log; remembers what was acknowledged as synced.

    Appends in two epochs, rolls, an idempotent producer, a cut, a new epoch, a moved start, more.
    """

    def __init__(self, disk: MemoryDisk, config: LogConfig) -> None:
        self.disk = disk
        self.config = config
        self.written: dict[int, list[bytes]] = {}
        """Every batch that was ever at an offset."""
        self.acknowledged: dict[int, bytes] = {}
        self.recovery_point = 0
        self.log_start_offset = 0
        self._sequence = 0

    async def before_truncation(self, recovery_point: int, log_start_offset: int) -> None:
        # The checkpoint files live elsewhere and are taken as synced when this returns.
        self.disk.step("checkpoint", "/data")
        self.recovery_point = recovery_point
        self.log_start_offset = log_start_offset

    async def run(self) -> None:
        log = await open_log(
            self.disk, self.config, before_truncation=self.before_truncation, on_fatal=_ignore
        )
        self.log = log
        self.log.on_synced = self._on_synced
        for number in range(12):
            self._append(b"first %d" % number, leader_epoch=0)
            if number % 3 == 0:
                await log.wait_synced(log.log_end_offset)
        await log.wait_synced(log.log_end_offset)
        self.recovery_point = log.recovery_point
        for number in range(5):
            self._append(b"second %d" % number, leader_epoch=1)
        await log.wait_synced(log.log_end_offset)
        for offset in range(10, 17):
            del self.acknowledged[offset]
        await log.truncate_to(10)
        for number in range(12):
            self._append(b"third %d" % number, leader_epoch=2)
        await log.wait_synced(log.log_end_offset)
        for offset in range(6):
            self.acknowledged.pop(offset, None)
        await log.advance_log_start(6)
        self._append(b"last", leader_epoch=2)
        await log.wait_synced(log.log_end_offset)
        await log.close()

    def _append(self, value: bytes, *, leader_epoch: int) -> None:
        appended = append(
            self.log,
            value,
            leader_epoch=leader_epoch,
            producer_id=7,
            producer_epoch=leader_epoch,
            base_sequence=self._sequence if self.log.producers.entry(7) else 0,
            from_client=False,
        )
        self._sequence += 1
        data = batch(
            value,
            producer_id=7,
            producer_epoch=leader_epoch,
            base_sequence=self._sequence - 1 if self._sequence > 1 else 0,
            base_offset=appended.base_offset,
            leader_epoch=leader_epoch,
        )
        self.written.setdefault(appended.base_offset, []).append(bytes(data))

    def _on_synced(self, offset: int) -> None:
        start = max(self.acknowledged, default=-1) + 1
        for synced in range(start, offset):
            self.acknowledged[synced] = self.written[synced][-1]


def _ignore(error: BaseException) -> None:
    raise Crashed from error


async def count_steps(config: LogConfig) -> int:
    disk = new_disk()
    disk.steps = 0
    await Workload(disk, config).run()
    return disk.steps


@pytest.mark.parametrize("loss", ["kill", *LOSSES])
async def test_every_crash_point_keeps_what_was_synced(loss: Loss) -> None:
    steps = await count_steps(SMALL)
    assert steps > 100
    for crash_at in range(1, steps + 1):
        disk = new_disk()
        disk.steps = 0
        disk.crash_at = crash_at
        workload = Workload(disk, SMALL)
        run = asyncio.ensure_future(_until_crash(workload))
        await asyncio.wait([run])
        if loss == "kill":  # type: ignore[comparison-overlap]
            disk.restart()
        else:
            disk.power_loss(Random(crash_at), loss)
        log = await open_log(
            disk,
            SMALL,
            recovery_point=workload.recovery_point,
            log_start_offset=workload.log_start_offset,
        )
        assert log.damage is None, f"step {crash_at}"
        found = dict(contents(log))
        for offset, data in workload.acknowledged.items():
            assert found.get(offset) == data, f"step {crash_at}, offset {offset}"
        for offset, data in found.items():
            assert data in workload.written[offset], f"step {crash_at}, offset {offset}"
        offsets = list(found)
        assert offsets == list(range(log.log_start_offset, log.log_end_offset))
        await _equals_a_fresh_rebuild(log, disk)
        append(log, b"after", leader_epoch=50)
        await log.wait_synced(log.log_end_offset)
        await log.close()


async def _equals_a_fresh_rebuild(log, disk: MemoryDisk) -> None:  # type: ignore[no-untyped-def]
    """Epochs and producers are those of the bytes."""
    from logboat.wire.records import parse_header

    lineage: list[tuple[int, int]] = []
    for offset, data in contents(log):
        epoch = parse_header(data).partition_leader_epoch
        if not lineage or lineage[-1][0] != epoch:
            lineage.append((epoch, offset))
    assert [(entry.epoch, entry.start_offset) for entry in log.epochs.entries] == lineage


async def _until_crash(workload: Workload) -> None:
    loop = asyncio.get_running_loop()
    crashed = loop.create_future()

    def on_exception(_: object, context: dict[str, object]) -> None:
        if not crashed.done():
            crashed.set_result(context)

    previous = loop.get_exception_handler()
    loop.set_exception_handler(on_exception)
    try:
        run = asyncio.ensure_future(_swallow_crash(workload))
        await asyncio.wait([run, crashed], return_when=asyncio.FIRST_COMPLETED)
        if not run.done():
            run.cancel()
            await asyncio.wait([run])
    finally:
        loop.set_exception_handler(previous)


async def _swallow_crash(workload: Workload) -> None:
    with contextlib.suppress(Crashed):
        await workload.run()


async def test_a_clean_start_reads_no_more_for_more_bytes() -> None:
    """Also when timestamps do not rise: the work is that of the segments, not of what they hold."""

    class Reading(MemoryDisk):
        read = 0

        def open(self, path: str, *, create: bool = False) -> MemoryFile:
            file = super().open(path, create=create)
            plain = file.read_at

            def counted(position: int, length: int) -> bytes:
                self.read += 1
                return plain(position, length)

            file.read_at = counted  # type: ignore[method-assign]
            return file

    reads = []
    for batches in (10, 100):
        disk = Reading()
        disk.make_dirs(FOLDER)
        config = LogConfig(segment_bytes=batches * 1100, index_interval_bytes=100)
        log = await open_log(disk, config)
        append(log, b"newest", timestamp=NOW_MS + 1)
        while len(log.segment_base_offsets) < 4:
            append(log, bytes(1000), timestamp=NOW_MS)
        await log.close()
        disk.read = 0
        log = await open_log(disk, config, clean=True, recovery_point=log.log_end_offset)
        reads.append(disk.read)
        assert log._segments.all[0].newest_ms() == NOW_MS + 1
        await log.close()
    # Bisecting a longer index takes a few reads more, and so do the producers' windows.
    assert reads[1] < 3 * reads[0], reads


@pytest.mark.parametrize("raised_by", [1 << 56, 1 << 20], ids=["out of reach", "within reach"])
@pytest.mark.parametrize("compact", [False, True])
async def test_c1_a_batch_is_not_led_past_the_recovery_point_by_its_offset(
    raised_by: int, compact: bool
) -> None:
    """No checksum covers it; what was synced ended with a batch, so it is no gap of compaction."""
    config = LogConfig(segment_bytes=400, index_interval_bytes=100, compact=compact)
    disk, held = await stopped_log(12, LogConfig(segment_bytes=400, index_interval_bytes=100))
    name = names(disk, ".log")[-1]
    data = inode(disk, name).data
    base = int(name[:20])
    second = 12 + int.from_bytes(data[8:12], "big")
    data[second : second + 8] = (base + 1 + raised_by).to_bytes(8, "big")
    for clean in (True, False):
        log = await open_log(disk, config, clean=clean, recovery_point=12)
        assert log.damage is not None
        assert log.damage.offset == base + 1
        assert contents(log) == held[: base + 1]
        await log.close()


async def test_an_unsynced_batch_out_of_its_segments_reach_is_cut_off() -> None:
    disk, held = await stopped_log(5, LogConfig())
    data = inode(disk, "0" * 20 + ".log").data
    start = len(data) - len(held[-1][1])
    data[start : start + 8] = (4 + (1 << 40)).to_bytes(8, "big")
    log = await open_log(disk)
    assert log.damage is None
    assert contents(log) == held[:-1]
    await log.close()
