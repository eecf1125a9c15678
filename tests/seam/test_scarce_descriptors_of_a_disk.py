"""To open a directory is not to sync it: without a descriptor nothing was tried (case O05)."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from logboat.seam import Fatal, write_file_atomically
from logboat.seam import real_disk as module
from logboat.seam.real_disk import RealDisk

OPEN = os.open


@contextmanager
def opening(monkeypatch: pytest.MonkeyPatch, fail: Callable[[int], int | None]) -> Iterator[None]:
    """`fail`: the errno of the n-th opening of a directory, None: it opens."""
    attempts = 0

    def open_(path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        nonlocal attempts
        if flags & os.O_DIRECTORY:
            attempts += 1
            number = fail(attempts)
            if number is not None:
                raise OSError(number, os.strerror(number), path)
        return OPEN(path, flags, mode, dir_fd=dir_fd)

    with monkeypatch.context() as patched:
        patched.setattr(os, "open", open_)
        yield


def run(check: Callable[[RealDisk], Any]) -> None:
    disk = RealDisk()
    try:
        asyncio.run(check(disk))
    finally:
        disk.close()


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE])
def test_a_directory_is_synced_once_there_is_a_descriptor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    async def check(disk: RealDisk) -> None:
        with opening(monkeypatch, lambda attempt: number if attempt < 3 else None):
            await write_file_atomically(disk, f"{tmp_path}/file", b"whole")

    run(check)
    assert (tmp_path / "file").read_bytes() == b"whole"


def test_a_lasting_lack_of_descriptors_is_no_failed_sync(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Did not happen: whoever asked may ask again. A failed sync would end the process."""
    monkeypatch.setattr(module, "DESCRIPTOR_WAIT_SECONDS", 0.0)

    async def check(disk: RealDisk) -> None:
        with (
            opening(monkeypatch, lambda attempt: errno.EMFILE),
            pytest.raises(OSError, match=r"open files") as refused,
        ):
            await disk.sync_dir(str(tmp_path))
        assert refused.value.errno == errno.EMFILE
        await disk.sync_dir(str(tmp_path))

    run(check)


def test_c4_a_directory_that_is_not_there_is_a_failed_sync(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def check(disk: RealDisk) -> None:
        with pytest.raises(Fatal, match=r"sync of .*nowhere failed"):
            await disk.sync_dir(f"{tmp_path}/nowhere")
        with opening(monkeypatch, lambda attempt: errno.EIO), pytest.raises(Fatal):
            await disk.sync_dir(str(tmp_path))

    run(check)
