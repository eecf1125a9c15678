"""Random lives of a compacted log against a dictionary: what it says never changes.

After every step the log is compared with the list of all records ever appended: each record that is
left is the one that was written at its offset, in order; the newest committed record of every key
is there, but for tombstones whose time is up; and the table made of the committed records is the
model's.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from logboat.partitions.storage.cleaner import CleanerSettings
from logboat.partitions.storage.cleaner.key_map import ENTRY_BYTES
from logboat.partitions.storage.producer_recovery import producer_batch
from logboat.partitions.storage.producer_states import Origin, ProducerStates
from logboat.wire.compression import Compression
from logboat.wire.records import Record, decode_records
from tests.partitions.cleaner.compaction_scene import CONFIG, HOUR, ROOT, Scene

KEYS = "abcdef"
CODECS = (Compression.NONE, Compression.GZIP)

record = st.tuples(st.sampled_from(KEYS), st.one_of(st.none(), st.integers(0, 9).map(str)))
step = st.one_of(
    st.tuples(st.just("put"), st.lists(record, min_size=1, max_size=4), st.sampled_from(CODECS)),
    st.tuples(st.just("produce"), st.integers(1, 2), st.lists(record, min_size=1, max_size=3)),
    st.tuples(st.just("write_open"), st.integers(3, 4), st.lists(record, min_size=1, max_size=3)),
    st.tuples(st.just("end"), st.integers(3, 4), st.booleans()),
    st.tuples(st.just("roll")),
    st.tuples(st.just("pass_time"), st.sampled_from([1, HOUR // 2, 2 * HOUR])),
    st.tuples(st.just("clean"), st.integers(1, 2)),
    st.tuples(st.just("clean_with_few_keys"), st.integers(1, 3)),
    st.tuples(st.just("reopen")),
    st.tuples(st.just("kill")),
    st.tuples(st.just("lose_snapshots")),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(step, min_size=5, max_size=45))
def test_a_compacted_log_says_what_the_whole_log_said(steps: list[tuple[Any, ...]]) -> None:
    asyncio.run(Life().live(steps))


@dataclass
class Life:
    written: dict[int, Record] = field(default_factory=dict)
    committed: dict[int, Record] = field(default_factory=dict)
    """By offset."""
    open: dict[int, list[Record]] = field(default_factory=dict)
    """Producer id -> records of its open transaction."""
    sequences: dict[int, int] = field(default_factory=dict)
    first_cleaned_ms: dict[int, int] = field(default_factory=dict)
    """Tombstone's offset -> when a round could first have met it."""

    async def live(self, steps: list[tuple[Any, ...]]) -> None:
        self.scene = await Scene.begin(replace(CONFIG, segment_bytes=400))
        for kind, *arguments in steps:
            await getattr(self, kind)(*arguments)
            self.check()
        for producer_id in list(self.open):
            await self.end(producer_id, True)
        self.scene.roll()
        await self.put([("z", "z")], Compression.NONE)
        await self.clean(3)
        self.check()
        await self.scene.close()

    # Steps.

    async def put(self, records: list[tuple[str, str | None]], codec: Compression) -> None:
        for written in self.remember(self.scene.put(*records, compression=codec)):
            self.committed[written.offset] = written

    async def produce(self, producer_id: int, records: list[tuple[str, str | None]]) -> None:
        for written in self.remember(self.write(producer_id, records, transactional=False)):
            self.committed[written.offset] = written

    async def write_open(self, producer_id: int, records: list[tuple[str, str | None]]) -> None:
        self.open.setdefault(producer_id, []).extend(
            self.remember(self.write(producer_id, records, transactional=True))
        )

    def write(
        self, producer_id: int, records: list[tuple[str, str | None]], *, transactional: bool
    ) -> int:
        sequence = self.sequences.get(producer_id, 0)
        self.sequences[producer_id] = sequence + len(records)
        return self.scene.put(
            *records,
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=sequence,
            transactional=transactional,
        )

    def remember(self, base_offset: int) -> list[Record]:
        read = self.scene.log.read(base_offset, max_bytes=1, upper_bound=1 << 60, at_least_one=True)
        records = decode_records(read.parts[0])
        self.written |= {written.offset: written for written in records}
        return records

    async def end(self, producer_id: int, commit: bool) -> None:
        records = self.open.pop(producer_id, [])
        self.scene.end_transaction(producer_id, commit=commit)
        if commit:
            self.committed |= {written.offset: written for written in records}

    async def roll(self) -> None:
        self.scene.roll()

    async def pass_time(self, ms: int) -> None:
        self.scene.clock.now += ms

    async def clean(self, rounds: int) -> None:
        for written in self.written.values():
            if written.value is None:
                self.first_cleaned_ms.setdefault(written.offset, self.scene.clock.now)
        await self.scene.clean(rounds)

    async def clean_with_few_keys(self, keys: int) -> None:
        self.scene.settings = CleanerSettings(dedupe_buffer_bytes=keys * ENTRY_BYTES)
        await self.clean(2)
        self.scene.settings = CleanerSettings()

    async def reopen(self) -> None:
        await self.scene.reopen()
        self.check_producers()

    async def kill(self) -> None:
        """The process ends; what it wrote is in the page cache."""
        await asyncio.sleep(0)
        await self.scene.log._scope.close()
        self.scene.disk.restart()
        await self.scene.open()
        assert self.scene.log.damage is None
        self.check_producers()

    async def lose_snapshots(self) -> None:
        """What is known of producers and transactions comes from the compacted log alone."""
        await self.scene.close()
        folder = f"{ROOT}/t-0"
        for name in self.scene.disk.list(folder):
            if name.endswith(".snapshot"):
                self.scene.disk.remove(f"{folder}/{name}")
        await self.scene.open()
        self.check_producers()

    # What must hold.

    def check(self) -> None:
        found = self.scene.records()
        offsets = [there.offset for there in found]
        assert offsets == sorted(set(offsets))
        for there in found:
            assert there == self.written[there.offset]
        self.check_newest(set(offsets))
        self.check_table()

    def check_newest(self, offsets: set[int]) -> None:
        newest: dict[bytes, Record] = {}
        for _, written in sorted(self.committed.items()):
            assert written.key is not None
            newest[written.key] = written
        now = self.scene.clock.now
        for written in newest.values():
            if written.value is not None or (
                now - self.first_cleaned_ms.get(written.offset, now) < HOUR
            ):
                assert written.offset in offsets
        for records in self.open.values():
            assert all(written.offset in offsets for written in records)

    def check_table(self) -> None:
        """The log's last stable part, as a reader of committed data sees it."""
        end_offset = self.scene.log.log_end_offset
        stable = self.scene.log.last_stable_offset(end_offset)
        assert stable == min(
            (records[0].offset for records in self.open.values()), default=end_offset
        )
        table: dict[bytes, bytes] = {}
        for offset, written in sorted(self.committed.items()):
            assert written.key is not None
            if offset >= stable:
                break
            if written.value is None:
                table.pop(written.key, None)
            else:
                table[written.key] = written.value
        assert self.scene.state() == table

    def check_producers(self) -> None:
        """A producer goes on after a restart where it was, whatever compaction took away."""
        states: ProducerStates = self.scene.log.producers
        for producer_id, sequence in self.sequences.items():
            entry = states.entry(producer_id)
            assert entry is not None
            assert entry.last_sequence == sequence - 1
            for batch in self.scene.batches():
                if batch.header.producer_id == producer_id and not batch.header.is_control:
                    last = producer_batch(batch.header, batch.header.base_offset)
            assert states.check(last, Origin.CLIENT) is not None
