"""Cases from other coordinators that need the whole one: its log, and a successor."""

from __future__ import annotations

import asyncio
import time

import pytest

from logboat.groups import GroupCoordinator, writer
from logboat.groups.consumer.deadlines import Wait
from logboat.wire import ErrorCode
from logboat.wire.messages.delete_groups import DeleteGroupsRequest
from logboat.wire.messages.heartbeat import HeartbeatRequest
from logboat.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from logboat.wire.messages.list_groups import ListGroupsRequest
from logboat.wire.messages.offset_commit import OffsetCommitRequest
from logboat.wire.messages.offset_fetch import OffsetFetchRequest
from logboat.wire.messages.sync_group import SyncGroupRequest
from tests.groups.memory_store import MemoryStore
from tests.groups.test_coordinator import (
    CLIENT,
    TOPIC_ID,
    beat,
    commit,
    fetch,
    join,
    leading,
    loaded,
)

CommitTopic = OffsetCommitRequest.OffsetCommitRequestTopic
FetchGroup = OffsetFetchRequest.OffsetFetchRequestGroup


async def join_static(coordinator: GroupCoordinator, member_id: str = "") -> JoinGroupResponse:
    request = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=60_000,
        member_id=member_id,
        group_instance_id="i1",
        protocol_type="consumer",
        protocols=[JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=b"sub")],
    )
    return await coordinator.join_group(request, 9, CLIENT)


async def sync(coordinator: GroupCoordinator, joined: JoinGroupResponse, *, static: bool) -> int:
    given = SyncGroupRequest.SyncGroupRequestAssignment(
        member_id=joined.member_id, assignment=b"p0"
    )
    request = SyncGroupRequest(
        group_id="g",
        generation_id=joined.generation_id,
        member_id=joined.member_id,
        group_instance_id="i1" if static else None,
        assignments=[given],
    )
    return (await coordinator.sync_group(request, 5)).error_code


async def test_p30_a_static_member_comes_back_to_a_coordinator_that_was_restarted() -> None:
    store = MemoryStore()
    first = await leading(store)
    old = await join_static(first)
    assert await sync(first, old, static=True) == ErrorCode.NONE
    await first.stop()
    second = await leading(store, epoch=1)
    second._rng.seed(2)  # another node draws other ids
    new = await join_static(second)
    assert new.error_code == ErrorCode.NONE
    assert new.generation_id == old.generation_id, "no rebalance: it keeps what it had"
    members = second._held[0].state.groups["g"].members
    assert [m.instance_id for m in members.values()] == ["i1"]
    assert next(iter(members.values())).assignment == b"p0"
    stale = HeartbeatRequest(
        group_id="g",
        generation_id=old.generation_id,
        member_id=old.member_id,
        group_instance_id="i1",
    )
    answer = await second.heartbeat(stale, 4)
    assert answer.error_code == ErrorCode.FENCED_INSTANCE_ID
    await second.stop()


async def test_p32_a_refused_commit_never_changes_what_is_stored() -> None:
    coordinator = await leading(MemoryStore())
    member = await join(coordinator)
    # Its generation has begun but is not complete.
    completing = await commit(coordinator, 8, member.member_id, member.generation_id)
    assert completing == ErrorCode.REBALANCE_IN_PROGRESS
    assert (await fetch(coordinator)).offset == -1
    assert await sync(coordinator, member, static=False) == ErrorCode.NONE
    assert await commit(coordinator, 5, member.member_id, member.generation_id) == ErrorCode.NONE
    for who, generation, error in (
        (member.member_id, member.generation_id - 1, ErrorCode.ILLEGAL_GENERATION),
        ("stranger", member.generation_id, ErrorCode.UNKNOWN_MEMBER_ID),
        ("", -1, ErrorCode.UNKNOWN_MEMBER_ID),
    ):
        assert await commit(coordinator, 9, who, generation) == error
        assert (await fetch(coordinator)).offset == 5
    await coordinator.stop()


