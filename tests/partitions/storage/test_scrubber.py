"""Old data is read now and then: what the disk has changed is found before it is needed (C1)."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from random import Random
from typing import Any
from uuid import UUID

import pytest

from logboat.jepsen_style.simulation import DiskCall, Host, World
from logboat.partitions.storage import LogConfig, PartitionLog, StorageFailed
from logboat.partitions.storage.cleaner.pace import Pace
from logboat.partitions.storage.scrubber import (
    FIRST_ROUND_SECONDS,
    WINDOW_BYTES,
    LogScrubber,
    ScrubberSettings,
)
from logboat.wire.records import Record, batches, encode_batch

FOLDER = "data/topic-0"
SMALL = LogConfig(segment_bytes=400, index_interval_bytes=100, file_delete_delay_ms=1)
COUNT = 24
FAST = float("inf")


@dataclass
class Counters:
    scrubbed_bytes: int = 0
    scrubbed_logs: int = 0
    damage_scrubbed: int = 0


class Scene:
    """A log whose records an earlier process has written, and its scrubber."""

    def __init__(self, host: Host, log: PartitionLog, settings: ScrubberSettings) -> None:
        self.host = host
        self.log = log
        self.settings = settings
        self.counters = Counters()
        self.told: list[int] = []
        self.scrubber = LogScrubber(
            disk=host.disk,
            rng=Random(1),
            settings=lambda: self.settings,
            logs=lambda: [log],
            counters=self.counters,
        )
        log.on_damaged = lambda: self.told.append(log.log_end_offset)

    async def scrub(self) -> None:
        await self.scrubber.scrub(self.log, Pace(self.settings.max_bytes_per_second))


async def open_log(host: Host, config: LogConfig, recovery_point: int = 0) -> PartitionLog:
    host.disk.make_dirs(FOLDER)
    return await PartitionLog.open(
        FOLDER,
        topic="topic",
        partition=0,
        topic_id=UUID(int=1),
        config=config,
        disk=host.disk,
        clock=host.clock,
        on_fatal=host.exit,
        clean=recovery_point > 0,
        recovery_point=recovery_point,
    )


def append(log: PartitionLog, value: bytes, epoch: int) -> None:
    data = encode_batch([Record(value=value, timestamp=1)])
    log.append_as_leader(data, leader_epoch=epoch, now_ms=1)


async def scene_of(
    host: Host,
    *values: bytes,
    config: LogConfig = SMALL,
    max_bytes_per_second: float = FAST,
) -> Scene:
    log = await open_log(host, config)
    for number, value in enumerate(values or [b"%d" % number for number in range(COUNT)]):
        append(log, value, epoch=number // 8)
    end = log.log_end_offset
    await log.wait_synced(end)
    await log.close()
    log = await open_log(host, config, recovery_point=end)
    return Scene(host, log, ScrubberSettings(max_bytes_per_second=max_bytes_per_second))


def flip(host: Host, base_offset: int, position: int, bit: int = 1) -> None:
    node = host.drive.open_file(f"{FOLDER}/{base_offset:020}.log", create=False)
    for image in (node.cached, node.durable):
        image[position] ^= bit


def on_a_host(main: Callable[[Host], Coroutine[Any, Any, None]], seed: int = 1) -> None:
    with World(seed) as world:
        host = world.host("n1")
        host.start(main)
        world.run_until(lambda: not host.alive, within=20_000)


def test_a_whole_log_is_read_once_and_nothing_is_found() -> None:
    async def main(host: Host) -> None:
        scene = await scene_of(host)
        await scene.scrub()
        assert scene.log.damage is None
        whole = scene.log.size_bytes
        sealed = sum(segment.size for segment in scene.log.synced_segments)
        assert scene.counters == Counters(whole, scrubbed_logs=1)
        append(scene.log, b"not synced yet", epoch=9)
        await scene.scrub()
        assert scene.counters.scrubbed_bytes == whole + sealed

    on_a_host(main)


@pytest.mark.parametrize("sealed", [True, False])
def test_a_bit_that_flips_under_a_checksum_is_found_wherever_it_is(sealed: bool) -> None:
    """And whoever counts on this log is told, as by a first read; also if it was read before, for
    what is read once is not tested again."""

    async def main(host: Host) -> None:
        scene = await scene_of(host)
        await scene.log.close()
        base_offset = scene.log.segment_base_offsets[2 if sealed else -1]
        path = f"{FOLDER}/{base_offset:020}.log"
        node = host.drive.open_file(path, create=False)
        first = next(batches(bytes(node.cached)))
        # What the checksum covers, and itself; what says how long the batch is.
        for position in [8, 11, 16, *range(17, first.header.size, 6)]:
            log = await open_log(host, SMALL, recovery_point=COUNT)
            flip(host, base_offset, position)
            found = Scene(host, log, ScrubberSettings(max_bytes_per_second=FAST))
            await found.scrub()
            assert log.damage is not None, position
            assert log.damage.offset == base_offset
            assert found.told == [base_offset]
            assert found.counters.damage_scrubbed == 1
            with pytest.raises(StorageFailed):
                append(log, b"x", epoch=9)
            await asyncio.sleep(0.01)  # A note of it is written.
            await log.close()
            host.disk.remove(f"{FOLDER}/damage-found")
            flip(host, base_offset, position)

    on_a_host(main)


def test_a_bit_that_flips_in_what_was_read_already_is_found_in_the_next_round() -> None:
    async def main(host: Host) -> None:
        scene = await scene_of(host)
        await scene.scrub()
        flip(host, scene.log.segment_base_offsets[1], 70)
        await scene.scrub()
        assert scene.log.damage is not None

    on_a_host(main)


@pytest.mark.parametrize("position", [8, 9, 200_000, 2_999_999])
def test_a_batch_that_is_longer_than_what_is_held_is_tested_piece_by_piece(position: int) -> None:
    async def main(host: Host) -> None:
        config = LogConfig(max_message_bytes=4 << 20)
        scene = await scene_of(host, b"a", bytes(3_000_000), b"z", config=config)
        await scene.scrub()
        assert scene.counters.scrubbed_logs == 1
        assert scene.log.damage is None
        first = scene.log.read(0, max_bytes=1, upper_bound=1, at_least_one=True).size
        flip(host, 0, first + position)
        longest = 0

        def see(call: DiskCall) -> None:
            nonlocal longest
            if call.kind == "read_at":
                longest = max(longest, call.size)

        host.drive.on_call = see
        await scene.scrub()
        assert scene.log.damage is not None
        assert scene.log.damage.offset == 1
        assert longest <= max(WINDOW_BYTES, 3_000_100), "the last look reads the batch at once"

    on_a_host(main)


def test_a_sector_that_cannot_be_read_is_found() -> None:
    async def main(host: Host) -> None:
        scene = await scene_of(host, *[bytes(300)] * 40, config=LogConfig())
        bad = range(5_120, 5_632)

        def fail(call: DiskCall) -> None:
            if call.kind == "read_at" and call.size and bad_is_in(call):
                raise OSError(errno.EIO, "injected")

        def bad_is_in(call: DiskCall) -> bool:
            return position_of[0] < bad.stop and bad.start < position_of[0] + call.size

        position_of = [0]
        enter = host.disk.enter

        def seen(kind: str, path: str, cost: float, **rest: Any) -> None:
            position_of[0] = rest.get("position", 0)
            enter(kind, path, cost, **rest)

        host.disk.enter = seen  # type: ignore[method-assign]
        host.drive.on_call = fail
        await scene.scrub()
        assert scene.log.damage is not None
        assert scene.counters.damage_scrubbed == 1

    on_a_host(main)


def test_no_more_is_read_in_a_second_than_the_settings_allow() -> None:
    async def main(host: Host) -> None:
        scene = await scene_of(
            host, *[bytes(10_000)] * 100, config=LogConfig(), max_bytes_per_second=100_000
        )
        began = host.loop.time()
        await scene.scrub()
        took = host.loop.time() - began
        assert 7.0 < took < 13.0, took
        assert scene.counters.scrubbed_logs == 1

    on_a_host(main)


def test_while_the_loop_is_late_for_others_hardly_anything_is_read() -> None:
    async def main(host: Host) -> None:
        scene = await scene_of(host, *[bytes(10_000)] * 400, config=LogConfig())
        busy = True

        async def work() -> None:
            while busy:
                host.spend(0.02)
                await asyncio.sleep(0)

        others = asyncio.ensure_future(work())
        scrubbing = asyncio.ensure_future(scene.scrub())
        await asyncio.sleep(15)
        assert 0 < scene.counters.scrubbed_bytes <= 2 * WINDOW_BYTES
        busy = False
        await others
        await asyncio.sleep(30)
        assert scrubbing.done()
        assert scene.counters.scrubbed_logs == 1

    on_a_host(main)


def test_rounds_follow_each_other_at_the_interval_which_may_change_while_it_runs() -> None:
    async def main(host: Host) -> None:
        scene = await scene_of(host)
        scene.settings = ScrubberSettings(interval_ms=86_400_000, max_bytes_per_second=FAST)
        running = asyncio.ensure_future(scene.scrubber.run())
        await asyncio.sleep(FIRST_ROUND_SECONDS - 1)
        assert scene.counters.scrubbed_logs == 0
        await asyncio.sleep(2)
        assert scene.counters.scrubbed_logs == 1
        await asyncio.sleep(3600)
        assert scene.counters.scrubbed_logs == 1
        scene.settings = ScrubberSettings(interval_ms=600_000, max_bytes_per_second=FAST)
        await asyncio.sleep(61)
        assert scene.counters.scrubbed_logs == 2
        scene.settings = ScrubberSettings(enabled=False, interval_ms=600_000)
        await asyncio.sleep(3600)
        assert scene.counters.scrubbed_logs == 2
        running.cancel()

    on_a_host(main)


@pytest.mark.parametrize("seed", range(8))
def test_a_log_that_is_cut_deleted_and_filled_while_it_is_read_is_not_called_damaged(
    seed: int,
) -> None:
    async def main(host: Host) -> None:
        dice = Random(seed)
        scene = await scene_of(host)
        log, reading = scene.log, True

        async def read() -> None:
            while reading:
                await scene.scrub()
                await asyncio.sleep(0.001)

        scrubbing = asyncio.ensure_future(read())
        epoch = 9
        for _ in range(60):
            await asyncio.sleep(dice.random() * 0.03)
            kind = dice.randrange(6)
            if kind == 0:
                await log.truncate_to(dice.randrange(log.log_start_offset, log.log_end_offset + 1))
                epoch += 1
            elif kind == 1:
                start = min(log.log_end_offset, log.log_start_offset + dice.randrange(6))
                await log.advance_log_start(start)
            elif kind == 2:
                await log.truncate_fully(log.log_end_offset + 3)
            else:
                for _ in range(dice.randrange(12)):
                    append(log, bytes(dice.randrange(90)), epoch)
            assert log.damage is None
        reading = False
        await scrubbing
        assert scene.counters.damage_scrubbed == 0
        assert scene.counters.scrubbed_bytes > 0

    on_a_host(main, seed)
