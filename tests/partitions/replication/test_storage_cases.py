"""Stories of other people's logs, told again on three replicas: cases P11, P24, P36 and O03."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from dataclasses import replace
from uuid import UUID

import pytest

from logboat.jepsen_style.simulation import World
from logboat.jepsen_style.simulation.drive import DiskCall
from logboat.metadata.commands import DeleteTopics
from logboat.partitions import Role
from logboat.partitions.replicas import OPENING_AT_ONCE
from logboat.wire import ErrorCode
from logboat.wire.messages.fetch import FetchRequest, FetchResponse
from logboat.wire.messages.produce import ProduceRequest, ProduceResponse
from logboat.wire.records import Record, encode_batch
from tests.partitions.replication.replica_scene import (
    CONFIG,
    NO_ERROR,
    TOPIC,
    Answer,
    ReplicaScene,
    batch,
)

OUT_OF_ORDER = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
PID = 7


@pytest.fixture
def world() -> Iterator[World]:
    with World(seed=23) as world:
        yield world


def values(scene: ReplicaScene, node_id: int) -> list[bytes]:
    return [value for _, _, value in scene.nodes[node_id].log()]


# P11: batches above the limits


def test_p11_a_follower_gets_on_with_limits_of_one_byte(world: World) -> None:
    """Also where the partitions that are too large take turns in an answer."""
    config = replace(CONFIG, replica_fetch_max_bytes=1, replica_fetch_response_max_bytes=1)
    scene = ReplicaScene(world, config=config)
    scene.create(partitions=2)
    expected = [bytes(900_000), *(b"%d" % number for number in range(10))]
    for value in expected:
        for number in (0, 1):
            assert scene.produce(1, value, number=number).error is NO_ERROR
    for node_id in scene.nodes:
        for number in (0, 1):
            held = [value for _, _, value in scene.nodes[node_id].log(number)]
            assert held == expected


# P24: a topic of the same name


async def send_to(
    scene: ReplicaScene, topic: str, records: bytes, version: int, node_id: int = 1
) -> Answer:
    data = ProduceRequest.TopicProduceData(
        name=topic, partition_data=[ProduceRequest.PartitionProduceData(index=0, records=records)]
    )
    request = ProduceRequest(acks=-1, timeout_ms=2_000, topic_data=[data])
    response: ProduceResponse = await scene.nodes[node_id].replicas.produce(request, version)
    answer = response.responses[0].partition_responses[0]
    return Answer(ErrorCode(answer.error_code), answer.base_offset)


def test_p24_nothing_of_a_topic_reaches_the_next_one_of_its_name(world: World) -> None:
    scene = ReplicaScene(world)
    scene.create()
    old_id = scene.metadata.image.topics[TOPIC].topic_id
    for sequence in range(100):
        scene.produce(1, b"old", producer_id=PID, sequence=sequence)
    session = fetch(scene, old_id, 100, session_epoch=0)
    assert session.session_id > 0

    scene.metadata.must(DeleteTopics(scene.metadata.epoch, (old_id,), None))
    scene.publish()
    scene.create(uuid=UUID(int=24))
    scene.await_role(1, Role.LEADER)
    new_id = scene.metadata.image.topics[TOPIC].topic_id
    assert new_id != old_id

    # The producer's state is gone: its next sequence, and a fresh one, may begin.
    assert scene.produce(1, b"on", producer_id=PID, sequence=100) == Answer(NO_ERROR, 0)
    assert scene.produce(1, b"new", producer_id=PID + 1, sequence=0) == Answer(NO_ERROR, 1)
    # By the old id nothing is found, neither in a session nor without one.
    assert fetch(scene, old_id, 0).error is ErrorCode.UNKNOWN_TOPIC_ID
    in_session = fetch(scene, None, 0, session_id=session.session_id, session_epoch=1)
    assert in_session.error in (
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
    )
    assert in_session.size == 0
    # By name the old position does not exist.
    assert fetch(scene, TOPIC, 100).error is ErrorCode.OFFSET_OUT_OF_RANGE
    for node_id in scene.nodes:
        assert values(scene, node_id) == [b"on", b"new"]


class Fetched:
    def __init__(self, response: FetchResponse) -> None:
        self.session_id = response.session_id
        parts = [part for topic in response.responses for part in topic.partitions]
        codes = [part.error_code for part in parts] or [response.error_code]
        self.error = ErrorCode(codes[0])
        self.size = sum(
            len(piece)
            for part in parts
            for piece in (part.records if isinstance(part.records, list) else [])
        )


def fetch(
    scene: ReplicaScene,
    topic: object,
    offset: int,
    *,
    session_id: int = 0,
    session_epoch: int = -1,
) -> Fetched:
    """`topic`: by id in version 13, by name in 12, None: what the session knows."""
    version = 12 if isinstance(topic, str) else 13
    request = FetchRequest(session_id=session_id, session_epoch=session_epoch)
    if topic is not None:
        asked = FetchRequest.FetchTopic(
            partitions=[
                FetchRequest.FetchPartition(
                    partition=0, fetch_offset=offset, partition_max_bytes=1 << 20
                )
            ]
        )
        if isinstance(topic, str):
            asked.topic = topic
        else:
            asked.topic_id = topic  # type: ignore[assignment]
        request.topics.append(asked)
    replicas = scene.nodes[1].replicas
    return Fetched(
        scene.call(1, replicas.fetch(request, version, "connection", from_replica=False))
    )


# P36: idempotent producers


def of_today(scene: ReplicaScene, sequence: int, count: int = 2, *, epoch: int = 0) -> bytes:
    """What a producer last wrote long ago is forgotten, by the time of its records."""
    now = scene.nodes[1].host.clock.now_ms()
    return bytes(
        encode_batch(
            [Record(value=b"%d" % (sequence + n), timestamp=now) for n in range(count)],
            producer_id=PID,
            producer_epoch=epoch,
            base_sequence=sequence,
        )
    )


def pair(scene: ReplicaScene, node_id: int, sequence: int, count: int = 2) -> Answer:
    records = of_today(scene, sequence, count)
    return scene.call(node_id, send_to(scene, TOPIC, records, 12, node_id))


def check_repeats(scene: ReplicaScene, leader: int) -> None:
    before = values(scene, leader)
    for sequence in (12, 10, 8, 6, 4):
        assert pair(scene, leader, sequence) == Answer(NO_ERROR, sequence)
    assert pair(scene, leader, 0).error is OUT_OF_ORDER, "older than the last five"
    assert pair(scene, leader, 20).error is OUT_OF_ORDER, "a gap"
    assert pair(scene, leader, 12, count=4).error is OUT_OF_ORDER, "an overlap"
    assert pair(scene, leader, 13, count=1).error is OUT_OF_ORDER, "the half of a batch"
    assert values(scene, leader) == before


def leader_dies(scene: ReplicaScene) -> int:
    scene.kill(1)
    scene.fence(1)
    scene.await_role(2, Role.LEADER)
    return 2


def leader_is_killed_and_comes_back(scene: ReplicaScene) -> int:
    scene.kill(1)
    scene.fence(1)
    scene.start(1)
    scene.unfence(1)
    scene.await_isr(1, 2, 3)
    leader_dies_2(scene)
    return 1


def leader_dies_2(scene: ReplicaScene) -> None:
    scene.kill(2)
    scene.fence(2)
    scene.until(lambda: scene.image().leader in (1, 3))
    if scene.image().leader == 3:
        scene.kill(3)
        scene.fence(3)
    scene.await_role(1, Role.LEADER)


@pytest.mark.parametrize("change", [leader_dies, leader_is_killed_and_comes_back])
def test_p36_repeats_get_their_offsets_whoever_leads(
    world: World, change: Callable[[ReplicaScene], int]
) -> None:
    scene = ReplicaScene(world)
    scene.create(min_isr=1)
    for sequence in range(0, 14, 2):
        assert pair(scene, 1, sequence) == Answer(NO_ERROR, sequence)
    check_repeats(scene, 1)
    leader = change(scene)
    check_repeats(scene, leader)
    assert pair(scene, leader, 14) == Answer(NO_ERROR, 14)


def test_p36_sequences_wrap_on_every_replica(world: World) -> None:
    scene = ReplicaScene(world)
    scene.create()
    last = 2**31 - 2
    wrapping = batch(b"a", b"b", b"c", b"d", producer_id=PID, sequence=last)
    send = scene.call(1, send_to(scene, TOPIC, wrapping, 12))
    assert send == Answer(NO_ERROR, 0)
    leader = leader_dies(scene)
    assert scene.produce(leader, b"e", producer_id=PID, sequence=2) == Answer(NO_ERROR, 4)
    assert scene.produce(leader, b"a", b"b", b"c", b"d", producer_id=PID, sequence=last) == Answer(
        NO_ERROR, 0
    )
    assert values(scene, leader) == [b"a", b"b", b"c", b"d", b"e"]


def test_p36_an_old_epoch_is_fenced_and_a_new_one_begins_at_zero(world: World) -> None:
    scene = ReplicaScene(world)
    scene.create()

    def send(epoch: int, sequence: int) -> ErrorCode:
        return scene.call(
            1, send_to(scene, TOPIC, of_today(scene, sequence, 1, epoch=epoch), 12)
        ).error

    assert send(0, 0) is NO_ERROR
    assert send(1, 5) is OUT_OF_ORDER
    assert send(1, 0) is NO_ERROR
    assert send(0, 1) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert values(scene, 1) == [b"0", b"0"]


# O03: a disk without room


class FullDisk:
    """Of one node: nothing grows, and nothing is made, while it is full."""

    def __init__(self, scene: ReplicaScene, node_id: int) -> None:
        self.full = False
        scene.nodes[node_id].host.drive.on_call = self._on_call

    def _on_call(self, call: DiskCall) -> None:
        if self.full and call.kind in ("append", "preallocate", "create"):
            raise OSError(errno.ENOSPC, "no space left on device")


def test_o03_a_leader_without_room_refuses_still_serves_and_goes_on_by_itself(
    world: World,
) -> None:
    scene = ReplicaScene(world)
    scene.create(1, min_isr=1)
    disk = FullDisk(scene, 1)
    assert scene.produce(1, b"before") == Answer(NO_ERROR, 0)
    disk.full = True
    for _ in range(3):
        assert scene.produce(1, b"lost").error is ErrorCode.KAFKA_STORAGE_ERROR
    assert scene.consume(1) == [b"before"]
    assert scene.list_offset(1, -1) == (NO_ERROR, 1)
    disk.full = False
    assert scene.produce(1, b"after") == Answer(NO_ERROR, 1)
    assert scene.consume(1) == [b"before", b"after"]


def test_o03_a_follower_without_room_leaves_the_isr_and_comes_back(world: World) -> None:
    config = replace(CONFIG, replica_lag_time_max_ms=1_000)
    scene = ReplicaScene(world, config=config)
    scene.create()
    disk = FullDisk(scene, 3)
    scene.produce(1, b"before")
    disk.full = True
    late = scene.begin(1, scene.produce_to(1, b"while full", timeout_ms=10_000))
    scene.until(late.done)
    assert late.result() == Answer(NO_ERROR, 1)
    assert set(scene.image().isr) == {1, 2}
    disk.full = False
    scene.await_isr(1, 2, 3)
    for node_id in scene.nodes:
        assert values(scene, node_id) == [b"before", b"while full"]


def delete_topic(scene: ReplicaScene) -> None:
    topic_id = scene.metadata.image.topics[TOPIC].topic_id
    scene.metadata.must(DeleteTopics(scene.metadata.epoch, (topic_id,), None))
    scene.publish()
    scene.settle()


def folders(scene: ReplicaScene, node_id: int) -> list[str]:
    return [
        name for name in scene.nodes[node_id].host.disk.list("data") if TOPIC in name.split("-")
    ]


def test_nothing_stays_of_a_topic_that_is_deleted_while_its_logs_wait_to_be_opened(
    world: World,
) -> None:
    partitions = OPENING_AT_ONCE + 2
    scene = ReplicaScene(world)
    scene.create(partitions=partitions)
    scene.produce(1, b"before")
    scene.kill(3)
    host = scene.nodes[3].host
    host.drive.sync_latency_s = 0.05
    opened = scene.nodes[3].replicas
    host.start(scene.nodes[3].main)
    scene.until(lambda: scene.nodes[3].replicas is not opened)
    replicas = scene.nodes[3].replicas
    scene.until(lambda: replicas._registered)
    assert len(replicas._hosted) < partitions - OPENING_AT_ONCE
    delete_topic(scene)
    assert folders(scene, 3) == []


@pytest.mark.parametrize("ended", ["stopped", "killed"])
def test_o03_a_node_starts_on_a_full_disk_and_goes_on_when_there_is_room(
    world: World, ended: str
) -> None:
    """After a stop in order it serves what it has; after a kill the log opens, which writes its
    tail again, when it can: in both cases nobody has to help."""
    scene = ReplicaScene(world)
    scene.create()
    scene.produce(1, b"before")
    disk = FullDisk(scene, 3)
    if ended == "killed":
        scene.kill(3)
    else:
        scene.stop(3)
    scene.fence(3)
    disk.full = True
    scene.start(3)
    scene.unfence(3)
    scene.settle()
    if ended == "stopped":
        assert values(scene, 3) == [b"before"]
    disk.full = False
    scene.await_isr(1, 2, 3)
    assert scene.produce(1, b"after") == Answer(NO_ERROR, 1)
    assert values(scene, 3) == [b"before", b"after"]
