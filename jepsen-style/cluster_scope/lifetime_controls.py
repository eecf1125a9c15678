"""Bugs in what lets records go: retention and compaction.

Each shows where segments are short, records few bytes, and somebody stands still meanwhile.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from ...partitions.partition import Partition
from ...partitions.roles import Role
from ...partitions.storage import partition_log as partition_log_module
from ...partitions.storage.cleaner import CleaningCandidate, LogCleaner
from ...partitions.storage.cleaner.retention import Retention
from .replacing import replaced

Patch = Callable[[], contextlib.AbstractContextManager[None]]


def _retention_beyond_the_watermark() -> contextlib.AbstractContextManager[None]:
    """Segments go that are not committed yet, when they are old or many."""

    def put(_: Callable[..., Any]) -> Callable[..., Any]:
        async def delete_outlived(self: Partition) -> None:
            if not self.closed and self.role is not Role.OFFLINE:
                await self.log.delete_outlived(high_watermark=self.log.log_end_offset)

        return delete_outlived

    return replaced(Partition, "delete_outlived", put)


@contextlib.contextmanager
def _retention_takes_one_more() -> Iterator[None]:
    """A segment goes when a single byte is too much: less stays than `retention.bytes`."""
    module = vars(partition_log_module)
    original = module["outlived"]

    def outlived(segments: Any, config: Any, **rest: int) -> Any:
        size = config.retention_bytes
        less = size - segments[0].size + 1 if size >= 0 else size
        return original(segments, replace(config, retention_bytes=max(less, min(size, 0))), **rest)

    module["outlived"] = outlived
    try:
        yield
    finally:
        module["outlived"] = original


def _compaction_drops_the_latest() -> contextlib.AbstractContextManager[None]:
    """Of a key that has several records in the dirty part none stays."""

    def put(_: Callable[..., bool]) -> Callable[..., bool]:
        def keeps(self: Retention, header: Any, record: Any) -> bool:
            offset = header.base_offset + record.offset_delta
            return record.key is not None and offset > self.keys.newest(record.key)

        return keeps

    return replaced(Retention, "keeps", put)


def _compaction_beyond_the_watermark() -> contextlib.AbstractContextManager[None]:
    """A value goes for the sake of a later one that is not committed, and may yet be cut."""

    def put(original: Callable[..., Any]) -> Callable[..., Any]:
        def most_needed(self: LogCleaner, candidates: Iterable[CleaningCandidate]) -> Any:
            return original(
                self, [replace(c, high_watermark=c.log.log_end_offset) for c in candidates]
            )

        return most_needed

    return replaced(LogCleaner, "_most_needed", put)


LIFETIME_BUGS: Mapping[str, Patch] = {
    "retention-beyond-the-watermark": _retention_beyond_the_watermark,
    "retention-takes-one-more": _retention_takes_one_more,
    "compaction-drops-the-latest": _compaction_drops_the_latest,
    "compaction-beyond-the-watermark": _compaction_beyond_the_watermark,
}
"""By name."""
