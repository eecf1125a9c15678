"""Setting the scene: a compacted log in a data directory in memory, and its cleaner."""

from __future__ import annotations

from random import Random
from typing import Any
from uuid import UUID

from logboat.partitions.storage import LogConfig, LogDirectory, PartitionLog
from logboat.partitions.storage.cleaner import CleanerSettings, CleaningCandidate, LogCleaner
from logboat.wire.records import (
    Batch,
    ControlType,
    Record,
    batches,
    control_type,
    decode_records,
    encode_batch,
    encode_end_txn_marker,
)
from tests.partitions.storage.log_scene import NOW_MS, TestClock, raise_fatal
from tests.seam.memory_disk import MemoryDisk

ROOT = "/data"
TOPIC_ID = UUID(int=7)
HOUR = 3_600_000

CONFIG = LogConfig(
    compact=True,
    delete=False,
    segment_bytes=1000,
    index_interval_bytes=200,
    min_cleanable_dirty_ratio=0.0,
    delete_retention_ms=HOUR,
    file_delete_delay_ms=0,
)


class Scene:
    """One log `t-0`, and the cleaner; `high_watermark` is the log's end unless set."""

    def __init__(self, disk: MemoryDisk, config: LogConfig) -> None:
        self.disk = disk
        self.config = config
        self.clock = TestClock()
        self.settings = CleanerSettings()
        self.high_watermark: int | None = None
        self.directory: LogDirectory
        self.log: PartitionLog
        self.cleaner: LogCleaner

    @classmethod
    async def begin(cls, config: LogConfig = CONFIG, disk: MemoryDisk | None = None) -> Scene:
        disk = disk or MemoryDisk()
        scene = cls(disk, config)
        await scene.open()
        return scene

    async def open(self) -> None:
        self.directory = await LogDirectory.open(
            ROOT,
            cluster_id="c",
            node_id=1,
            disk=self.disk,
            clock=self.clock,
            rng=Random(1),
            on_fatal=raise_fatal,
        )
        self.log = await self.directory.create_log("t", 0, TOPIC_ID, self.config)
        self.cleaner = LogCleaner(
            self.directory,
            clock=self.clock,
            settings=lambda: self.settings,
            candidates=self.candidates,
        )

    async def candidates(self) -> list[CleaningCandidate]:
        end = self.log.log_end_offset
        watermark = end if self.high_watermark is None else self.high_watermark
        return [CleaningCandidate(self.log, watermark)]

    async def close(self) -> None:
        await self.directory.close_logs()
        await self.directory.write_clean_marker(1)
        await self.directory.close()

    async def reopen(self) -> None:
        await self.close()
        await self.open()

    # Writing.

    def put(self, *records: tuple[str, str | None], **settings: Any) -> int:
        """One batch of (key, value); None is a tombstone. Returns its base offset."""
        made = [
            Record(
                key=key.encode(),
                value=None if value is None else value.encode(),
                headers=[("h", key.encode()), ("n", None)],
                timestamp=self.clock.now + number,
            )
            for number, (key, value) in enumerate(records)
        ]
        return self.append(encode_batch(made, **settings))

    def append(self, data: bytearray, *, from_client: bool = True, leader_epoch: int = 0) -> int:
        appended = self.log.append_as_leader(
            data, leader_epoch=leader_epoch, now_ms=self.clock.now, from_client=from_client
        )
        return appended.base_offset

    def end_transaction(self, producer_id: int, *, commit: bool, epoch: int = 0) -> int:
        marker = encode_end_txn_marker(
            commit=commit,
            producer_id=producer_id,
            producer_epoch=epoch,
            coordinator_epoch=0,
            timestamp=self.clock.now,
        )
        return self.append(marker, from_client=False)

    def roll(self) -> None:
        """The next record begins a segment."""
        if self.log.log_end_offset > self.log.segment_base_offsets[-1]:
            self.log._roll(self.log.log_end_offset, self.clock.now)

    async def clean(self, rounds: int = 1) -> bool:
        await self.log.wait_synced(self.log.log_end_offset)
        await settle(self.log)
        done = False
        for _ in range(rounds):
            done = await self.cleaner.clean_once()
        return done

    # Looking.

    def batches(self) -> list[Batch]:
        found: list[Batch] = []
        position = self.log.log_start_offset
        while position < self.log.log_end_offset:
            read = self.log.read(
                position, max_bytes=1 << 20, upper_bound=1 << 60, at_least_one=True
            )
            if not read.size:
                break
            for part in read.parts:
                found += batches(part)
            position = read.next_offset
        return found

    def records(self) -> list[Record]:
        return [
            record
            for batch in self.batches()
            if not batch.header.is_control
            for record in decode_records(batch.view)
        ]

    def offsets(self) -> list[int]:
        return [record.offset for record in self.records()]

    def keys(self) -> list[str]:
        return [(record.key or b"").decode() for record in self.records()]

    def committed(self) -> list[Record]:
        """What a read_committed consumer makes of it: a model client of thirty lines."""
        end = self.log.last_stable_offset(self.log.log_end_offset)
        aborted = sorted(
            self.log.aborted_transactions(self.log.log_start_offset, end),
            key=lambda entry: entry.first_offset,
        )
        ongoing: dict[int, None] = {}
        seen = []
        for batch in self.batches():
            header = batch.header
            if header.next_offset > end:
                break
            while aborted and aborted[0].first_offset <= header.last_offset:
                ongoing[aborted.pop(0).producer_id] = None
            records = decode_records(batch.view)
            if header.is_control:
                if records and control_type(records[0]) is ControlType.ABORT:
                    ongoing.pop(header.producer_id, None)
            elif not (header.is_transactional and header.producer_id in ongoing):
                seen += records
        return seen

    def state(self) -> dict[bytes, bytes]:
        """The table that the committed records make."""
        table: dict[bytes, bytes] = {}
        for record in self.committed():
            assert record.key is not None
            if record.value is None:
                table.pop(record.key, None)
            else:
                table[record.key] = record.value
        return table


async def settle(log: PartitionLog) -> None:
    """Return when all that was rolled is on the device."""
    await log._commit.pause()
    log._commit.resume()
    if log._segments.unsynced:
        await log._commit.pause()
        log._commit.resume()


__all__ = ["CONFIG", "HOUR", "NOW_MS", "Scene", "settle"]