async def test_o07_many_groups_are_listed_and_leave_nothing_behind_when_deleted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One commit each; the cost of one does not grow with the others."""
    monkeypatch.setattr(writer, "MAX_WAITING_RECORDS", 2_500)
    coordinator = await leading(MemoryStore())
    names = [f"g{number}" for number in range(4_000)]
    part = CommitTopic.OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    began = time.process_time()
    for start in range(0, len(names), 1_000):
        requests = [
            OffsetCommitRequest(group_id=name, topics=[CommitTopic(name="t", partitions=[part])])
            for name in names[start : start + 1_000]
        ]
        answers = await asyncio.gather(*(coordinator.offset_commit(r, 8) for r in requests))
        assert {a.topics[0].partitions[0].error_code for a in answers} == {ErrorCode.NONE}
    listed = await coordinator.list_groups(ListGroupsRequest(), 5)
    assert len(listed.groups) == len(names)
    await coordinator.delete_groups(DeleteGroupsRequest(groups_names=names[:1_000]), 2)
    state = coordinator._held[0].state
    assert len(state.names()) == len(names) - 1_000
    refused = 0
    while left := list(state.names()):
        # More at a time than the log's queue takes: those are told to come again.
        many = [DeleteGroupsRequest(groups_names=[name]) for name in left]
        deleted = await asyncio.gather(*(coordinator.delete_groups(r, 2) for r in many))
        refused += sum(answer.results[0].error_code != ErrorCode.NONE for answer in deleted)
    assert refused
    assert coordinator._held[0].state is state, "nothing had to be read again"
    assert not any((state.groups, state.consumer_groups, state.offsets, state.on_their_way))
    assert coordinator._held[0].timers == {}
    # A cost that grew with the others would take minutes.
    assert time.process_time() - began < 20
    await coordinator.stop()


async def test_a_group_whose_burial_could_not_be_written_is_still_there() -> None:
    store = MemoryStore()
    coordinator = await leading(store)
    assert await commit(coordinator, 5) == ErrorCode.NONE
    store.outcome = ErrorCode.NOT_ENOUGH_REPLICAS
    answer = await coordinator.delete_groups(DeleteGroupsRequest(groups_names=["g"]), 2)
    assert answer.results[0].error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    store.outcome = ErrorCode.NONE
    successor = await leading(store, epoch=1)
    assert (await loaded(coordinator)).offset == (await fetch(successor)).offset == 5
    await coordinator.stop()
    await successor.stop()


async def test_a_timer_that_a_heartbeat_has_put_off_fences_nobody() -> None:
    """The heartbeat waits for its records; meanwhile the next deadline is another member's, which
    has seconds left."""
    coordinator = await leading(MemoryStore())
    held = coordinator._held[0]
    for member_id in ("a", "b"):
        await beat(coordinator, member_id, 0)
    group = held.state.consumer_groups["g"]
    coordinator._on_timer(held, group)
    assert set(group.members) == {"a", "b"}
    assert set(held.timers) == {"g"}
    await coordinator.stop()


def test_a_timer_that_is_due_at_once_may_be_armed_again_on_every_loop() -> None:
    """uvloop's handle of such a timer does not know when it is due."""
    uvloop = pytest.importorskip("uvloop")

    async def arm_twice() -> None:
        coordinator = await leading(MemoryStore())
        held = coordinator._held[0]
        await beat(coordinator, "a", 0)
        group = held.state.consumer_groups["g"]
        group.expect("a", Wait.SESSION, 0)
        for _ in range(2):
            coordinator._arm_timer(held, group)
        assert set(held.timers) == {"g"}
        await asyncio.sleep(0.01)
        assert group.members == {}
        await coordinator.stop()

    for new_loop in (uvloop.new_event_loop, asyncio.new_event_loop):
        with asyncio.Runner(loop_factory=new_loop) as runner:
            runner.run(arm_twice())


async def test_what_goes_wrong_in_a_timer_ends_the_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The group would have no timer any more, and its silent members would stay."""
    coordinator = await leading(MemoryStore())
    held = coordinator._held[0]
    await beat(coordinator, "a", 0)
    group = held.state.consumer_groups["g"]

    def next_deadline_ms() -> int:
        raise KeyError("broken")

    seen: list[BaseException] = []
    monkeypatch.setattr(coordinator, "_on_fatal", seen.append)
    monkeypatch.setattr(group, "next_deadline_ms", next_deadline_ms)
    coordinator._on_timer(held, group)
    assert [type(error) for error in seen] == [KeyError]
    monkeypatch.undo()
    await coordinator.stop()


async def test_hole_16_a_commit_keeps_the_leader_epoch_of_what_was_read() -> None:
    """KAFKA-19902: without it a consumer cannot see that the log was cut below its position."""
    store = MemoryStore()
    coordinator = await leading(store)
    part = CommitTopic.OffsetCommitRequestPartition(
        partition_index=0, committed_offset=40, committed_leader_epoch=6, committed_metadata=""
    )
    by_id = CommitTopic(topic_id=TOPIC_ID, partitions=[part])
    by_name = CommitTopic(name="t", partitions=[part])
    for epoch, (topic, version) in enumerate(((by_id, 10), (by_name, 8))):
        group_id = f"g{version}"
        request = OffsetCommitRequest(group_id=group_id, topics=[topic])
        answer = await coordinator.offset_commit(request, version)
        assert answer.topics[0].partitions[0].error_code == ErrorCode.NONE
        successor = await leading(store, epoch + 1)
        for asked in (coordinator, successor):
            assert await position(asked, group_id) == (40, 6)
        await successor.stop()
    await coordinator.stop()


async def position(coordinator: GroupCoordinator, group_id: str) -> tuple[int, int]:
    """(offset, leader epoch), by topic id."""
    topic = FetchGroup.OffsetFetchRequestTopics(topic_id=TOPIC_ID, partition_indexes=[0])
    request = OffsetFetchRequest(groups=[FetchGroup(group_id=group_id, topics=[topic])])
    answer = await coordinator.offset_fetch(request, 10)
    found = answer.groups[0].topics[0].partitions[0]
    assert found.error_code == ErrorCode.NONE
    return found.committed_offset, found.committed_leader_epoch
