"""Power cuts of a real file system: ext4 on a loop device, ended by its shutdown ioctl.

From the ioctl on nothing more reaches the device, not even what the journal holds; the next mount
replays what was there. The simulated disk enumerates the states after a cut; this one shows that a
real journal leaves no other.
"""

from __future__ import annotations

import fcntl
import os
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from logboat.partitions.storage import PartitionLog
from logboat.seam import SystemClock
from logboat.seam.real_disk import RealDisk
from logboat.wire.records import decode_records, parse_header
from tests.partitions.storage.power_cut_program import (
    CONFIG,
    DEVICE_GONE,
    batch,
    open_directory,
)

PROGRAM = Path(__file__).with_name("power_cut_program.py")
IMAGE_BYTES = 48 << 20
SHUTDOWN = 0x8004587D
"""`EXT4_IOC_SHUTDOWN`, _IOR('X', 125, __u32)."""
WITHOUT_JOURNAL = 2
"""`EXT4_GOING_FLAGS_NOLOGFLUSH`: what the journal has not yet written is lost too."""


@pytest.fixture
def image(tmp_path: Path) -> Path:
    if os.geteuid() != 0:
        pytest.skip("cutting the power of a file system needs root")
    image, probe = tmp_path / "image", tmp_path / "probe"
    with image.open("wb") as file:
        file.truncate(IMAGE_BYTES)
    try:
        subprocess.run(["mkfs.ext4", "-q", "-F", str(image)], check=True, capture_output=True)
        with mounted(image, probe):
            pass
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"no ext4 on a loop device here: {error}")
    return image


@contextmanager
def mounted(image: Path, folder: Path) -> Iterator[Path]:
    folder.mkdir(exist_ok=True)
    subprocess.run(["mount", "-o", "loop", image, folder], check=True, capture_output=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


def cut_power(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY)
    try:
        fcntl.ioctl(fd, SHUTDOWN, struct.pack("I", WITHOUT_JOURNAL))
    finally:
        os.close(fd)


def written_until_a_cut(folder: Path, cut_after: int) -> int:
    """The power goes some time after `cut_after` offsets are synced; the last one told of by then.

    What is told later does not count: Linux lets an fdatasync that races with the shutdown return
    success for what it dropped (a bare loop of write and fdatasync sees it in 24 of 60 cuts), and
    whoever really loses its power tells nothing afterwards.
    """
    told_of = 0
    with subprocess.Popen(
        [sys.executable, str(PROGRAM), str(folder / "data")], stdout=subprocess.PIPE, text=True
    ) as child:
        try:
            assert child.stdout is not None
            for line in child.stdout:
                if told_of < cut_after:
                    told_of = int(line)
                    if told_of >= cut_after:
                        cut_power(folder)
            assert child.wait(60) == DEVICE_GONE
        finally:
            child.kill()
    assert told_of >= cut_after
    return told_of


def check_contents(log: PartitionLog) -> None:
    """Every offset below the end holds what was written there."""
    offset = 0
    while offset < log.log_end_offset:
        found = log.read(offset, max_bytes=1, upper_bound=log.log_end_offset, at_least_one=True)
        data = b"".join(found.parts)
        assert parse_header(data).base_offset == offset
        (record,) = decode_records(data)
        (written,) = decode_records(batch(offset))
        assert record.value == written.value
        offset = found.next_offset


@pytest.mark.processes
@pytest.mark.parametrize("cut_after", [1, 100, 1_000])
async def test_what_was_synced_outlives_a_power_cut_and_nothing_else_is_found(
    image: Path, tmp_path: Path, cut_after: int
) -> None:
    """RULES C2, C4."""
    with mounted(image, tmp_path / "mounted") as folder:
        synced = written_until_a_cut(folder, cut_after)
    with mounted(image, tmp_path / "mounted") as folder:
        await check_recovered(str(folder / "data"), synced)


async def check_recovered(folder: str, synced: int) -> None:
    """The log in `folder` opens with all that was synced, as it was, and goes on."""
    disk = RealDisk()
    directory = await open_directory(folder, disk)
    try:
        (stored,) = directory.stored_logs()
        log = await directory.open_log(stored, CONFIG)
        assert not directory.clean
        assert log.damage is None
        assert log.log_end_offset >= synced
        check_contents(log)
        now_ms = SystemClock().now_ms()
        log.append_as_leader(batch(log.log_end_offset), leader_epoch=1, now_ms=now_ms)
        await log.wait_synced(log.log_end_offset)
        check_contents(log)
        await directory.close_logs()
    finally:
        # Also what failed must let go of the file system, or it cannot be unmounted.
        await directory.close()
        disk.close()
