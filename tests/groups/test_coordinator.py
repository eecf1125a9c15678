"""The coordinator over a log in memory: answers wait for replication, a successor knows all."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from random import Random
from uuid import UUID

import pytest

from logboat.groups import (
    OFFSETS_TOPIC,
    ClientContext,
    ConsumerGroupSettings,
    GroupCoordinator,
    GroupSettings,
)
from logboat.groups.consumer import slices
from logboat.groups.store import partition_for
from logboat.metadata.group_configs import key_of_group
from logboat.metadata.image import ClusterImage, PartitionImage, TopicImage
from logboat.wire import ErrorCode
from logboat.wire.coordinator_records.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)
from logboat.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from logboat.wire.messages.delete_groups import DeleteGroupsRequest
from logboat.wire.messages.heartbeat import HeartbeatRequest
from logboat.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from logboat.wire.messages.list_groups import ListGroupsRequest
from logboat.wire.messages.offset_commit import OffsetCommitRequest
from logboat.wire.messages.offset_delete import OffsetDeleteRequest
from logboat.wire.messages.offset_fetch import OffsetFetchRequest
from logboat.wire.messages.sync_group import SyncGroupRequest
from tests.groups.memory_store import MemoryStore

CLIENT = ClientContext("client", "/127.0.0.1")
TOPIC_ID = UUID(int=7)


class ManualClock:
    def now_ms(self) -> int:
        return 1_700_000_000_000


def image(leader: int) -> ClusterImage:
    def topic(name: str, topic_id: UUID) -> TopicImage:
        partitions = (PartitionImage(0, (1, 2), (1, 2), leader, 0, 0),)
        return TopicImage(name, topic_id, partitions, 1, 1)

    topics = {OFFSETS_TOPIC: topic(OFFSETS_TOPIC, UUID(int=6)), "t": topic("t", TOPIC_ID)}
    names = {found.topic_id: name for name, found in topics.items()}
    return ClusterImage(1, "c", 1, 1, 1, topics=topics, topic_names=names)


def fail(error: BaseException) -> None:
    raise error


AT_ONCE = GroupSettings(
    initial_rebalance_delay_ms=0, consumer=ConsumerGroupSettings(assignment_interval_ms=0)
)


def coordinator_on(
    store: MemoryStore, *, leader: int = 1, settings: GroupSettings | None = None
) -> GroupCoordinator:
    """On node 1, which reads in its image that `leader` leads the offsets partition."""
    cluster = image(leader)
    return GroupCoordinator(
        node_id=1,
        store=store,
        image=lambda: cluster,
        settings=settings or AT_ONCE,
        clock=ManualClock(),
        rng=Random(1),
        on_fatal=fail,
    )


async def leading(store: MemoryStore, epoch: int = 0) -> GroupCoordinator:
    coordinator = coordinator_on(store)
    coordinator.on_leadership(0, True, epoch)
    await loaded(coordinator)
    return coordinator


async def loaded(coordinator: GroupCoordinator) -> Fetched:
    """The answer after loading, which takes a few turns of the loop."""
    for _ in range(100):
        found = await fetch(coordinator)
        if found.error_code != ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            return found
        await asyncio.sleep(0)
    raise AssertionError("still loading")


async def join(
    coordinator: GroupCoordinator, member_id: str = "", *, subscription: bytes = b"sub"
) -> JoinGroupResponse:
    protocol = JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=subscription)
    request = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=60_000,
        member_id=member_id,
        protocol_type="consumer",
        protocols=[protocol],
    )
    return await coordinator.join_group(request, 3, CLIENT)


def commit_request(offset: int, member_id: str = "", generation: int = -1) -> OffsetCommitRequest:
    partition = OffsetCommitRequest.OffsetCommitRequestTopic.OffsetCommitRequestPartition(
        partition_index=0, committed_offset=offset, committed_metadata="note"
    )
    topic = OffsetCommitRequest.OffsetCommitRequestTopic(name="t", partitions=[partition])
    return OffsetCommitRequest(
        group_id="g",
        member_id=member_id,
        generation_id_or_member_epoch=generation,
        topics=[topic],
    )


async def commit(
    coordinator: GroupCoordinator, offset: int, member_id: str = "", generation: int = -1
) -> int:
    response = await coordinator.offset_commit(commit_request(offset, member_id, generation), 7)
    return response.topics[0].partitions[0].error_code


class Fetched:
    def __init__(self, error_code: int, offset: int, metadata: str | None) -> None:
        self.error_code, self.offset, self.metadata = error_code, offset, metadata


async def fetch(coordinator: GroupCoordinator) -> Fetched:
    topic = OffsetFetchRequest.OffsetFetchRequestTopic(name="t", partition_indexes=[0])
    response = await coordinator.offset_fetch(OffsetFetchRequest(group_id="g", topics=[topic]), 5)
    if response.error_code:
        return Fetched(response.error_code, -1, None)
    found = response.topics[0].partitions[0]
    return Fetched(found.error_code, found.committed_offset, found.metadata)


async def test_a_commit_is_answered_only_when_it_is_replicated() -> None:
    store = MemoryStore()
    coordinator = await leading(store)
    store.gate.clear()
    answer = asyncio.ensure_future(commit(coordinator, 5))
    for _ in range(10):
        await asyncio.sleep(0)
    assert not answer.done()
    assert (await fetch(coordinator)).offset == -1
    store.gate.set()
    assert await answer == ErrorCode.NONE
    assert (await fetch(coordinator)).offset == 5
    await coordinator.stop()


async def test_commits_of_one_turn_share_a_batch() -> None:
    store = MemoryStore()
    coordinator = await leading(store)
    answers = await asyncio.gather(*(commit(coordinator, offset) for offset in range(50)))
    assert set(answers) == {ErrorCode.NONE}
    assert store.appends <= 2
    assert (await fetch(coordinator)).offset == 49
    await coordinator.stop()


async def test_while_loading_nobody_is_told_that_there_is_no_offset() -> None:
    store = MemoryStore()
    store.readable.clear()
    coordinator = coordinator_on(store)
    coordinator.on_leadership(0, True, 0)
    await asyncio.sleep(0)
    assert (await fetch(coordinator)).error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert await commit(coordinator, 1) == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    store.readable.set()
    await coordinator.stop()


async def test_a_node_that_does_not_lead_says_so() -> None:
    coordinator = coordinator_on(MemoryStore(), leader=2)
    assert (await fetch(coordinator)).error_code == ErrorCode.NOT_COORDINATOR
    assert (await join(coordinator)).error_code == ErrorCode.NOT_COORDINATOR
    await coordinator.stop()


async def test_an_elected_node_whose_log_is_not_open_yet_asks_for_patience() -> None:
    coordinator = coordinator_on(MemoryStore(), leader=1)
    answer = await fetch(coordinator)
    assert answer.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    await coordinator.stop()


async def test_a_successor_knows_commits_and_members_from_the_log() -> None:
    store = MemoryStore()
    first = await leading(store)
    joined = await join(first)
    assignment = SyncGroupRequest.SyncGroupRequestAssignment(
        member_id=joined.member_id, assignment=b"p0"
    )
    sync = SyncGroupRequest(
        group_id="g", generation_id=1, member_id=joined.member_id, assignments=[assignment]
    )
    assert (await first.sync_group(sync, 3)).assignment == b"p0"
    assert await commit(first, 9, joined.member_id, 1) == ErrorCode.NONE
    first.on_leadership(0, False, 1)

    second = await leading(store, epoch=1)
    again = await fetch(second)
    assert (again.offset, again.metadata) == (9, "note")
    beat = HeartbeatRequest(group_id="g", generation_id=1, member_id=joined.member_id)
    assert (await second.heartbeat(beat, 3)).error_code == ErrorCode.NONE
    synced = await second.sync_group(
        SyncGroupRequest(group_id="g", generation_id=1, member_id=joined.member_id), 3
    )
    assert synced.assignment == b"p0"
    await first.stop()
    await second.stop()


@pytest.mark.parametrize("kept", [True, False])
async def test_after_an_unknown_outcome_the_log_is_asked(kept: bool) -> None:
    store = MemoryStore()
    coordinator = await leading(store)
    assert await commit(coordinator, 1) == ErrorCode.NONE
    store.outcome, store.kept_on_failure = ErrorCode.REQUEST_TIMED_OUT, kept
    assert await commit(coordinator, 2) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    found = await loaded(coordinator)
    assert found.offset == (2 if kept else 1)
    await coordinator.stop()


async def test_nobody_waits_for_a_coordinator_that_lost_its_partition() -> None:
    store = MemoryStore()
    coordinator = await leading(store)
    joined = await join(coordinator)
    store.gate.clear()
    sync = SyncGroupRequest(group_id="g", generation_id=1, member_id=joined.member_id)
    waiting = [
        asyncio.ensure_future(coordinator.sync_group(sync, 3)),
        asyncio.ensure_future(commit(coordinator, 1, joined.member_id, 1)),
        asyncio.ensure_future(join(coordinator)),
    ]
    for _ in range(5):
        await asyncio.sleep(0)
    coordinator.on_leadership(0, False, 1)
    async with asyncio.timeout(5):
        await asyncio.gather(*waiting)
    await coordinator.stop()


async def test_a_group_without_members_is_listed_and_deleted_with_its_offsets() -> None:
    store = MemoryStore()
    coordinator = await leading(store)
    await commit(coordinator, 3)
    listed = await coordinator.list_groups(ListGroupsRequest(), 5)
    assert [(g.group_id, g.group_state) for g in listed.groups] == [("g", "Empty")]
    deleted = await coordinator.delete_groups(DeleteGroupsRequest(groups_names=["g"]), 2)
    assert deleted.results[0].error_code == ErrorCode.NONE
    assert (await fetch(coordinator)).offset == -1
    successor = await leading(store, epoch=1)
    assert (await fetch(successor)).offset == -1
    await coordinator.stop()
    await successor.stop()


async def test_a_group_with_members_is_not_deleted() -> None:
    coordinator = await leading(MemoryStore())
    await join(coordinator)
    deleted = await coordinator.delete_groups(DeleteGroupsRequest(groups_names=["g"]), 2)
    assert deleted.results[0].error_code == ErrorCode.NON_EMPTY_GROUP
    await coordinator.stop()


@pytest.mark.parametrize(
    ("group_id", "count", "partition"),
    # From Java: Utils.abs("...".hashCode()) % count.
    [
        ("a", 50, 47),
        ("polygenelubricants", 50, 0),
        ("consumer-group", 50, 38),
        ("naïve-客户-😀", 50, 41),
    ],
)
def test_a_group_lives_where_java_puts_it(group_id: str, count: int, partition: int) -> None:
    assert partition_for(group_id, count) == partition


async def test_a_member_that_joins_while_its_group_is_deleted_is_in_a_new_group() -> None:
    store = MemoryStore()
    coordinator = await leading(store)
    await commit(coordinator, 3)
    store.gate.clear()
    request = DeleteGroupsRequest(groups_names=["g"])
    deleting = asyncio.ensure_future(coordinator.delete_groups(request, 2))
    await asyncio.sleep(0)
    joined = await join(coordinator)
    store.gate.set()
    assert (await deleting).results[0].error_code == ErrorCode.NONE
    beat = HeartbeatRequest(group_id="g", generation_id=1, member_id=joined.member_id)
    assert (await coordinator.heartbeat(beat, 3)).error_code == ErrorCode.NONE
    await coordinator.stop()


def delete_request(topic: str = "t") -> OffsetDeleteRequest:
    part = OffsetDeleteRequest.OffsetDeleteRequestPartition(partition_index=0)
    wanted = OffsetDeleteRequest.OffsetDeleteRequestTopic(name=topic, partitions=[part])
    return OffsetDeleteRequest(group_id="g", topics=[wanted])


async def test_offsets_are_deleted_one_by_one_and_a_successor_knows() -> None:
    store = MemoryStore()
    coordinator = await leading(store)
    unknown = await coordinator.offset_delete(delete_request(), 0)
    assert unknown.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    await commit(coordinator, 3)
    answer = await coordinator.offset_delete(delete_request(), 0)
    assert answer.topics[0].partitions[0].error_code == ErrorCode.NONE
    assert (await fetch(coordinator)).offset == -1
    successor = await leading(store, epoch=1)
    assert (await fetch(successor)).offset == -1
    await coordinator.stop()
    await successor.stop()


async def test_offsets_of_topics_that_members_read_are_not_deleted() -> None:
    """KIP-496; the group's members say what they read in the consumer protocol's own bytes."""
    coordinator = await leading(MemoryStore())
    await commit(coordinator, 3)
    read = ConsumerProtocolSubscription(topics=["t"]).encode_versioned(1)
    joined = await join(coordinator, subscription=read)
    beat = HeartbeatRequest(group_id="g", generation_id=1, member_id=joined.member_id)
    assert (await coordinator.heartbeat(beat, 3)).error_code == ErrorCode.NONE
    refused = await coordinator.offset_delete(delete_request(), 0)
    error = refused.topics[0].partitions[0].error_code
    assert error == ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
    other = await coordinator.offset_delete(delete_request("other"), 0)
    assert other.topics[0].partitions[0].error_code == ErrorCode.NONE
    assert (await fetch(coordinator)).offset == 3
    await coordinator.stop()


async def test_offsets_nobody_needs_expire_while_the_coordinator_runs() -> None:
    settings = GroupSettings(offsets_retention_ms=0, offsets_retention_check_interval_ms=1)
    store = MemoryStore()
    coordinator = coordinator_on(store, settings=settings)
    coordinator.on_leadership(0, True, 0)
    await loaded(coordinator)
    await commit(coordinator, 3)
    async with asyncio.timeout(5):
        await store.second_append.wait()
    for _ in range(5):
        await asyncio.sleep(0)
    assert (await fetch(coordinator)).offset == -1
    await coordinator.stop()


async def beat(
    coordinator: GroupCoordinator, member_id: str, epoch: int, *, owned: list[int] | None = None
) -> ConsumerGroupHeartbeatResponse:
    """A full heartbeat of a member that reads topic `t`."""
    held = ConsumerGroupHeartbeatRequest.TopicPartitions(topic_id=TOPIC_ID, partitions=owned or [])
    request = ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id=member_id,
        member_epoch=epoch,
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=["t"],
        topic_partitions=[held] if owned else [],
    )
    return await coordinator.consumer_group_heartbeat(request, 1, CLIENT)


def told(response: ConsumerGroupHeartbeatResponse) -> list[int]:
    assert response.error_code == ErrorCode.NONE, response.error_message
    assert response.assignment is not None
    return [n for topic in response.assignment.topic_partitions for n in topic.partitions]


async def test_a_heartbeat_is_answered_only_when_what_it_changed_is_replicated() -> None:
    store = MemoryStore()
    coordinator = await leading(store)
    store.gate.clear()
    joining = asyncio.ensure_future(beat(coordinator, "a", 0))
    for _ in range(10):
        await asyncio.sleep(0)
    again = asyncio.ensure_future(beat(coordinator, "a", 0))
    for _ in range(10):
        await asyncio.sleep(0)
    assert not joining.done()
    assert not again.done(), "it changed nothing, but it tells what is not yet replicated"
    store.gate.set()
    assert told(await joining) == told(await again) == [0]
    await coordinator.stop()


async def test_a_successor_knows_the_members_of_a_consumer_group() -> None:
    store = MemoryStore()
    first = await leading(store)
    joined = await beat(first, "a", 0)
    second = await leading(store, epoch=1)
    answer = await beat(second, "a", joined.member_epoch, owned=[0])
    assert (answer.member_epoch, told(answer)) == (joined.member_epoch, [0])
    await first.stop()
    await second.stop()


async def test_a_group_may_have_settings_of_its_own_and_they_hold_at_its_next_heartbeat() -> None:
    coordinator = coordinator_on(MemoryStore())
    coordinator.on_leadership(0, True, 0)
    await loaded(coordinator)
    cluster = image(1)
    coordinator._image = lambda: cluster
    await beat(coordinator, "a", 0)
    group = coordinator._held[0].state.consumer_groups["g"]
    assert group.settings.session_timeout_ms == 45_000
    own = {
        "consumer.session.timeout.ms": "46000",
        "consumer.heartbeat.interval.ms": "6000",
        "consumer.assignment.interval.ms": "7",
    }
    cluster = replace(cluster, configs={key_of_group("g"): own, key_of_group("other"): {}})
    await beat(coordinator, "a", 0)
    assert group.settings.session_timeout_ms == 46_000
    assert group.settings.heartbeat_interval_ms == 6_000
    assert group.settings.assignment_interval_ms == 7
    due_ms = group.next_deadline_ms()
    assert due_ms is not None
    assert due_ms - asyncio.get_running_loop().time() * 1000 > 45_000
    await coordinator.stop()


async def test_what_brokers_are_told_while_they_run_holds_for_their_groups_at_once() -> None:
    inherited, own = "group.consumer.assignment.interval.ms", "consumer.assignment.interval.ms"
    coordinator = coordinator_on(MemoryStore())
    coordinator.on_leadership(0, True, 0)
    await loaded(coordinator)
    cluster = image(1)
    coordinator._image = lambda: cluster
    for configs, in_force in (
        ({}, 0),
        ({"": {inherited: "7"}}, 7),
        ({"": {inherited: "7"}, "1": {inherited: "8"}, "2": {inherited: "9"}}, 8),
        ({"1": {inherited: "8"}, key_of_group("g"): {own: "6"}}, 6),
        ({"": {"log.retention.ms": "5"}}, 0),
    ):
        cluster = replace(cluster, configs=configs)
        await beat(coordinator, "a", 0)
        group = coordinator._held[0].state.consumer_groups["g"]
        assert group.settings.assignment_interval_ms == in_force
    await coordinator.stop()


async def test_the_first_answer_tells_an_epoch_though_the_assignment_takes_many_turns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With epoch 0 it would tell the member to join (KIP-848)."""
    monkeypatch.setattr(slices, "UNITS_PER_SLICE", 1)
    store = MemoryStore()
    coordinator = await leading(store)
    answers = [asyncio.create_task(beat(coordinator, name, 0)) for name in ("a", "b", "c")]
    group = None
    while group is None or group.has_no_assignment_yet:
        await asyncio.sleep(0)
        assert not any(answer.done() for answer in answers)
        group = coordinator._held[0].state.consumer_groups.get("g")
    for answer in answers:
        assert (await answer).error_code == ErrorCode.NONE
        assert (await answer).member_epoch > 0
    successor = await leading(store, epoch=1)
    members = successor._held[0].state.consumer_groups["g"].members
    assert {name: member.epoch for name, member in members.items()} == {
        name: member.epoch for name, member in group.members.items()
    }
    await coordinator.stop()
    await successor.stop()


