"""Setting the scene: a log on a disk in memory, batches for it, and what it holds."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any
from uuid import UUID

from logboat.partitions.storage import Appended, LogConfig, PartitionLog
from logboat.wire.records import Batch, Record, batches, encode_batch
from tests.seam.memory_disk import MemoryDisk

FOLDER = "/data/topic-0"
TOPIC_ID = UUID(int=0x1234567890ABCDEF1234567890ABCDEF)
NOW_MS = 1_700_000_000_000
EVERYTHING = 1 << 40


class TestClock:
    __test__ = False

    def __init__(self, now_ms: int = NOW_MS) -> None:
        self.now = now_ms

    def now_ms(self) -> int:
        return self.now


class FatalSeen(AssertionError):
    """The log called on_fatal."""


def raise_fatal(error: BaseException) -> None:
    raise FatalSeen(str(error)) from error


def new_disk() -> MemoryDisk:
    return MemoryDisk(FOLDER)


async def open_log(disk: Any, config: LogConfig | None = None, **settings: Any) -> PartitionLog:
    settings.setdefault("on_fatal", raise_fatal)
    settings.setdefault("clock", TestClock())
    return await PartitionLog.open(
        settings.pop("directory", FOLDER),
        topic="topic",
        partition=0,
        topic_id=TOPIC_ID,
        config=config or LogConfig(),
        disk=disk,
        rng=Random(1),
        **settings,
    )


def batch(
    *values: bytes, timestamp: int = NOW_MS, key: bytes | None = None, **settings: Any
) -> bytearray:
    records = [
        Record(key=key, value=value, timestamp=timestamp + number)
        for number, value in enumerate(values or (b"value",))
    ]
    return encode_batch(records, **settings)


def append(
    log: PartitionLog,
    *values: bytes,
    leader_epoch: int = 0,
    now_ms: int = NOW_MS,
    from_client: bool = True,
    **settings: Any,
) -> Appended:
    return log.append_as_leader(
        batch(*values, **settings),
        leader_epoch=leader_epoch,
        now_ms=now_ms,
        from_client=from_client,
    )


def read_all(log: PartitionLog, offset: int | None = None) -> Iterator[Batch]:
    position = log.log_start_offset if offset is None else offset
    while position < log.log_end_offset:
        found = log.read(position, max_bytes=1 << 20, upper_bound=EVERYTHING, at_least_one=True)
        assert found.next_offset > position, f"no progress at {position}"
        for part in found.parts:
            yield from batches(part)
        position = found.next_offset


def contents(log: PartitionLog) -> list[tuple[int, bytes]]:
    """(base offset, bytes) of every batch."""
    return [(found.header.base_offset, bytes(found.view)) for found in read_all(log)]
