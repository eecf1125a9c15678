"""What a log begins with: its segments as recovery left them, and the producers in them."""

from __future__ import annotations

import logging

from ...seam import Clock, Disk
from .errors import BatchDamaged
from .log_config import LogConfig
from .open_files import OpenFiles
from .producer_recovery import rebuild_producers
from .producer_states import ProducerStates
from .recovery import Recovered, note_damage_found, recover

logger = logging.getLogger(__name__)


async def recover_log(
    directory: str,
    *,
    disk: Disk,
    files: OpenFiles,
    config: LogConfig,
    clock: Clock,
    clean: bool,
    recovery_point: int,
    log_start_offset: int,
    compacted: bool,
) -> tuple[Recovered, ProducerStates]:
    """As `recover`. Where the producers' batches are damaged, all is tested from end to end."""

    async def attempt() -> tuple[Recovered, ProducerStates]:
        recovered = await recover(
            directory,
            disk=disk,
            files=files,
            config=config,
            clean=clean,
            recovery_point=recovery_point,
            log_start_offset=log_start_offset,
            compacted=compacted,
            now_ms=clock.now_ms(),
        )
        segments = recovered.segments
        end_offset = segments[-1].next_offset
        return recovered, await rebuild_producers(disk, directory, segments, end_offset)

    try:
        return await attempt()
    except BatchDamaged as found:
        logger.error("%s is tested from end to end: %s", directory, found)
        await note_damage_found(disk, directory)
        return await attempt()