async def test_who_waits_for_the_first_assignment_is_told_when_its_coordinator_moves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(slices, "UNITS_PER_SLICE", 1)
    coordinator = await leading(MemoryStore())
    answer = asyncio.create_task(beat(coordinator, "a", 0))
    await asyncio.sleep(0)
    assert coordinator._held[0].state.consumer_groups["g"].has_no_assignment_yet
    coordinator.on_leadership(0, False, 1)
    assert (await answer).error_code in (
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    )
    await coordinator.stop()


async def test_an_assignment_goes_on_between_heartbeats(monkeypatch: pytest.MonkeyPatch) -> None:
    """That of hundreds of members takes several turns of the loop (RULES F1)."""
    store = MemoryStore()
    coordinator = await leading(store)
    await beat(coordinator, "a", 0)
    monkeypatch.setattr(slices, "UNITS_PER_SLICE", 1)
    await beat(coordinator, "b", 0)
    held = coordinator._held[0]
    group = held.state.consumer_groups["g"]
    while group.is_assigning:
        assert held.assigning == {"g": group}
        await asyncio.sleep(0)
    assert group.assignment_epoch == group.epoch == 2
    await beat(coordinator, "a", 1)
    assert held.assigning == {}
    successor = await leading(store, epoch=1)
    assert successor._held[0].state.consumer_groups["g"].targets == group.targets
    await coordinator.stop()
    await successor.stop()


