"""Compacted segments take the place of those they were made from, whole, whatever crashes when.

    <base>.log.cleaned   written and synced; counts for nothing
    <base>.log.swap      all of them renamed, and the directory synced: from here the swap happens
    <old>.log.deleted    the old ones renamed; directory synced, so that old and new never meet
    <base>.log           the new ones renamed; directory synced

A start that finds a `.cleaned` log drops it, and with it every `.swap`: the last step before the
decision was not reached, the old ones are all there. Otherwise it finishes each `.swap`. One swap
at a time runs in a log, so the two cannot belong to different ones.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from ...seam import Disk, offload
from .log_config import LogConfig
from .open_files import OpenFiles
from .segment import CLEANED, DELETED, IN_USE, LOG_SUFFIX, SEGMENT_SUFFIXES, SWAP, Segment

logger = logging.getLogger(__name__)

UNFINISHED = (".tmp", CLEANED, SWAP, DELETED)

SLICE_BATCHES = 2000
"""Headers looked at between two turns of the loop (RULES F1)."""


async def make_swap(new: Sequence[Segment], disk: Disk, files: OpenFiles) -> None:
    """Put `new` on the device and decide for them. An OSError: not decided, remove them."""
    for segment in new:
        segment.seal_indexes()
        for path in segment.paths():
            if disk.exists(path):
                await files.sync(path)
        segment.freeze_indexes()
    # The newest first, as Kafka does: its recovery drops the `.swap` above a `.cleaned`.
    for segment in reversed(new):
        segment.change_state(disk, SWAP)
    await disk.sync_dir(new[0].directory)


async def carry_out_swap(
    old: Sequence[Segment], new: Sequence[Segment], disk: Disk, condemn: Callable[[Segment], None]
) -> None:
    """After the decision; readers already use `new`, under whatever name."""
    directory = new[0].directory
    for segment in old:
        condemn(segment)
    await disk.sync_dir(directory)
    for segment in new:
        segment.change_state(disk, IN_USE)
    await disk.sync_dir(directory)


class LeftOvers:
    """Files that a crash left between being made and being named, or between being named and being
    freed. `tidy` is the first step of opening a log."""

    def __init__(self, directory: str, *, disk: Disk, files: OpenFiles, config: LogConfig) -> None:
        self._directory = directory
        self._disk = disk
        self._files = files
        self._config = config

    async def tidy(self) -> bool:
        """Whether anything was changed: then the directory is to be synced."""
        names = self._names()
        if any(name.endswith(LOG_SUFFIX + CLEANED) for name in names):
            swaps = []
        else:
            swaps = [name for name in names if name.endswith(LOG_SUFFIX + SWAP)]
        for name in swaps:
            await self._finish_swap(int(name.removesuffix(LOG_SUFFIX + SWAP)))
        logs = {name.removesuffix(LOG_SUFFIX) for name in self._names() if _is_log(name)}
        for name in self._names():
            stem, _, suffix = name.rpartition(".")
            orphan = "." + suffix in SEGMENT_SUFFIXES and stem.isdigit() and stem not in logs
            if orphan or name.endswith(UNFINISHED):
                logger.info("removing left-over %s/%s", self._directory, name)
                path = f"{self._directory}/{name}"
                await offload(lambda path=path: self._disk.remove(path))  # type: ignore[misc]
        return self._names() != names

    def _names(self) -> list[str]:
        return self._disk.list(self._directory)

    async def _finish_swap(self, base_offset: int) -> None:
        segment = Segment(self._directory, base_offset, self._files, self._config, state=SWAP)
        segment.size = segment.file().size()
        scan = segment.scan(read_bytes=1 << 18)
        end_offset = base_offset
        for number, batch in enumerate(scan):
            end_offset = batch.header.next_offset
            if number % SLICE_BATCHES == 0:
                await asyncio.sleep(0)
        covered = [
            offset
            for offset in base_offsets(self._disk, self._directory)
            if base_offset <= offset < max(end_offset, base_offset + 1)
        ]
        if scan.fault is not None and base_offset in covered:
            logger.error("%s is dropped: %s", segment.log_path, scan.fault)
            segment.remove(self._disk)
            return
        logger.info("%s takes its place", segment.log_path)
        for offset in covered:
            Segment(self._directory, offset, self._files, self._config).remove(self._disk)
        await self._disk.sync_dir(self._directory)
        segment.change_state(self._disk, IN_USE)
        self._files.forget(segment.log_path)


def _is_log(name: str) -> bool:
    return name.endswith(LOG_SUFFIX) and name.removesuffix(LOG_SUFFIX).isdigit()


def base_offsets(disk: Disk, directory: str) -> list[int]:
    """Of the `.log` files, rising."""
    return [int(name.removesuffix(LOG_SUFFIX)) for name in disk.list(directory) if _is_log(name)]
