"""A compacted segment takes its place in a log that goes on (`segment_swap`, decision 0034)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from ...seam import Disk, Fatal, TaskScope
from .delayed_deletes import DelayedDeletes
from .group_commit import RETRY_SECONDS
from .open_files import OpenFiles
from .producer_recovery import remove_snapshots
from .segment import Segment
from .segment_list import SegmentList
from .segment_swap import SegmentSwap, store_segment

logger = logging.getLogger(__name__)


class SegmentReplacement:
    """Of one log; one swap at a time."""

    __slots__ = (
        "_deletes",
        "_directory",
        "_disk",
        "_exclusive",
        "_files",
        "_finished",
        "_is_damaged",
        "_is_refused",
        "_name",
        "_scope",
        "_segments",
        "_swap",
    )

    def __init__(
        self,
        directory: str,
        segments: SegmentList,
        deletes: DelayedDeletes,
        *,
        disk: Disk,
        files: OpenFiles,
        exclusive: asyncio.Lock,
        scope: TaskScope,
        is_refused: Callable[[], bool],
        is_damaged: Callable[[], bool],
        finished: Callable[[], None],
        name: str,
    ) -> None:
        """`exclusive`: held by whoever changes what is a segment of the log. `is_refused`: nothing
        may change any more. `finished`: what had to wait for the swap may happen."""
        self._directory = directory
        self._segments = segments
        self._deletes = deletes
        self._disk = disk
        self._files = files
        self._exclusive = exclusive
        self._scope = scope
        self._is_refused = is_refused
        self._is_damaged = is_damaged
        self._finished = finished
        self._name = name
        self._swap: SegmentSwap | None = None

    @property
    def unfinished(self) -> bool:
        """Reads and appends go on; segments are neither deleted nor cut off before it is finished,
        and compaction must make none."""
        return self._swap is not None

    async def replace(self, old: Sequence[Segment], new: Segment) -> bool:
        """See `PartitionLog.replace_segments`."""
        if self._is_refused():
            self.discard(new)
            return False
        # Its own task: once decided, a cancelled cleaner must not leave a swap half-made in a log
        # that goes on.
        swap: asyncio.Task[bool | OSError] = self._scope.spawn(
            self._replace(list(old), new), name=f"swap in {self._name}"
        )
        replaced = await asyncio.shield(swap)
        if isinstance(replaced, OSError):
            raise replaced
        return replaced

    async def _replace(self, old: list[Segment], new: Segment) -> bool | OSError:
        async with self._exclusive:
            if self._swap is not None:
                raise Fatal(f"{self._name}: two swaps at once")
            gone = {segment.base_offset for segment in old[1:]}
            swap = self._swap = SegmentSwap(
                old,
                new,
                disk=self._disk,
                condemn=self._deletes.condemn,
                # The start of the log needs no others than those of its segments.
                afterwards=lambda: remove_snapshots(self._disk, self._directory, gone.__contains__),
            )
            replaced: bool | OSError = False
            try:
                if self._place_of(old) is not None:
                    await store_segment(new, self._disk, self._files)
                    await swap.decide()
                    replaced = self._use(old, new)
                    if not replaced:
                        swap.give_up()
            except OSError as error:
                replaced = error
            try:
                await self.finish()
            except OSError as error:
                logger.warning("%s: a swap of segments is finished later: %s", self._name, error)
                self._scope.spawn(self._finish_later(), name=f"finish swap in {self._name}")
                return error
            return replaced

    def discard(self, made: Segment) -> None:
        """See `PartitionLog.discard_segment`."""
        try:
            made.remove(self._disk)
        except OSError as error:
            logger.warning("%s is removed later: %s", made.log_path, error)
            if not self._is_refused() and self._swap is None:
                self._swap = SegmentSwap((), made, disk=self._disk, condemn=self._deletes.condemn)
                self._scope.spawn(self._finish_later(), name=f"tidy {self._name}")

    def _use(self, old: list[Segment], new: Segment) -> bool:
        """False: somebody has met damage while it was made."""
        first = self._place_of(old)
        if first is None:
            return False
        new.next_offset = old[-1].next_offset
        self._segments.replace(first, len(old), new)
        return True

    def _place_of(self, old: list[Segment]) -> int | None:
        """None: the log, or its beginning, is no longer what it was."""
        if self._is_refused() or self._is_damaged():
            return None
        return self._segments.place_of(old)

    async def finish(self) -> None:
        """With `exclusive`. Raises OSError: not yet."""
        if self._swap is not None:
            await self._swap.go_on()
            self._swap = None
            self._finished()

    async def finish_at_the_end(self) -> None:
        """With `exclusive`, of a log that is being closed."""
        try:
            await self.finish()
        except OSError as error:
            logger.warning("%s: a swap is left to the next start: %s", self._name, error)

    async def _finish_later(self) -> None:
        refused: OSError | None = None
        while self.unfinished:
            await asyncio.sleep(RETRY_SECONDS)
            async with self._exclusive:
                if self._is_refused():
                    return  # Opened again or started anew, it is finished by recovery.
                try:
                    await self.finish()
                except OSError as error:
                    if refused is None or refused.errno != error.errno:
                        logger.warning("%s: the swap is not finished yet: %s", self._name, error)
                    refused = error
        logger.info("%s: the swap of segments is finished", self._name)
