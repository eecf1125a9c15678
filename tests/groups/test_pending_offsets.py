"""Offsets that transactions commit: unseen until the marker, and alike live and after a reload."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logboat.groups.consumer.seen_topics import SeenTopics
from logboat.groups.expiry import expired_records
from logboat.groups.log_records import (
    Logged,
    OffsetRecord,
    Producer,
    TransactionEnd,
    batch_of,
    decode,
    encode,
)
from logboat.groups.offsets import CommittedOffset
from logboat.groups.offsets_partition import OffsetsPartition
from logboat.groups.settings import GroupSettings
from logboat.groups.store import Appended
from logboat.groups.writer import PartitionWriter
from logboat.metadata.image import ClusterImage
from logboat.seam import Buffer, TaskScope
from logboat.wire import ErrorCode
from logboat.wire.messages.offset_fetch import OffsetFetchRequest
from logboat.wire.records import batches, encode_end_txn_marker
from tests.groups.memory_store import MemoryStore
from tests.groups.test_coordinator import ManualClock, commit, fail, fetch, leading

ONE, OTHER = Producer(7, 0), Producer(8, 3)


def committed(offset: int) -> CommittedOffset:
    return CommittedOffset(offset, 4, "note", 0)


def record(offset: int, partition: int = 0) -> OffsetRecord:
    return OffsetRecord("g", "t", partition, committed(offset))


def pending(offset: int, producer: Producer = ONE) -> Buffer:
    return batch_of([encode(record(offset), 0)], producer)


def marker(*, commit: bool, producer: Producer = ONE) -> Buffer:
    return encode_end_txn_marker(
        commit=commit,
        producer_id=producer.id,
        producer_epoch=producer.epoch,
        coordinator_epoch=0,
        timestamp=0,
    )


async def position_of(store: MemoryStore, epoch: int = 0) -> int:
    """What a coordinator says that loads this log."""
    coordinator = await leading(store, epoch)
    found = await fetch(coordinator)
    await coordinator.stop()
    return found.offset


@pytest.mark.parametrize(("commits", "expected"), [(True, 20), (False, 10)])
async def test_a_pending_offset_is_the_position_only_when_it_is_committed(
    commits: bool, expected: int
) -> None:
    store = MemoryStore()
    store.write(batch_of([encode(record(10), 0)]))
    store.write(pending(20))
    assert await position_of(store) == 10
    store.write(marker(commit=commits))
    assert await position_of(store) == expected


async def test_p35_a_plain_commit_behind_a_pending_one_stays_in_force() -> None:
    """KAFKA-14505: the later record wins, however late the marker; also where compaction has
    dropped the earlier one."""
    store = MemoryStore()
    coordinator = await leading(store)
    assert await commit(coordinator, 10) == ErrorCode.NONE
    store.write(pending(20))
    assert await commit(coordinator, 15) == ErrorCode.NONE
    store.write(marker(commit=True))
    before = (await fetch(coordinator)).offset
    await coordinator.stop()
    assert before == 15
    for epoch in (1, 2):
        assert await position_of(store, epoch) == before
    del store.log[:2]  # as compaction by key does
    assert await position_of(store, 3) == before


def state_of(*entries: Logged | TransactionEnd) -> OffsetsPartition:
    state = OffsetsPartition(0, 0, GroupSettings(), loaded=True)
    for entry in entries:
        state.replay(entry, 0)
    return state


def test_p35_a_live_coordinator_and_its_successor_agree_about_a_transaction() -> None:
    state = state_of(Logged(record(10), 0))
    state.apply_offset(record(20), log_offset=1, producer=ONE)
    state.apply_offset(record(15), log_offset=2)
    state.end_transaction(TransactionEnd(ONE, commit=True))
    found = state.offsets_of("g").get("t", 0)
    assert found is not None
    assert found.offset == 15


def test_p35_expiry_leaves_partitions_with_pending_offsets_alone() -> None:
    def expired(state: OffsetsPartition) -> Sequence[object]:
        seen = SeenTopics(ClusterImage(0, "c", -1, -1, -1))
        return expired_records(state, "g", seen, wall_ms=10**12, retention_ms=1)

    open_transaction = [Logged(record(1), 0), Logged(record(2, 1), 1), Logged(record(30), 2, ONE)]
    state = state_of(*open_transaction)
    assert expired(state) == [OffsetRecord("g", "t", 1, None)]
    state.end_transaction(TransactionEnd(ONE, commit=False))
    assert len(expired(state)) == 2


async def test_who_wants_a_stable_offset_is_told_to_wait_while_a_transaction_is_open() -> None:
    store = MemoryStore()
    store.write(batch_of([encode(record(10), 0)]))
    store.write(pending(20))
    coordinator = await leading(store)
    topic = OffsetFetchRequest.OffsetFetchRequestTopic(name="t", partition_indexes=[0])
    group = OffsetFetchRequest.OffsetFetchRequestGroup(
        group_id="g",
        topics=[
            OffsetFetchRequest.OffsetFetchRequestGroup.OffsetFetchRequestTopics(
                name="t", partition_indexes=[0]
            )
        ],
    )
    old = OffsetFetchRequest(group_id="g", topics=[topic], require_stable=True)
    new = OffsetFetchRequest(groups=[group], require_stable=True)
    unstable = ErrorCode.UNSTABLE_OFFSET_COMMIT
    answer = await coordinator.offset_fetch(old, 7)
    assert answer.topics[0].partitions[0].error_code == unstable
    answer = await coordinator.offset_fetch(new, 8)
    assert answer.groups[0].topics[0].partitions[0].error_code == unstable
    assert answer.groups[0].topics[0].partitions[0].committed_offset == -1
    await coordinator.stop()


def test_a_group_with_nothing_but_an_aborted_offset_is_forgotten() -> None:
    state = state_of(Logged(record(30), 0, ONE))
    assert state.knows("g")
    state.end_transaction(TransactionEnd(ONE, commit=False))
    assert not state.knows("g")


def test_a_tombstone_takes_pending_offsets_of_before_with_it() -> None:
    gone = OffsetRecord("g", "t", 0, None)
    state = state_of(Logged(record(30), 0, ONE), Logged(gone, 1), TransactionEnd(ONE, True))
    assert not state.knows("g")


async def test_offsets_of_a_transaction_are_a_batch_by_themselves() -> None:
    store, tasks = MemoryStore(), TaskScope(fail)
    writer = PartitionWriter(
        0,
        store=store,
        clock=ManualClock(),
        timeout_ms=1_000,
        tasks=tasks,
        on_unknown=lambda: None,
    )
    answers: list[Appended] = []
    for producer in (None, None, ONE, OTHER, None, None):
        writer.write([record(1), record(2)], answers.append, producer=producer)
    for _ in range(50):
        await asyncio.sleep(0)
    headers = [batch.header for buffer in store.batches() for batch in batches(buffer)]
    assert [(h.records_count, h.producer_id, h.is_transactional) for h in headers] == [
        (4, -1, False),
        (2, 7, True),
        (2, 8, True),
        (4, -1, False),
    ]
    assert [answer.base_offset for answer in answers] == [0, 2, 4, 6, 8, 10]
    await tasks.close()


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("plain"), st.integers(0, 1)),
        st.tuples(st.sampled_from(["pend one", "pend other"]), st.integers(0, 1)),
        st.tuples(st.sampled_from(["end one", "end other"]), st.integers(0, 1)),
        st.tuples(st.just("tombstone"), st.integers(0, 1)),
    ),
    max_size=20,
)


@given(STEPS)
def test_the_latest_committed_record_is_in_force_whatever_the_order_of_markers(
    steps: list[tuple[str, int]],
) -> None:
    """Against a plain reading of the log: the last record that counts, per partition."""
    entries: list[Logged | TransactionEnd] = []
    for number, (what, value) in enumerate(steps):
        producer = ONE if what.endswith("one") else OTHER
        if what.startswith("end"):
            entries.append(TransactionEnd(producer, commit=bool(value)))
        elif what == "tombstone":
            entries.append(Logged(OffsetRecord("g", "t", value, None), number))
        else:
            in_transaction = producer if what.startswith("pend") else None
            entries.append(Logged(record(number, value), number, in_transaction))
    state = state_of(*entries)
    for partition in (0, 1):
        found = state.offsets_of("g").get("t", partition)
        assert (None if found is None else found.offset) == last_word(entries, partition)


def last_word(entries: list[Logged | TransactionEnd], partition: int) -> int | None:
    word = None
    for position, entry in enumerate(entries):
        if not isinstance(entry, Logged) or not isinstance(entry.record, OffsetRecord):
            continue
        if entry.record.partition != partition:
            continue
        ends = (
            later.commit
            for later in entries[position:]
            if isinstance(later, TransactionEnd) and later.producer == entry.producer
        )
        if entry.producer is None or next(ends, False):
            word = None if entry.record.committed is None else entry.record.committed.offset
    return word


def test_a_batch_says_whose_records_it_holds() -> None:
    (entry,) = decode(pending(20, OTHER))
    assert entry == Logged(record(20), 0, OTHER)
    (end,) = decode(marker(commit=True))
    assert end == TransactionEnd(ONE, True)
