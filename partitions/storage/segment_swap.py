"""A compacted segment takes the place of those it was made from, whole, whatever crashes when.

    <base>.log.cleaned   written and synced; counts for nothing
    <base>.log.swap      renamed, and the directory synced: from here the swap happens
    <old>.log.deleted    the old ones renamed; directory synced, so that old and new never meet
    <base>.log           the new one renamed; directory synced

A start that finds a `.cleaned` log drops it, and with it every `.swap`: the last step before the
decision was not reached, the old ones are all there. Otherwise it finishes each `.swap`. One swap
at a time runs in a log, so the two cannot belong to different ones: nothing is `.cleaned` any more
when one is decided, and nothing may be made under that name before it is over.

A disk that refuses a step (full, no descriptors, a name that cannot be written) stops the swap, not
the log: the old or the new segment, whichever it is, can be read under the names it has, and what
is left to be done is done later (decision 0034).
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from ...seam import Disk, offload
from .log_config import LogConfig
from .offset_index import SUFFIX as INDEX_SUFFIX
from .open_files import OpenFiles
from .segment import CLEANED, DELETED, IN_USE, LOG_SUFFIX, SEGMENT_SUFFIXES, SWAP, Segment

logger = logging.getLogger(__name__)

UNFINISHED = (".tmp", CLEANED, SWAP, DELETED)

SLICE_BATCHES = 2000
"""Headers looked at between two turns of the loop (RULES F1)."""


async def store_segment(new: Segment, disk: Disk, files: OpenFiles) -> None:
    """All its files are on the device when it returns; their names are not."""
    new.seal_indexes()
    for path in new.paths():
        if disk.exists(path):
            await files.sync(path)
    new.freeze_indexes()


Step = Callable[[], Awaitable[None]]


class SegmentSwap:
    """Undecided -> decided by `decide`. Over when `go_on` has returned; one that is undecided has
    left no trace then."""

    def __init__(
        self,
        old: Sequence[Segment],
        new: Segment,
        *,
        disk: Disk,
        condemn: Callable[[Segment], None],
        afterwards: Callable[[], None] = lambda: None,
    ) -> None:
        """`new`: in state CLEANED, with the base offset of the first of `old`, which `condemn`
        takes away one by one. `afterwards`: what else goes with them. Both may raise OSError, and
        are called again then."""
        self._old = old
        self._new = new
        self._disk = disk
        self._condemn = condemn
        self._afterwards = afterwards
        self._left: deque[Step] = deque()
        """Each may be tried again until it has gone through, and not once more: behind it names
        may mean something else."""
        self.give_up()

    async def decide(self) -> None:
        """For `new`, which is on the device: it may be read, under whatever name. Raises OSError:
        undecided."""
        self._new.change_state(self._disk, SWAP)
        _remove_cleaned(self._new.directory, self._disk)
        await self._sync_names()
        self._left = deque(partial(self._take_away, segment) for segment in self._old)
        self._left += [self._sync_names, self._take_the_name, self._sync_names, self._clear_up]

    def give_up(self) -> None:
        """Undecided again: the old ones, of which none is gone yet, stay."""
        self._left = deque([self._drop_new, self._sync_names])

    async def go_on(self) -> None:
        """Until it is over. Raises OSError: to be called again. No segment of the log may come to
        its end, or be made by compaction, before."""
        while self._left:
            await self._left[0]()
            self._left.popleft()

    async def _take_away(self, segment: Segment) -> None:
        self._condemn(segment)

    async def _take_the_name(self) -> None:
        self._new.change_state(self._disk, IN_USE)

    async def _drop_new(self) -> None:
        self._new.remove(self._disk)

    async def _clear_up(self) -> None:
        self._afterwards()

    async def _sync_names(self) -> None:
        await self._disk.sync_dir(self._new.directory)


def _remove_cleaned(directory: str, disk: Disk) -> None:
    """What compaction made and could not remove any more. Raises OSError."""
    for name in disk.list(directory):
        if name.endswith(CLEANED):
            disk.remove(f"{directory}/{name}")


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
        swaps = [
            name.removesuffix(LOG_SUFFIX + SWAP)
            for name in names
            if name.endswith(LOG_SUFFIX + SWAP)
        ]
        if not any(name.endswith(LOG_SUFFIX + CLEANED) for name in names):
            for stem in swaps:
                if stem.isdecimal():
                    await self._finish_swap(int(stem))
        logs = {name.removesuffix(LOG_SUFFIX) for name in self._names() if _is_log(name)}
        for name in self._names():
            stem, _, suffix = name.rpartition(".")
            orphan = "." + suffix in SEGMENT_SUFFIXES and stem.isdecimal() and stem not in logs
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
        if base_offset not in covered:
            self._have_indexes_made(segment)
        segment.change_state(self._disk, IN_USE)
        self._files.forget(segment.log_path)

    def _have_indexes_made(self, segment: Segment) -> None:
        """The old log of that name has gone already. An index file in its place may still be the
        old one's, which tells of transactions that are gone, or the new one's. Recovery makes all
        of them anew where there is no offset index."""
        for path in (segment.path(INDEX_SUFFIX), segment.path_in(IN_USE, INDEX_SUFFIX)):
            self._files.forget(path)
            if self._disk.exists(path):
                self._disk.remove(path)


def _is_log(name: str) -> bool:
    return name.endswith(LOG_SUFFIX) and name.removesuffix(LOG_SUFFIX).isdecimal()


def base_offsets(disk: Disk, directory: str) -> list[int]:
    """Of the `.log` files, rising."""
    return [int(name.removesuffix(LOG_SUFFIX)) for name in disk.list(directory) if _is_log(name)]