async def test_nobody_goes_on_with_the_assignment_of_a_group_that_moved_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = MemoryStore()
    coordinator = await leading(store)
    await beat(coordinator, "a", 0)
    monkeypatch.setattr(slices, "UNITS_PER_SLICE", 1)
    joining = asyncio.create_task(beat(coordinator, "b", 0))
    await asyncio.sleep(0)
    group = coordinator._held[0].state.consumer_groups["g"]
    assert group.is_assigning
    coordinator.on_leadership(0, False, 1)
    await joining
    await coordinator.stop()
    assert group.is_assigning
    assert group.assignment_epoch == 1


async def test_a_consumer_group_whose_record_failed_is_what_its_log_says() -> None:
    store = MemoryStore()
    coordinator = await leading(store)
    store.outcome = ErrorCode.NOT_ENOUGH_REPLICAS
    refused = await beat(coordinator, "a", 0)
    assert refused.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    store.outcome = ErrorCode.NONE
    await loaded(coordinator)
    assert told(await beat(coordinator, "a", 0)) == [0]
    await coordinator.stop()


async def test_a_group_changes_its_protocol_while_it_runs() -> None:
    coordinator = await leading(MemoryStore())
    subscription = ConsumerProtocolSubscription(topics=["t"]).encode_versioned(1)
    classic = await join(coordinator, subscription=subscription)
    fresh = told(await beat(coordinator, "new", 0))
    stale = HeartbeatRequest(group_id="g", generation_id=1, member_id=classic.member_id)
    assert (await coordinator.heartbeat(stale, 3)).error_code == ErrorCode.REBALANCE_IN_PROGRESS
    again = await join(coordinator, classic.member_id, subscription=subscription)
    assert (again.error_code, again.protocol_type) == (ErrorCode.NONE, "consumer")
    sync = SyncGroupRequest(
        group_id="g", generation_id=again.generation_id, member_id=classic.member_id
    )
    synced = await coordinator.sync_group(sync, 3)
    assert synced.error_code == ErrorCode.NONE
    given = ConsumerProtocolAssignment.decode_versioned(synced.assignment).assigned_partitions
    assert fresh + [n for topic in given for n in topic.partitions] == [0]
    listed = (await coordinator.list_groups(ListGroupsRequest(), 5)).groups
    assert [(g.group_id, g.group_type) for g in listed] == [("g", "consumer")]

    await coordinator.consumer_group_heartbeat(
        ConsumerGroupHeartbeatRequest(group_id="g", member_id="new", member_epoch=-1), 1, CLIENT
    )
    listed = (await coordinator.list_groups(ListGroupsRequest(), 5)).groups
    assert [(g.group_id, g.group_type) for g in listed] == [("g", "classic")]
    last = await join(coordinator, classic.member_id, subscription=subscription)
    assert last.error_code == ErrorCode.NONE
    assert last.leader == classic.member_id
    await coordinator.stop()


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (ConsumerGroupHeartbeatRequest(group_id="g", member_id="a"), ErrorCode.INVALID_REQUEST),
        (
            ConsumerGroupHeartbeatRequest(group_id="g", member_id="a", member_epoch=4),
            ErrorCode.GROUP_ID_NOT_FOUND,
        ),
        (
            ConsumerGroupHeartbeatRequest(
                group_id="g",
                member_id="a",
                rebalance_timeout_ms=1,
                subscribed_topic_regex="a(",
                topic_partitions=[],
            ),
            ErrorCode.INVALID_REGULAR_EXPRESSION,
        ),
        (
            ConsumerGroupHeartbeatRequest(
                group_id="g",
                member_id="a",
                rebalance_timeout_ms=1,
                subscribed_topic_names=["t"],
                topic_partitions=[],
                server_assignor="mine",
            ),
            ErrorCode.UNSUPPORTED_ASSIGNOR,
        ),
    ],
)
async def test_a_heartbeat_that_makes_no_sense_is_refused_with_a_reason(
    request_: ConsumerGroupHeartbeatRequest, error: ErrorCode
) -> None:
    coordinator = await leading(MemoryStore())
    answer = await coordinator.consumer_group_heartbeat(request_, 1, CLIENT)
    assert answer.error_code == error
    assert answer.error_message
    await coordinator.stop()


