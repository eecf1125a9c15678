"""A range of the only copy of an offsets partition is lost: what is left of its groups lives on.

Positions may be older than the last commit, never newer and never invented (decision 0022).
"""

from __future__ import annotations

import logging

import pytest

from logboat.groups import LostRecords
from logboat.groups.log_records import OffsetRecord, batch_of, encode
from logboat.groups.offsets import CommittedOffset
from logboat.wire import ErrorCode
from logboat.wire.messages.heartbeat import HeartbeatRequest
from logboat.wire.messages.sync_group import SyncGroupRequest
from tests.groups.memory_store import MemoryStore
from tests.groups.test_coordinator import beat, commit, fetch, join, leading, told
from tests.groups.test_pending_offsets import marker, pending, position_of


def lose(store: MemoryStore, first: int, next_number: int) -> None:
    """Those batches; each of them here has one record."""
    store.log[first:next_number] = [LostRecords(first, next_number)]


def write_commit(store: MemoryStore, offset: int) -> None:
    committed = CommittedOffset(offset, 4, "note", 0)
    store.write(batch_of([encode(OffsetRecord("g", "t", 0, committed), 0)]))


async def test_the_commit_before_a_lost_one_is_in_force_again_and_new_ones_are_taken(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = MemoryStore()
    for offset in (10, 20, 30):
        write_commit(store, offset)
    lose(store, 1, 3)
    with caplog.at_level(logging.ERROR):
        coordinator = await leading(store)
    assert "__consumer_offsets-0" in caplog.text
    assert "1 to 2" in caplog.text
    assert (await fetch(coordinator)).offset == 10
    assert await commit(coordinator, 25) == ErrorCode.NONE
    await coordinator.stop()
    assert await position_of(store, epoch=1) == 25


async def test_a_commit_behind_the_lost_range_is_in_force() -> None:
    store = MemoryStore()
    for offset in (10, 20, 30):
        write_commit(store, offset)
    lose(store, 1, 2)
    assert await position_of(store) == 30


async def test_a_group_all_of_whose_commits_are_lost_has_none() -> None:
    store = MemoryStore()
    write_commit(store, 10)
    lose(store, 0, 1)
    assert await position_of(store) == -1


@pytest.mark.parametrize("begun_again", [True, False])
async def test_what_a_transaction_would_commit_is_not_in_force_when_its_end_may_be_lost(
    begun_again: bool,
) -> None:
    """It may have been aborted in there, and the end that follows be that of the next one."""
    store = MemoryStore()
    write_commit(store, 10)
    store.write(pending(20))
    store.write(marker(commit=False))
    if begun_again:
        store.write(pending(20))
    lose(store, 2, 3 + begun_again)
    store.write(marker(commit=True))
    assert await position_of(store) == 10


async def test_a_transaction_behind_the_lost_range_is_committed() -> None:
    store = MemoryStore()
    write_commit(store, 10)
    lose(store, 0, 1)
    store.write(pending(20))
    store.write(marker(commit=True))
    assert await position_of(store) == 20


async def joined_group(store: MemoryStore) -> tuple[str, int]:
    """Its member, and the generation."""
    coordinator = await leading(store)
    joined = await join(coordinator)
    sync = SyncGroupRequest(
        group_id="g",
        generation_id=joined.generation_id,
        member_id=joined.member_id,
        assignments=[
            SyncGroupRequest.SyncGroupRequestAssignment(
                member_id=joined.member_id, assignment=b"p0"
            )
        ],
    )
    assert (await coordinator.sync_group(sync, 3)).error_code == ErrorCode.NONE
    await coordinator.stop()
    return joined.member_id, joined.generation_id


async def test_members_that_a_lost_record_may_have_changed_join_again() -> None:
    store = MemoryStore()
    member_id, generation = await joined_group(store)
    write_commit(store, 10)
    end = len(store.log)
    lose(store, end - 1, end)
    coordinator = await leading(store, epoch=1)
    request = HeartbeatRequest(group_id="g", generation_id=generation, member_id=member_id)
    answer = await coordinator.heartbeat(request, 3)
    assert answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert await commit(coordinator, 12, member_id, generation) == ErrorCode.UNKNOWN_MEMBER_ID
    joined = await join(coordinator)
    assert joined.error_code == ErrorCode.NONE
    assert joined.generation_id > generation + 1, "the lost record may have begun one"
    await coordinator.stop()


async def test_a_group_that_was_written_again_behind_the_lost_range_keeps_its_members() -> None:
    store = MemoryStore()
    write_commit(store, 10)
    lose(store, 0, 1)
    member_id, generation = await joined_group(store)
    coordinator = await leading(store, epoch=1)
    request = HeartbeatRequest(group_id="g", generation_id=generation, member_id=member_id)
    assert (await coordinator.heartbeat(request, 3)).error_code == ErrorCode.NONE
    await coordinator.stop()


@pytest.mark.parametrize("lost", range(8))
async def test_members_of_a_consumer_group_join_again_whatever_was_lost_of_it(lost: int) -> None:
    store = MemoryStore()
    coordinator = await leading(store)
    joined = await beat(coordinator, "a", 0)
    await beat(coordinator, "b", 0)
    await coordinator.stop()
    if lost >= len(store.log):
        return
    lose(store, lost, lost + 1)
    coordinator = await leading(store, epoch=1)
    answer = await beat(coordinator, "a", joined.member_epoch, owned=[0])
    assert answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    again = await beat(coordinator, "a", 0)
    assert again.error_code == ErrorCode.NONE
    assert told(again) == [0]
    assert again.member_epoch > 0
    await coordinator.stop()
