"""Stories of other people's replication, told again here: cases P13, R01, R03, R05 and R21."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from logboat.jepsen_style.simulation import World
from logboat.metadata.commands import DeleteTopics
from logboat.partitions import Role
from logboat.wire import ErrorCode
from logboat.wire.messages.fetch import FetchRequest, FetchResponse
from logboat.wire.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from logboat.wire.records import batches, decode_records
from tests.metadata.cluster_builder import topic_id
from tests.partitions.replication.replica_scene import NO_ERROR, TOPIC, ReplicaScene

LATEST = -1


@pytest.fixture
def world() -> Iterator[World]:
    with World(seed=17) as world:
        yield world


def values_in(data: FetchResponse.FetchableTopicResponse.PartitionData) -> list[bytes]:
    assert data.records is None or isinstance(data.records, list)
    return [
        record.value or b""
        for part in data.records or []
        for found in batches(part)
        for record in decode_records(found.view)
    ]


# P13: what a fetch session has been told to forget


def session_fetch(
    scene: ReplicaScene,
    session_id: int,
    epoch: int,
    *asked: tuple[int, int],
    forget: tuple[int, ...] = (),
) -> FetchResponse:
    """`asked`: (partition, offset). Version 11, so topics go by name."""
    request = FetchRequest(
        session_id=session_id,
        session_epoch=epoch,
        topics=[
            FetchRequest.FetchTopic(
                topic=TOPIC,
                partitions=[
                    FetchRequest.FetchPartition(
                        partition=number, fetch_offset=offset, partition_max_bytes=1 << 20
                    )
                    for number, offset in asked
                ],
            )
        ],
        forgotten_topics_data=[FetchRequest.ForgottenTopic(topic=TOPIC, partitions=list(forget))],
    )
    replicas = scene.nodes[1].replicas
    response = scene.call(1, replicas.fetch(request, 11, "one connection", from_replica=False))
    return FetchResponse.decode(b"".join(response.encode(11)), 11)


def partitions_in(response: FetchResponse) -> list[int]:
    return [part.partition_index for topic in response.responses for part in topic.partitions]


def test_p13_a_forgotten_partition_never_comes_back(world: World) -> None:
    scene = ReplicaScene(world)
    scene.create(partitions=2)
    for number in (0, 1):
        for count in range(6):
            scene.produce(1, b"%d" % count, number=number)
    opened = session_fetch(scene, 0, 0, (0, 0), (1, 0))
    session_id = opened.session_id
    assert partitions_in(opened) == [0, 1]
    assert partitions_in(session_fetch(scene, session_id, 1, (0, 5), forget=(1,))) == [0]
    assert partitions_in(session_fetch(scene, session_id, 2)) == [0]
    assert partitions_in(session_fetch(scene, session_id, 3, (0, 6))) == []
    scene.produce(1, b"news", number=1)
    assert partitions_in(session_fetch(scene, session_id, 4)) == []

    skipped = session_fetch(scene, session_id, 7)
    assert skipped.error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    unknown = session_fetch(scene, session_id + 99, 5)
    assert unknown.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert session_fetch(scene, session_id, -1, (0, 0)).error_code == NO_ERROR
    closed = session_fetch(scene, session_id, 5)
    assert closed.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


# R01: where an epoch ends


def end_of(
    scene: ReplicaScene, node_id: int, epoch: int, *, current: int = -1, topic: str = TOPIC
) -> tuple[ErrorCode, tuple[int, int]]:
    asked = OffsetForLeaderEpochRequest.OffsetForLeaderTopic
    request = OffsetForLeaderEpochRequest(
        topics=[
            asked(
                topic=topic,
                partitions=[
                    asked.OffsetForLeaderPartition(
                        partition=0, current_leader_epoch=current, leader_epoch=epoch
                    )
                ],
            )
        ]
    )
    replicas = scene.nodes[node_id].replicas
    response = scene.on(node_id, lambda: replicas.offset_for_leader_epoch(request, 4))
    answer = response.topics[0].partitions[0]
    return ErrorCode(answer.error_code), (answer.leader_epoch, answer.end_offset)


def move_the_lead(scene: ReplicaScene) -> int:
    """To another replica in sync; the leader epoch grows by one. The new leader."""
    leader = scene.image().leader
    scene.fence(leader)
    successor = scene.image().leader
    scene.await_role(successor, Role.LEADER)
    scene.unfence(leader)
    scene.await_isr(1, 2, 3)
    assert scene.image().leader == successor
    return successor


def test_r01_every_epoch_ends_where_the_next_one_with_records_begins(world: World) -> None:
    scene = ReplicaScene(world)
    scene.create()
    leader = 1
    for epoch in range(4):
        if epoch != 2:
            for number in range(10):
                scene.produce(leader, b"%d" % number)
        if epoch != 3:
            leader = move_the_lead(scene)
    assert scene.image().leader_epoch == 3
    ends = {epoch: end_of(scene, leader, epoch) for epoch in (0, 1, 2, 3, 4, 99, -1)}
    assert ends == {
        0: (NO_ERROR, (0, 10)),
        1: (NO_ERROR, (1, 20)),
        2: (NO_ERROR, (1, 20)),
        3: (NO_ERROR, (3, 30)),
        4: (NO_ERROR, (-1, -1)),
        99: (NO_ERROR, (-1, -1)),
        -1: (NO_ERROR, (-1, -1)),
    }
    nothing = (-1, -1)
    assert end_of(scene, leader, 0, current=2) == (ErrorCode.FENCED_LEADER_EPOCH, nothing)
    assert end_of(scene, leader, 0, current=3) == (NO_ERROR, (0, 10))
    assert end_of(scene, leader, 0, current=9) == (ErrorCode.UNKNOWN_LEADER_EPOCH, nothing)
    follower = next(n for n in scene.nodes if n != leader)
    assert end_of(scene, follower, 0) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, nothing)
    unknown = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, nothing)
    assert end_of(scene, leader, 0, topic="gone") == unknown

    scene.call(leader, scene.nodes[leader].partition().log.advance_log_start(15))
    assert end_of(scene, leader, 0) == (NO_ERROR, (0, 15))
    assert end_of(scene, leader, 1) == (NO_ERROR, (1, 20))


# R03: a former leader before it has cut its tail


def test_r03_a_former_leader_shows_nothing_of_its_tail_while_it_is_being_cut(world: World) -> None:
    scene = ReplicaScene(world)
    scene.create()
    scene.produce(1, b"committed")
    scene.world.network.partition([scene.nodes[1].host], [scene.nodes[2].host, scene.nodes[3].host])
    scene.nodes[1].deaf = True
    for number in range(5):
        assert scene.produce(1, b"u%d" % number, acks=1).error is NO_ERROR
    scene.fence(1)
    scene.await_role(2, Role.LEADER)
    for number in range(8):
        assert scene.produce(2, b"v%d" % number).error is NO_ERROR

    log = scene.nodes[1].partition().log
    truncate = log.truncate_to
    shown_while_cut: list[bytes] = []

    async def slowly(offset: int) -> None:
        await asyncio.sleep(0.2)
        shown_while_cut.extend(values_in(await scene.fetch_from(1, 0)))
        await truncate(offset)

    log.truncate_to = slowly  # type: ignore[method-assign]
    scene.world.network.heal()
    scene.nodes[1].deaf = False
    scene.on(1, scene.nodes[1].hear)
    scene.unfence(1)
    epoch = scene.image().leader_epoch
    seen: list[bytes] = []
    while sorted(scene.image().isr) != [1, 2, 3]:
        for asked_epoch in (-1, epoch):
            data = scene.fetch(1, 0, epoch=asked_epoch)
            assert data.error_code in (NO_ERROR, ErrorCode.NOT_LEADER_OR_FOLLOWER)
            seen += values_in(data)
        scene.settle(0.02)
    assert shown_while_cut == [b"committed"]
    assert {value[:1] for value in seen} <= {b"c", b"v"}
    assert scene.nodes[1].log() == scene.nodes[2].log() == scene.nodes[3].log()


# R05: metadata that changes all the time


@pytest.mark.parametrize("busy", [True, False])
def test_r05_a_broker_comes_back_into_the_isr_while_metadata_changes_all_the_time(
    world: World, busy: bool
) -> None:
    scene = ReplicaScene(world)
    scene.create()
    scene.produce(1, b"a")
    scene.kill(3)
    scene.fence(3)
    scene.produce(1, b"b")
    scene.start(3)
    began = world.now
    number = 0
    while sorted(scene.image().isr) != [1, 2, 3]:
        name = f"dummy-{number}"
        scene.metadata.create((1, 2), name=name)
        scene.publish()
        if busy:
            scene.produce(1, b"%d" % number)
        scene.settle(0.05)
        scene.metadata.must(DeleteTopics(scene.metadata.epoch, (topic_id(name),), None))
        scene.publish()
        scene.settle(0.05)
        number += 1
    assert world.now - began < 2
    assert scene.nodes[3].log() == scene.nodes[1].log()


# R21: a former leader that does not know it yet


def test_r21_a_former_leader_after_a_pause_commits_nothing_and_shows_nothing(world: World) -> None:
    scene = ReplicaScene(world)
    scene.create()
    scene.produce(1, b"A")
    paused = scene.nodes[1]
    paused.deaf = True
    paused.host.pause()
    scene.fence(1)
    scene.await_role(2, Role.LEADER)
    assert scene.produce(2, b"B").error is NO_ERROR
    paused.host.resume()

    assert scene.produce(1, b"x", acks=1).error is NO_ERROR  # May be lost, and will be.
    late = scene.produce(1, b"y", timeout_ms=300)
    assert late.error is ErrorCode.REQUEST_TIMED_OUT
    assert scene.list_offset(1, LATEST) == (NO_ERROR, 1)
    assert scene.consume(1) == [b"A"]
    scene.settle(3.0)  # Its followers have left it; the controller does not let it shrink the ISR.
    assert scene.list_offset(1, LATEST) == (NO_ERROR, 1)
    assert scene.consume(1) == [b"A"]

    paused.deaf = False
    scene.on(1, paused.hear)
    scene.unfence(1)
    scene.await_isr(1, 2, 3)
    assert [value for _, _, value in paused.log()] == [b"A", b"B"]
