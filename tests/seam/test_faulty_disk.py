"""A disk that is full on purpose refuses what needs room, and nothing else."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from logboat.seam.fault_switches import FaultSwitches
from logboat.seam.faulty_clock import FaultyClock
from logboat.seam.faulty_disk import BLOCK_BYTES, FaultyDisk
from logboat.seam.real_disk import RealDisk
from tests.seam.injected import SetClock, new_switches
from tests.waiting import until


@pytest.fixture
def switches() -> FaultSwitches:
    return new_switches()


@pytest.fixture
def disk(switches: FaultSwitches) -> Iterator[FaultyDisk]:
    real = RealDisk()
    yield FaultyDisk(real, switches)
    real.close()


def no_space(action: Callable[[], object]) -> bool:
    try:
        action()
    except OSError as refused:
        return refused.errno == errno.ENOSPC
    return False


def test_a_file_grows_to_the_end_of_its_last_block_and_no_further(
    disk: FaultyDisk, switches: FaultSwitches, tmp_path: Path
) -> None:
    file = disk.open(f"{tmp_path}/log", create=True)
    file.append([b"a" * 100])
    switches.disk_is_full = True
    assert file.append([b"b" * 50]) == 100
    assert no_space(lambda: file.append([b"c" * BLOCK_BYTES, b"d"]))
    assert file.size() == BLOCK_BYTES, "as a short write leaves it"
    assert no_space(lambda: file.append([b"e"]))
    file.truncate(150)
    assert file.read_at(0, BLOCK_BYTES) == b"a" * 100 + b"b" * 50
    file.close()


def test_what_was_allocated_is_written_anew(
    disk: FaultyDisk, switches: FaultSwitches, tmp_path: Path
) -> None:
    file = disk.open(f"{tmp_path}/journal", create=True)
    file.preallocate(2 * BLOCK_BYTES)
    switches.disk_is_full = True
    file.write_at(BLOCK_BYTES, b"x" * BLOCK_BYTES)
    file.preallocate(2 * BLOCK_BYTES)
    assert no_space(lambda: file.write_at(2 * BLOCK_BYTES, b"x"))
    assert no_space(lambda: file.preallocate(3 * BLOCK_BYTES))
    asyncio.run(file.sync())
    file.close()


def test_a_new_file_has_a_name_and_no_content(
    disk: FaultyDisk, switches: FaultSwitches, tmp_path: Path
) -> None:
    switches.disk_is_full = True
    file = disk.open(f"{tmp_path}/new", create=True)
    assert no_space(lambda: file.append([b"x"]))
    file.close()
    assert no_space(lambda: disk.make_dirs(f"{tmp_path}/folder"))
    assert disk.free_bytes(str(tmp_path)) == 0
    disk.rename(f"{tmp_path}/new", f"{tmp_path}/other")
    disk.remove(f"{tmp_path}/other")


def test_room_comes_back_when_the_time_is_over_or_it_is_healed(
    disk: FaultyDisk, switches: FaultSwitches, tmp_path: Path
) -> None:
    async def check() -> None:
        file = disk.open(f"{tmp_path}/log", create=True)
        switches.fill_disk(60)
        assert no_space(lambda: file.append([b"x"]))
        switches.heal()
        file.append([b"x"])
        switches.fill_disk(0.01)
        assert disk.free_bytes(str(tmp_path)) == 0
        await until(lambda: disk.free_bytes(str(tmp_path)) > 0)
        file.close()

    asyncio.run(check())


def test_a_wrong_clock_is_wrong_until_it_is_healed(switches: FaultSwitches) -> None:
    async def check() -> None:
        true, clock = SetClock(500_000), FaultyClock(SetClock(500_000), switches)
        switches.shift_clock(-90_000, 60)
        assert clock.now_ms() == true.now_ms() - 90_000
        switches.shift_clock(-900_000, 60)
        assert clock.now_ms() == 0, "there is no time before 1970"
        switches.shift_clock(3_600_000, 60)
        assert clock.now_ms() == true.now_ms() + 3_600_000
        switches.heal()
        assert clock.now_ms() == true.now_ms()

    asyncio.run(check())


def test_the_same_fault_asked_for_again_lasts_from_then_on(switches: FaultSwitches) -> None:
    async def check() -> None:
        loop = asyncio.get_running_loop()
        switches.shift_clock(1000, 0.01)
        switches.shift_clock(2000, 60)
        began = loop.time()
        await asyncio.sleep(0.05)
        assert loop.time() - began >= 0.05
        assert switches.clock_offset_ms == 2000
        switches.heal()

    asyncio.run(check())
