"""`.txnindex`: Kafka's bytes, known on every path, and what a reader of committed data is told."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logboat.partitions.storage import LogConfig, PartitionLog
from logboat.partitions.storage.transaction_index import (
    AbortedTransaction,
    TransactionIndex,
    aborted_in,
)
from logboat.wire.records import (
    ControlType,
    Record,
    batches,
    control_type,
    decode_records,
    encode_batch,
    encode_end_txn_marker,
)
from tests.partitions.storage.log_scene import EVERYTHING, FOLDER, NOW_MS, new_disk, open_log
from tests.seam.memory_disk import Inode, MemoryDisk

SMALL = LogConfig(segment_bytes=400, index_interval_bytes=100)


def write(log: PartitionLog, producer_id: int, sequence: int, *, transactional: bool = True) -> int:
    data = encode_batch(
        [Record(key=b"k", value=b"p%d-%d" % (producer_id, sequence), timestamp=NOW_MS)],
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=sequence,
        transactional=transactional,
    )
    return log.append_as_leader(data, leader_epoch=0, now_ms=NOW_MS).base_offset


def end(log: PartitionLog, producer_id: int, *, commit: bool) -> int:
    marker = encode_end_txn_marker(
        commit=commit,
        producer_id=producer_id,
        producer_epoch=0,
        coordinator_epoch=1,
        timestamp=NOW_MS,
    )
    return log.append_as_leader(
        marker, leader_epoch=0, now_ms=NOW_MS, from_client=False
    ).base_offset


def file(disk: MemoryDisk, name: str) -> Inode:
    found = disk._find(f"{FOLDER}/{name}")
    assert isinstance(found, Inode)
    return found


def indexes(disk: MemoryDisk) -> dict[str, bytes]:
    return {
        name: bytes(file(disk, name).data)
        for name in disk.list(FOLDER)
        if name.endswith(".txnindex")
    }


async def test_s6_an_aborted_transaction_has_kafkas_34_bytes() -> None:
    disk = new_disk()
    log = await open_log(disk)
    write(log, 5, 0)
    write(log, 6, 0)
    end(log, 5, commit=False)
    end(log, 6, commit=True)
    await log.close()
    assert indexes(disk) == {
        "0" * 20 + ".txnindex": bytes.fromhex(
            "0000" "0000000000000005" "0000000000000000" "0000000000000002" "0000000000000001"
        )
    }  # fmt: skip


async def test_without_an_abort_there_is_no_file() -> None:
    disk = new_disk()
    log = await open_log(disk)
    write(log, 5, 0)
    end(log, 5, commit=True)
    await log.close()
    assert indexes(disk) == {}


async def test_the_entry_lies_in_the_segment_of_the_marker() -> None:
    disk = new_disk()
    log = await open_log(disk, SMALL)
    write(log, 5, 0)
    for sequence in range(12):
        write(log, 9, sequence, transactional=False)
    marker = end(log, 5, commit=False)
    base = log.segment_base_offsets[-1]
    assert base > 0
    assert log.aborted_transactions(0, 1) == [AbortedTransaction(5, 0, marker, marker + 1)]
    assert log.aborted_transactions(marker + 1, marker + 2) == []
    await log.close()
    assert list(indexes(disk)) == [f"{base:020d}.txnindex"]


async def test_an_abort_of_nothing_is_no_entry() -> None:
    disk = new_disk()
    log = await open_log(disk)
    end(log, 5, commit=False)
    await log.close()
    assert indexes(disk) == {}


async def test_a_transaction_that_ended_above_a_cut_is_open_again() -> None:
    disk = new_disk()
    log = await open_log(disk, SMALL)
    write(log, 5, 0)
    write(log, 9, 0, transactional=False)
    marker = end(log, 5, commit=False)
    assert log.last_stable_offset(marker + 1) == marker + 1
    await log.truncate_to(marker)
    assert log.aborted_transactions(0, 100) == []
    assert log.last_stable_offset(100) == 0
    marker = end(log, 5, commit=False)
    assert [entry.last_offset for entry in log.aborted_transactions(0, 100)] == [marker]
    await log.close()


@pytest.mark.parametrize("damage", ["version", "torn", "order"])
async def test_a_damaged_index_is_rebuilt_from_the_log(damage: str) -> None:
    disk = new_disk()
    log = await open_log(disk, SMALL)
    for sequence in range(8):
        write(log, 5, sequence)
        if sequence % 2:
            end(log, 5, commit=False)
    expected = log.aborted_transactions(0, 100)
    await log.close()
    whole = indexes(disk)
    for name in whole:
        data = file(disk, name).data
        if damage == "version":
            data[1] = 7
        elif damage == "torn":
            del data[-5:]
        else:
            data[10:18], data[18:26] = data[18:26], data[10:18]
    log = await open_log(disk, SMALL, clean=True, recovery_point=log.log_end_offset)
    assert log.aborted_transactions(0, 100) == expected
    await log.close()
    assert indexes(disk) == whole


async def test_a_file_of_an_earlier_life_does_not_come_back() -> None:
    """Written at a stop, cut away later, the segment then sealed without an abort."""
    disk = new_disk()
    log = await open_log(disk)
    write(log, 5, 0)
    marker = end(log, 5, commit=False)
    await log.close()
    assert len(indexes(disk)) == 1
    log = await open_log(disk, clean=True, recovery_point=2)
    await log.truncate_to(marker)
    end(log, 5, commit=True)
    write(log, 9, 0, transactional=False)
    await log.wait_synced(3)
    await log._scope.close()
    disk.restart()
    log = await open_log(disk, recovery_point=1)
    assert log.aborted_transactions(0, 100) == []
    await log.close()
    log = await open_log(disk, clean=True, recovery_point=3)
    assert log.aborted_transactions(0, 100) == []
    await log.close()


def test_a_search_ends_where_no_later_entry_can_begin() -> None:
    seen = []

    class Watched(TransactionIndex):
        def __iter__(self) -> Any:
            for entry in super().__iter__():
                seen.append(entry.producer_id)
                yield entry

    def index(*entries: AbortedTransaction) -> TransactionIndex:
        made = Watched(TransactionIndex.new("x", None).table, has_file=False)  # type: ignore[arg-type]
        for entry in entries:
            made.append(entry)
        return made

    found = aborted_in(
        [
            index(AbortedTransaction(1, 0, 5, 2), AbortedTransaction(2, 2, 8, 9)),
            index(AbortedTransaction(3, 12, 14, 15)),
        ],
        3,
        9,
    )
    assert [entry.producer_id for entry in found] == [1, 2]
    assert seen == [1, 2]


# Random lives.

step = st.one_of(
    st.tuples(st.just("write"), st.integers(1, 4)),
    st.tuples(st.just("end"), st.integers(1, 4), st.booleans()),
    st.tuples(st.just("plain")),
    st.tuples(st.just("truncate"), st.floats(0, 1)),
    st.tuples(st.just("sync")),
    st.tuples(st.just("reopen")),
    st.tuples(st.just("kill")),
)


@settings(max_examples=120, deadline=None)
@given(st.lists(step, max_size=40))
def test_a_reader_of_committed_data_sees_what_was_committed(steps: list[tuple[Any, ...]]) -> None:
    """Whatever offset it begins at, however little it gets at a time."""
    asyncio.run(Life().live(steps))


@dataclass
class Life:
    history: list[tuple[int, int, str]] = field(default_factory=list)
    """(offset, producer id or 0, what: "data", "commit" or "abort")."""

    async def live(self, steps: list[tuple[Any, ...]]) -> None:
        self.disk = new_disk()
        self.recovery_point = 0
        self.log = await open_log(self.disk, SMALL)
        for kind, *arguments in steps:
            await getattr(self, kind)(*arguments)
        for max_bytes in (1, 300):
            for offset in range(self.log.log_end_offset + 1):
                self.check(offset, max_bytes)
        await self.log.close()

    def sequence(self, producer_id: int) -> int:
        entry = self.log.producers.entry(producer_id)
        return 0 if entry is None else entry.last_sequence + 1

    async def write(self, producer_id: int) -> None:
        offset = write(self.log, producer_id, self.sequence(producer_id))
        self.history.append((offset, producer_id, "data"))

    async def end(self, producer_id: int, commit: bool) -> None:
        offset = end(self.log, producer_id, commit=commit)
        self.history.append((offset, producer_id, "commit" if commit else "abort"))

    async def plain(self) -> None:
        offset = write(self.log, 9, self.sequence(9), transactional=False)
        self.history.append((offset, 0, "data"))

    async def truncate(self, share: float) -> None:
        await self.log.truncate_to(round(share * self.log.log_end_offset))
        self.history = [line for line in self.history if line[0] < self.log.log_end_offset]

    async def sync(self) -> None:
        await self.log.wait_synced(self.log.log_end_offset)
        self.recovery_point = self.log.recovery_point

    async def reopen(self) -> None:
        await self.log.close()
        self.recovery_point = self.log.log_end_offset
        self.log = await open_log(self.disk, SMALL, clean=True, recovery_point=self.recovery_point)

    async def kill(self) -> None:
        await asyncio.sleep(0)
        await self.log._scope.close()
        self.disk.restart()
        self.recovery_point = min(self.recovery_point, self.log.log_end_offset)
        self.log = await open_log(self.disk, SMALL, recovery_point=self.recovery_point)

    # The model.

    def committed(self) -> tuple[list[int], int]:
        """(offsets, last stable offset)."""
        found: list[int] = []
        open_data: dict[int, list[int]] = {}
        for offset, producer_id, what in self.history:
            if what == "data" and producer_id:
                open_data.setdefault(producer_id, []).append(offset)
            elif what == "data":
                found.append(offset)
            else:
                data = open_data.pop(producer_id, [])
                found += data if what == "commit" else []
        stable = min((data[0] for data in open_data.values()), default=self.log.log_end_offset)
        return sorted(offset for offset in found if offset < stable), stable

    def check(self, start: int, max_bytes: int) -> None:
        expected, stable = self.committed()
        log = self.log
        assert log.last_stable_offset(log.log_end_offset) == stable
        seen, position = [], start
        while position < stable:
            read = log.read(position, max_bytes=max_bytes, upper_bound=stable, at_least_one=True)
            aborted = sorted(
                log.aborted_transactions(position, read.next_offset),
                key=lambda entry: entry.first_offset,
            )
            seen += client(b"".join(bytes(part) for part in read.parts), aborted)
            position = read.next_offset
        assert seen == [offset for offset in expected if offset >= start]
        assert stable < EVERYTHING


def client(data: bytes, aborted: list[AbortedTransaction]) -> list[int]:
    """Offsets of the records that a consumer hands out: Kafka's client in a dozen lines."""
    ongoing: dict[int, None] = {}
    seen = []
    for batch in batches(data):
        header = batch.header
        while aborted and aborted[0].first_offset <= header.last_offset:
            ongoing[aborted.pop(0).producer_id] = None
        records = decode_records(batch.view)
        if header.is_control:
            if control_type(records[0]) is ControlType.ABORT:
                ongoing.pop(header.producer_id, None)
        elif not (header.is_transactional and header.producer_id in ongoing):
            seen += [record.offset for record in records]
    return seen
