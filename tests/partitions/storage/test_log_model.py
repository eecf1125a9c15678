"""Random lives of a log against a simple model: a list of batches, and states rebuilt from it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from logboat.partitions.storage import LogConfig, PartitionLog, RecordsRejected
from logboat.partitions.storage.epoch_cache import EpochCache
from logboat.partitions.storage.producer_recovery import producer_batch
from logboat.partitions.storage.producer_states import Origin, ProducerStates
from logboat.wire.records import parse_header
from tests.partitions.storage.log_scene import EVERYTHING, NOW_MS, batch, new_disk, open_log
from tests.partitions.storage.log_scene import contents as contents_of

CONFIG = LogConfig(segment_bytes=500, index_interval_bytes=120)

sizes = st.integers(0, 60)
step = st.one_of(
    st.tuples(st.just("append"), st.integers(1, 3), sizes),
    st.tuples(st.just("produce"), st.integers(0, 2), st.integers(0, 3)),
    st.tuples(st.just("new epoch")),
    st.tuples(st.just("truncate"), st.floats(0, 1)),
    st.tuples(st.just("advance"), st.floats(0, 1)),
    st.tuples(st.just("sync")),
    st.tuples(st.just("reopen clean")),
    st.tuples(st.just("reopen after kill")),
    st.tuples(st.just("start anew"), st.integers(0, 50)),
    st.tuples(st.just("read"), st.floats(0, 1), st.integers(1, 600)),
)


@dataclass
class Model:
    """Batches in order, as bytes."""

    batches: list[bytes] = field(default_factory=list)
    start: int = 0
    end: int = 0

    def epochs(self) -> list[tuple[int, int]]:
        cache = EpochCache()
        for data in self.batches:
            header = parse_header(data)
            cache.assign(header.partition_leader_epoch, header.base_offset)
        cache.truncate_from_start(self.start)
        return [(entry.epoch, entry.start_offset) for entry in cache.entries]

    def producers(self) -> ProducerStates:
        states = ProducerStates()
        for data in self.batches:
            header = parse_header(data)
            if header.producer_id >= 0:
                states.apply(producer_batch(header, header.base_offset))
        return states


@settings(max_examples=120, deadline=None)
@given(st.lists(step, max_size=40))
def test_a_log_lives_as_the_model_says(steps: list[tuple[Any, ...]]) -> None:
    asyncio.run(Life().live(steps))


class Life:
    def __init__(self) -> None:
        self.disk = new_disk()
        self.model = Model()
        self.epoch = 0
        self.recovery_point = 0
        self.log_start_offset = 0
        self.log: PartitionLog

    async def open(self, *, clean: bool) -> None:
        self.log = await open_log(
            self.disk,
            CONFIG,
            clean=clean,
            recovery_point=self.recovery_point,
            log_start_offset=self.log_start_offset,
            before_truncation=self.checkpoint,
        )

    async def checkpoint(self, recovery_point: int, log_start_offset: int) -> None:
        self.recovery_point = min(self.recovery_point, recovery_point)
        self.log_start_offset = log_start_offset

    async def live(self, steps: list[tuple[Any, ...]]) -> None:
        await self.open(clean=False)
        for kind, *arguments in steps:
            await getattr(self, kind.replace(" ", "_"))(*arguments)
            self.check()
        await self.reopen_clean()
        self.check()
        await self.log.close()

    def check(self) -> None:
        log, model = self.log, self.model
        assert (log.log_start_offset, log.log_end_offset) == (model.start, model.end)
        held = [data for _, data in contents_of(log)]
        visible = [data for data in model.batches if parse_header(data).last_offset >= model.start]
        assert held == visible
        if model.start < model.end:
            found = [(entry.epoch, entry.start_offset) for entry in log.epochs.entries]
            assert found == model.epochs()

    def check_producers(self) -> None:
        """Nothing was deleted at the head: the state is that of all batches."""
        if self.model.start == 0 and self.log.segment_base_offsets[0] == 0:
            assert self.log.producers.entries() == self.model.producers().entries()

    def put(self, records: bytearray, **settings: Any) -> None:
        appended = self.log.append_as_leader(
            records, leader_epoch=self.epoch, now_ms=NOW_MS, **settings
        )
        if not appended.duplicate:
            header = parse_header(records)
            records[0:8] = appended.base_offset.to_bytes(8, "big")
            records[12:16] = self.epoch.to_bytes(4, "big")
            assert appended.base_offset == self.model.end
            self.model.batches.append(bytes(records))
            self.model.end += header.last_offset_delta + 1

    async def append(self, count: int, size: int) -> None:
        self.put(batch(*[b"x" * size] * count))

    async def produce(self, producer_id: int, back: int) -> None:
        """The next batch of a producer, or a repeat of its last ones."""
        entry = self.log.producers.entry(producer_id)
        sequence = entry.last_sequence + 1 - back if entry else 0
        records = batch(b"p", producer_id=producer_id, producer_epoch=0, base_sequence=sequence)
        if sequence < 0:
            return
        header = parse_header(records)
        expected = self.model.producers() if self.model.start == 0 else None
        known = None
        if expected is not None:
            known = expected.check(producer_batch(header, header.base_offset), Origin.CLIENT)
        try:
            end = self.model.end
            self.put(records)
            assert (self.model.end == end) == (back > 0 and entry is not None)
            if known is not None:
                assert back > 0
        except RecordsRejected:
            assert self.model.start > 0 or self.log.segment_base_offsets[0] > 0

    async def new_epoch(self) -> None:
        self.epoch += 1

    async def truncate(self, share: float) -> None:
        offset = self.model.start + round(share * (self.model.end - self.model.start))
        cut = offset < self.log.log_end_offset
        await self.log.truncate_to(offset)
        kept = [data for data in self.model.batches if parse_header(data).last_offset < offset]
        boundary = parse_header(kept[-1]).next_offset if kept else offset
        if min(boundary, offset) <= self.model.start and cut:
            # Nothing that was visible is left: an empty log at its start.
            offset = min(offset, self.model.start)
            self.model = Model(start=offset, end=offset)
            return
        self.model.batches = kept
        self.model.end = (
            parse_header(kept[-1]).next_offset if kept else min(offset, self.log.log_end_offset)
        )
        self.model.start = min(self.model.start, offset, self.model.end)
        assert not cut or self.log.synced_offset == self.log.log_end_offset
        self.check_producers()

    async def advance(self, share: float) -> None:
        offset = self.model.start + round(share * (self.model.end - self.model.start))
        await self.log.advance_log_start(offset)
        self.model.start = offset
        self.log_start_offset = offset

    async def start_anew(self, offset: int) -> None:
        await self.log.truncate_fully(offset)
        self.model = Model(start=offset, end=offset)

    async def sync(self) -> None:
        await self.log.wait_synced(self.log.log_end_offset)
        self.recovery_point = self.log.recovery_point

    async def reopen_clean(self) -> None:
        await self.log.close()
        self.recovery_point = self.log.recovery_point
        assert self.recovery_point == self.log.log_end_offset
        await self.open(clean=True)
        self.check_producers()

    async def reopen_after_kill(self) -> None:
        self.log._try_write()
        await self.log._scope.close()
        self.disk.restart()
        await self.open(clean=False)
        self.check_producers()

    async def read(self, share: float, max_bytes: int) -> None:
        offset = self.model.start + round(share * (self.model.end - self.model.start))
        found = self.log.read(
            offset, max_bytes=max_bytes, upper_bound=EVERYTHING, at_least_one=True
        )
        expected = next(
            (data for data in self.model.batches if parse_header(data).last_offset >= offset), b""
        )
        assert b"".join(found.parts)[: len(expected)] == expected
