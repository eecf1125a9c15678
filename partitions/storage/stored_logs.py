"""What a data directory holds when a node starts: one folder for each log (RULES F1: in slices)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from uuid import UUID

from ...seam import Disk, frozen, read_file
from .checkpoints import TopicPartition
from .meta_properties import PARTITION_METADATA, decode_partition_metadata

logger = logging.getLogger(__name__)

FOLDERS_AT_ONCE = 50
"""Looked into in one turn of the loop: three system calls and more for each."""


@frozen
class StoredLog:
    """A partition folder found in the data directory."""

    topic: str
    partition: int
    topic_id: UUID
    directory: str

    @property
    def key(self) -> TopicPartition:
        return self.topic, self.partition


async def find_logs(disk: Disk, path: str, names: Iterable[str]) -> dict[TopicPartition, StoredLog]:
    """Those of `names`, all that is in the directory `path`, which are folders of logs; in that
    order."""
    found: dict[TopicPartition, StoredLog] = {}
    for number, name in enumerate(names, start=1):
        stored = _log_in(disk, path, name)
        if stored is not None:
            found[stored.key] = stored
        if number % FOLDERS_AT_ONCE == 0:
            await asyncio.sleep(0)
    return found


def _log_in(disk: Disk, path: str, name: str) -> StoredLog | None:
    directory = f"{path}/{name}"
    topic, _, partition = name.rpartition("-")
    if not topic or not partition.isdecimal() or not disk.is_dir(directory):
        return None
    try:
        metadata = read_file(disk, f"{directory}/{PARTITION_METADATA}")
        topic_id = decode_partition_metadata(metadata)
    except (FileNotFoundError, ValueError) as reason:
        # Made by a create that never returned, not by us, or damaged. Left alone, but `create_log`
        # of that name takes its place.
        logger.warning("folder %s has no usable %s: %s", name, PARTITION_METADATA, reason)
        return None
    return StoredLog(topic, int(partition), topic_id, directory)