async def test_a_late_commit_does_not_take_a_partition_back_from_its_new_owner() -> None:
    """The member's epoch is in force, but it has given the partition up (KIP-848)."""
    coordinator = await leading(MemoryStore())
    first = await beat(coordinator, "a", 0)
    assert told(first) == [0]
    assert told(await beat(coordinator, "b", 0)) == []
    assert await consumer_commit(coordinator, "a", first.member_epoch, 5) == ErrorCode.NONE
    await coordinator.consumer_group_heartbeat(
        ConsumerGroupHeartbeatRequest(group_id="g", member_id="a", member_epoch=-1), 1, CLIENT
    )
    again = await beat(coordinator, "a", 0)
    second = await beat(coordinator, "b", 2)
    assert told(again) + told(second) == [0]
    owner, other = ("a", "b") if told(again) else ("b", "a")
    epochs = {"a": again.member_epoch, "b": second.member_epoch}
    late = await consumer_commit(coordinator, other, epochs[other], 4)
    assert late == ErrorCode.STALE_MEMBER_EPOCH
    assert await consumer_commit(coordinator, owner, epochs[owner], 6) == ErrorCode.NONE
    assert (await fetch(coordinator)).offset == 6
    await coordinator.stop()


async def consumer_commit(
    coordinator: GroupCoordinator, member_id: str, epoch: int, offset: int
) -> int:
    response = await coordinator.offset_commit(commit_request(offset, member_id, epoch), 9)
    return response.topics[0].partitions[0].error_code
