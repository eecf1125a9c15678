"""The task that looks for the log that needs compaction most, and compacts it.

One log at a time, so there is one key map. Which offsets are clean is kept in
`cleaner-offset-checkpoint`, written after a round: a crash before that repeats the round. A log
whose records cannot be read is left alone until the process restarts; one whose bytes are not those
that were written is damaged (RULES C1); a disk that is full is tried again later.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable

from ....seam import Clock, frozen
from ....wire import WireError
from ....wire.compression import CompressionUnavailable
from ..errors import BatchDamaged, StorageFailed
from ..log_directory import LogDirectory
from ..partition_log import PartitionLog
from .cleanable import Cleanable, LogEnds, cleanable
from .cleaning import CleaningRound, RoundOver, RoundResult
from .key_map import KeyMap
from .pace import Pace
from .settings import CleanerSettings

logger = logging.getLogger(__name__)


@frozen
class CleaningCandidate:
    log: PartitionLog
    high_watermark: int


class LogCleaner:
    """Owned by whoever runs `run`."""

    def __init__(
        self,
        directory: LogDirectory,
        *,
        clock: Clock,
        settings: Callable[[], CleanerSettings],
        candidates: Callable[[], Awaitable[Iterable[CleaningCandidate]]],
    ) -> None:
        """`candidates`: the open compacted logs, with the watermark of the replica; asked each
        time, and true in the turn in which the answer comes."""
        self._directory = directory
        self._clock = clock
        self._settings = settings
        self._candidates = candidates
        self._uncleanable: dict[PartitionLog, None] = {}

    async def run(self) -> None:
        while True:
            settings = self._settings()
            if not settings.enabled or not await self.clean_once():
                await asyncio.sleep(settings.backoff_ms / 1000)

    async def clean_once(self) -> bool:
        """Do the most needed round, if any is; False when there was nothing to do, or it failed."""
        found = self._most_needed(await self._candidates())
        if found is None:
            return False
        log, target = found
        try:
            result = await self._clean(log, target)
        except RoundOver as why:
            logger.info("compaction of %s ends early: %s", log, why)
        except BatchDamaged as damaged:
            logger.error("compaction of %s ends: %s", log, log.note_damage(damaged))
        except (WireError, CompressionUnavailable) as error:
            logger.error("%s is not compacted any more: %s", log, error)
            self._uncleanable[log] = None
        except (OSError, StorageFailed) as error:
            logger.warning("compaction of %s is tried again later: %s", log, error)
        else:
            self._report(log, target, result)
            return True
        return False

    def _most_needed(
        self, candidates: Iterable[CleaningCandidate]
    ) -> tuple[PartitionLog, Cleanable] | None:
        """The dirtiest log; one that is overdue is looked at whatever its ratio."""
        found: tuple[PartitionLog, Cleanable] | None = None
        logs: dict[PartitionLog, None] = {}
        for candidate in candidates:
            log = candidate.log
            logs[log] = None
            if not log.config.compact or log in self._uncleanable or log.damage is not None:
                continue
            if log.swap_unfinished:
                continue  # A start that found a segment being made would drop the finished one.
            ends = LogEnds(
                log_start_offset=log.log_start_offset,
                log_end_offset=log.log_end_offset,
                last_stable_offset=log.last_stable_offset(candidate.high_watermark),
                cleaned_offset=self._directory.cleaned_offset(log),
            )
            target = cleanable(log.synced_segments, ends, log.config, self._clock.now_ms())
            if target is not None and (found is None or target.dirty_ratio > found[1].dirty_ratio):
                found = log, target
        self._uncleanable = {log: None for log in self._uncleanable if log in logs}
        return found

    async def _clean(self, log: PartitionLog, target: Cleanable) -> RoundResult:
        settings = self._settings()
        self._directory.begin_cleaning(log)
        result = await CleaningRound(
            log,
            target,
            files=self._directory.files,
            keys=KeyMap(settings.dedupe_buffer_bytes),
            pace=Pace(settings.max_bytes_per_second),
            now_ms=self._clock.now_ms(),
        ).run()
        await self._directory.set_cleaned_offset(log, result.cleaned_offset)
        return result

    @staticmethod
    def _report(log: PartitionLog, target: Cleanable, result: RoundResult) -> None:
        logger.info(
            "compacted %s: offsets %d to %d, %d to %d bytes, longest slice %.1f ms",
            log,
            target.first_dirty_offset,
            result.cleaned_offset,
            result.bytes_before,
            result.bytes_after,
            result.longest_slice_s * 1000,
        )
