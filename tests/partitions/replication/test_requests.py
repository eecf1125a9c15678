"""Produce, Fetch, ListOffsets and OffsetForLeaderEpoch as clients see them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest

from logboat.jepsen_style.simulation import World
from logboat.partitions import Role
from logboat.partitions import fetch as fetching
from logboat.wire import ErrorCode
from logboat.wire.messages.fetch import FetchRequest, FetchResponse
from logboat.wire.messages.list_offsets import ListOffsetsRequest
from logboat.wire.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from logboat.wire.messages.produce import ProduceRequest, ProduceResponse
from tests.partitions.replication.replica_scene import NO_ERROR, TOPIC, ReplicaScene, batch

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED = -1, -2, -3, -4, -5
EARLIEST_PENDING_UPLOAD = -6


@pytest.fixture
def world() -> Iterator[World]:
    with World(seed=5) as world:
        yield world


@pytest.fixture
def scene(world: World) -> ReplicaScene:
    """Node 1 leads partition 0, node 2 leads partition 1."""
    scene = ReplicaScene(world, nodes=2)
    scene.metadata.create((1, 2), (2, 1), min_isr=2)
    scene.publish()
    scene.settle()
    scene.await_role(1, Role.LEADER)
    return scene


def topic_id(scene: ReplicaScene) -> UUID:
    return scene.metadata.image.topics[TOPIC].topic_id


def produce(
    scene: ReplicaScene,
    *,
    version: int = 13,
    acks: int = -1,
    number: int = 0,
    records: Any = None,
    name: str = TOPIC,
    by: UUID | None = None,
) -> tuple[ProduceResponse, ProduceResponse.TopicProduceResponse.PartitionProduceResponse]:
    request = ProduceRequest(
        acks=acks,
        timeout_ms=1_000,
        topic_data=[
            ProduceRequest.TopicProduceData(
                name=name if version < 13 else "",
                topic_id=UUID(int=0) if version < 13 else (by or topic_id(scene)),
                partition_data=[
                    ProduceRequest.PartitionProduceData(
                        index=number, records=batch(b"x") if records is None else records
                    )
                ],
            )
        ],
    )
    response = scene.call(1, scene.nodes[1].replicas.produce(request, version))
    response = ProduceResponse.decode(b"".join(response.encode(version)), version)
    return response, response.responses[0].partition_responses[0]


@pytest.mark.parametrize("version", range(3, 14))
def test_produce_is_served_in_every_version(scene: ReplicaScene, version: int) -> None:
    response, answer = produce(scene, version=version)
    assert (answer.error_code, answer.base_offset) == (NO_ERROR, 0)
    assert response.responses[0].name == (TOPIC if version < 13 else "")


@pytest.mark.parametrize("acks", [0, 1, -1])
def test_the_three_acks_are_served(scene: ReplicaScene, acks: int) -> None:
    _, answer = produce(scene, acks=acks)
    assert (answer.error_code, answer.base_offset) == (NO_ERROR, 0)


def test_acks_1_waits_for_this_replicas_sync_alone(scene: ReplicaScene, world: World) -> None:
    """C2."""
    world.network.block(scene.nodes[1].host, scene.nodes[2].host)
    _, answer = produce(scene, acks=1)
    assert answer.error_code == NO_ERROR
    partition = scene.nodes[1].partition()
    assert partition.log.synced_offset == 1
    assert partition.high_watermark == 0


@pytest.mark.parametrize("acks", [-2, 2, 7])
def test_other_acks_are_refused(scene: ReplicaScene, acks: int) -> None:
    _, answer = produce(scene, acks=acks)
    assert answer.error_code == ErrorCode.INVALID_REQUIRED_ACKS
    assert scene.nodes[1].log() == []


def test_s18_produce_to_an_unknown_topic_is_told_from_one_without_a_leader(
    scene: ReplicaScene,
) -> None:
    _, answer = produce(scene, version=12, name="nowhere")
    assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    _, answer = produce(scene, by=UUID(int=99))
    assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_ID
    _, answer = produce(scene, number=17)
    assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("version", [12, 13])
def test_produce_to_the_wrong_node_says_who_leads(scene: ReplicaScene, version: int) -> None:
    response, answer = produce(scene, number=1, version=version)
    assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert answer.current_leader is not None
    assert (answer.current_leader.leader_id, answer.current_leader.leader_epoch) == (2, 0)
    assert [(node.node_id, node.port) for node in response.node_endpoints] == [(2, 9002)]


def test_broken_records_are_refused_with_a_sentence(scene: ReplicaScene) -> None:
    damaged = bytearray(batch(b"x"))
    damaged[-1] ^= 1
    _, answer = produce(scene, records=damaged)
    assert answer.error_code == ErrorCode.CORRUPT_MESSAGE
    assert answer.error_message
    assert scene.nodes[1].log() == []


def test_no_records_are_refused(scene: ReplicaScene) -> None:
    _, answer = produce(scene, records=b"")
    assert answer.error_code not in (NO_ERROR, ErrorCode.UNKNOWN_SERVER_ERROR)


def fetch(
    scene: ReplicaScene,
    offset: int = 0,
    *,
    node_id: int = 1,
    version: int = 18,
    **rest: Any,
) -> FetchResponse.FetchableTopicResponse.PartitionData:
    response = fetch_whole(scene, offset, node_id=node_id, version=version, **rest)
    return response.responses[0].partitions[0]


def fetch_whole(
    scene: ReplicaScene,
    offset: int = 0,
    *,
    node_id: int = 1,
    version: int = 18,
    number: int = 0,
    epoch: int = -1,
    last_epoch: int = -1,
    max_bytes: int = 1 << 20,
    partition_max_bytes: int = 1 << 20,
    wait_ms: int = 0,
    min_bytes: int = 1,
    replica_id: int = -1,
    by: UUID | None = None,
) -> FetchResponse:
    request = FetchRequest(
        max_wait_ms=wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        topics=[
            FetchRequest.FetchTopic(
                topic=TOPIC if version < 13 else "",
                topic_id=UUID(int=0) if version < 13 else (by or topic_id(scene)),
                partitions=[
                    FetchRequest.FetchPartition(
                        partition=number,
                        current_leader_epoch=epoch,
                        fetch_offset=offset,
                        last_fetched_epoch=last_epoch,
                        partition_max_bytes=partition_max_bytes,
                    )
                ],
            )
        ],
    )
    if version < 15:
        request.replica_id = replica_id
    elif replica_id >= 0:
        request.replica_state = FetchRequest.ReplicaState(replica_id=replica_id, replica_epoch=1)
    replicas = scene.nodes[node_id].replicas
    response = scene.call(node_id, replicas.fetch(request, version, "me", from_replica=False))
    return FetchResponse.decode(b"".join(response.encode(version)), version)


@pytest.mark.parametrize("version", range(4, 19))
def test_fetch_is_served_in_every_version(scene: ReplicaScene, version: int) -> None:
    scene.produce(1, b"a")
    data = fetch(scene, version=version)
    assert data.error_code == NO_ERROR
    assert data.high_watermark == data.last_stable_offset == 1
    assert data.records is not None
    assert len(data.records)


def test_a_consumer_waits_for_the_watermark_not_for_the_append(
    scene: ReplicaScene, world: World
) -> None:
    polling = scene.begin(1, scene.fetch_from(1, 0, max_wait_ms=5_000))
    scene.settle(0.1)
    began = world.now
    world.network.block(scene.nodes[1].host, scene.nodes[2].host)
    waiting = scene.begin(1, scene.produce_to(1, b"a", timeout_ms=60_000))
    scene.settle(0.3)
    assert not polling.done()
    world.network.heal()
    scene.until(polling.done)
    assert polling.result().high_watermark == 1
    scene.until(waiting.done)
    assert world.now - began < 4


def test_a_poll_without_news_ends_empty_at_its_time(scene: ReplicaScene, world: World) -> None:
    began = world.now
    data = fetch(scene, wait_ms=700)
    assert 0.7 <= world.now - began < 0.8
    assert data.error_code == NO_ERROR
    assert not data.records


def test_min_bytes_gathers_several_batches(scene: ReplicaScene) -> None:
    polling = scene.begin(1, _records_of(scene, min_bytes=3 * len(batch(b"a")), wait_ms=5_000))
    for number in range(3):
        assert not polling.done()
        scene.produce(1, b"%d" % number)
    scene.until(polling.done)
    assert len(polling.result()) == 3 * len(batch(b"a"))


async def _records_of(scene: ReplicaScene, *, min_bytes: int, wait_ms: int) -> bytes:
    request = FetchRequest(
        max_wait_ms=wait_ms,
        min_bytes=min_bytes,
        topics=[
            FetchRequest.FetchTopic(
                topic_id=topic_id(scene),
                partitions=[FetchRequest.FetchPartition(partition=0, partition_max_bytes=1 << 20)],
            )
        ],
    )
    response = await scene.nodes[1].replicas.fetch(request, 17, "me", from_replica=False)
    records = response.responses[0].partitions[0].records
    assert isinstance(records, list)
    return b"".join(records)


def test_a_batch_larger_than_all_limits_is_returned_alone(scene: ReplicaScene) -> None:
    """KIP-74: otherwise a consumer could never get past it."""
    scene.produce(1, bytes(1_000))
    scene.produce(1, b"next")
    data = fetch(scene, max_bytes=10, partition_max_bytes=10)
    assert data.records is not None
    assert len(data.records) == len(batch(bytes(1_000)))


def test_limits_hold_where_they_can(scene: ReplicaScene) -> None:
    size = len(batch(b"a"))
    for _ in range(5):
        scene.produce(1, b"a")
    data = fetch(scene, partition_max_bytes=3 * size + 1)
    assert data.records is not None
    assert len(data.records) == 3 * size


def test_f1_a_large_fetch_is_read_in_slices_and_answered_whole(
    scene: ReplicaScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = len(batch(b"a"))
    monkeypatch.setattr(fetching, "SLICE_BYTES", 2 * size)
    for _ in range(7):
        scene.produce(1, b"a")
    turns = 0

    async def count_turns() -> None:
        nonlocal turns
        polling = asyncio.ensure_future(_records_of(scene, min_bytes=1, wait_ms=0))
        while not polling.done():
            await asyncio.sleep(0)
            turns += 1
        assert len(await polling) == 7 * size

    scene.call(1, count_turns())
    assert turns >= 4


def test_f1_an_epoch_that_ends_between_two_slices_refuses_the_whole_partition(
    scene: ReplicaScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the first slice held may have been cut since."""
    monkeypatch.setattr(fetching, "SLICE_BYTES", len(batch(b"a")))
    for _ in range(5):
        scene.produce(1, b"a")

    async def lose_the_lead() -> Any:
        polling = asyncio.ensure_future(scene.fetch_from(1, 0))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        scene.metadata.fence(1)
        scene.nodes[1].hear()
        return await polling

    data = scene.call(1, lose_the_lead())
    assert data.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert not data.records


def test_f1_what_moves_while_others_are_read_is_not_missed(
    scene: ReplicaScene, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or acks=all would wait for as long as an idle fetch does."""
    monkeypatch.setattr(fetching, "SLICE_PARTITIONS", 1)
    scene.create(1, partitions=4, min_isr=1, name="wide", synced=False)
    replicas = scene.nodes[1].replicas
    wide = scene.metadata.image.topics["wide"].topic_id

    async def poll(offset: int) -> FetchResponse:
        asked = [
            FetchRequest.FetchPartition(
                partition=number,
                fetch_offset=offset if number == 0 else 0,
                partition_max_bytes=1 << 20,
            )
            for number in range(4)
        ]
        topics = [FetchRequest.FetchTopic(topic_id=wide, partitions=asked)]
        request = FetchRequest(max_wait_ms=60_000, min_bytes=1, topics=topics)
        return await replicas.fetch(request, 17, "me", from_replica=False)

    async def poll_some_turns_after_an_append(offset: int, turns: int) -> None:
        deadline = asyncio.get_running_loop().time() + 60
        appending = asyncio.ensure_future(
            replicas.append("wide", 0, batch(b"a"), deadline=deadline)
        )
        for _ in range(turns):
            await asyncio.sleep(0)
        response = await poll(offset)
        data = [p for t in response.responses for p in t.partitions if p.records]
        assert [one.partition_index for one in data] == [0]
        await appending

    began = world.now
    for offset in range(90):
        scene.call(1, poll_some_turns_after_an_append(offset, turns=offset))
    assert world.now - began < 10, "some poll has waited for its time to be up"
    partition = scene.nodes[1].partition(0, "wide")
    assert len(partition.watermark_fetches) == len(partition.log_end_fetches) == 0


def test_f1_a_log_that_is_cut_between_two_slices_is_no_reason_to_start_over(
    scene: ReplicaScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of another partition, behind the slice: not OFFSET_OUT_OF_RANGE, but a new leader."""
    monkeypatch.setattr(fetching, "SLICE_PARTITIONS", 1)
    scene.produce(1, b"a")
    scene.produce(1, b"a")
    partition = scene.nodes[1].partition()
    request = FetchRequest(
        topics=[
            FetchRequest.FetchTopic(
                topic_id=topic_id(scene),
                partitions=[
                    FetchRequest.FetchPartition(
                        partition=number, fetch_offset=offset, partition_max_bytes=1 << 20
                    )
                    for number, offset in ((0, 1), (1, 0))
                ],
            )
        ]
    )

    async def cut_between() -> FetchResponse:
        replicas = scene.nodes[1].replicas
        polling = asyncio.ensure_future(replicas.fetch(request, 17, "me", from_replica=False))
        await asyncio.sleep(0)
        scene.metadata.fence(1)
        scene.nodes[1].hear()
        await partition.log.truncate_to(0)
        return await polling

    response = scene.call(1, cut_between())
    assert response.responses[0].partitions[0].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize(
    ("offset", "error"),
    [(0, NO_ERROR), (1, NO_ERROR), (2, ErrorCode.OFFSET_OUT_OF_RANGE)],
)
def test_offsets_outside_the_log_are_out_of_range(
    scene: ReplicaScene, offset: int, error: ErrorCode
) -> None:
    scene.produce(1, b"a")
    assert fetch(scene, offset).error_code == error


def test_d4_an_offset_between_watermark_and_end_is_empty(scene: ReplicaScene, world: World) -> None:
    """D4."""
    world.network.block(scene.nodes[1].host, scene.nodes[2].host)
    scene.produce(1, b"a", acks=1)
    for offset in (0, 1):
        data = fetch(scene, offset)
        assert data.error_code == NO_ERROR
        assert not data.records


def test_the_askers_leader_epoch_is_checked(scene: ReplicaScene) -> None:
    """KIP-320."""
    scene.fence(1)
    scene.await_role(2, Role.LEADER)
    scene.unfence(1)
    scene.settle()
    epoch = scene.image().leader_epoch
    assert fetch(scene, node_id=2, epoch=epoch).error_code == NO_ERROR
    assert fetch(scene, node_id=2, epoch=epoch - 1).error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert fetch(scene, node_id=2, epoch=epoch + 1).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH


def test_a_diverging_consumer_is_told_where(scene: ReplicaScene) -> None:
    scene.produce(1, b"a")
    scene.fence(1)
    scene.await_role(2, Role.LEADER)
    scene.unfence(1)
    scene.await_isr(1, 2)
    scene.produce(2, b"b")
    data = fetch(scene, 2, node_id=2, last_epoch=0)
    assert data.diverging_epoch is not None
    assert (data.diverging_epoch.epoch, data.diverging_epoch.end_offset) == (0, 1)
    assert not data.records


def test_fetch_by_an_unknown_id(scene: ReplicaScene) -> None:
    assert fetch(scene, by=UUID(int=99)).error_code == ErrorCode.UNKNOWN_TOPIC_ID
    assert fetch(scene, number=9).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_consumers_read_from_followers_what_is_committed(scene: ReplicaScene) -> None:
    """KIP-392, from version 11 on."""
    scene.produce(1, b"a")
    scene.until(lambda: scene.nodes[2].partition().high_watermark == 1)
    data = fetch(scene, node_id=2, version=11)
    assert data.error_code == NO_ERROR
    assert data.records is not None
    assert len(data.records)
    # Beyond its own end the leader may have more: no reason to reset.
    assert fetch(scene, 5, node_id=2).error_code == ErrorCode.OFFSET_NOT_AVAILABLE


def test_old_consumers_are_sent_to_the_leader(scene: ReplicaScene) -> None:
    response = fetch_whole(scene, node_id=2, version=10)
    data = response.responses[0].partitions[0]
    assert data.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_new_consumers_are_told_where_the_leader_is(scene: ReplicaScene) -> None:
    scene.fence(1)
    scene.await_role(2, Role.LEADER)
    response = fetch_whole(scene, epoch=0)
    data = response.responses[0].partitions[0]
    assert data.error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert data.current_leader is not None
    assert data.current_leader.leader_id == 2
    assert [node.node_id for node in response.node_endpoints] == [2]


@pytest.mark.parametrize("version", [4, 12, 13, 18])
def test_b5_a_stranger_is_no_replica(scene: ReplicaScene, version: int) -> None:
    """B5: and nothing changes: a confirmed offset would move the watermark."""
    response = fetch_whole(scene, version=version, replica_id=2)
    assert response.responses[0].partitions[0].error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def test_an_incremental_answer_holds_only_what_is_new(scene: ReplicaScene) -> None:
    replicas = scene.nodes[1].replicas

    def request(session_id: int, epoch: int, *asked: int) -> FetchRequest:
        return FetchRequest(
            max_wait_ms=0,
            min_bytes=1,
            session_id=session_id,
            session_epoch=epoch,
            topics=[
                FetchRequest.FetchTopic(
                    topic_id=topic_id(scene),
                    partitions=[
                        FetchRequest.FetchPartition(
                            partition=0, fetch_offset=offset, partition_max_bytes=1 << 20
                        )
                        for offset in asked
                    ],
                )
            ],
        )

    def ask(*arguments: int) -> FetchResponse:
        return scene.call(1, replicas.fetch(request(*arguments), 17, "me", from_replica=False))

    opened = ask(0, 0, 0)
    assert opened.session_id != 0
    assert len(opened.responses) == 1
    assert ask(opened.session_id, 1).responses == []
    scene.produce(1, b"a")
    news = ask(opened.session_id, 2)
    assert news.responses[0].partitions[0].high_watermark == 1
    assert ask(opened.session_id, 3, 1).responses == []
    assert ask(opened.session_id, 9).error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert ask(opened.session_id + 1, 1).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


@pytest.mark.parametrize("version", range(1, 12))
def test_list_offsets_in_every_version(scene: ReplicaScene, version: int) -> None:
    scene.produce(1, b"a", b"b")
    assert scene.list_offset(1, LATEST, version) == (NO_ERROR, 2)
    assert scene.list_offset(1, EARLIEST, version) == (NO_ERROR, 0)
    unsupported = (ErrorCode.UNSUPPORTED_VERSION, -1)
    for timestamp, since, offset in (
        (MAX_TIMESTAMP, 7, 0),
        (EARLIEST_LOCAL, 8, 0),
        (LATEST_TIERED, 9, -1),
        (EARLIEST_PENDING_UPLOAD, 11, -1),
        (EARLIEST_PENDING_UPLOAD - 1, 99, -1),
    ):
        answer = scene.list_offset(1, timestamp, version)
        assert answer == ((NO_ERROR, offset) if version >= since else unsupported)
    assert scene.list_offset(1, 1, version) == (NO_ERROR, 0)
    assert scene.list_offset(1, 2, version) == (NO_ERROR, -1)


def test_list_offsets_shows_clients_nothing_above_the_watermark(
    scene: ReplicaScene, world: World
) -> None:
    world.network.block(scene.nodes[1].host, scene.nodes[2].host)
    scene.produce(1, b"a", acks=1)
    assert scene.list_offset(1, LATEST) == (NO_ERROR, 0)
    assert scene.list_offset(1, MAX_TIMESTAMP) == (NO_ERROR, -1)
    assert scene.list_offset(1, 0) == (NO_ERROR, -1)
    # A client that calls itself a replica is still a client.
    request = _list_offsets(replica_id=2)
    response = scene.on(1, lambda: scene.nodes[1].replicas.list_offsets(request, 11))
    assert response.topics[0].partitions[0].offset == 0
    response = scene.on(
        1, lambda: scene.nodes[1].replicas.list_offsets(request, 11, from_replica=True)
    )
    assert response.topics[0].partitions[0].offset == 1


def _list_offsets(replica_id: int = -1, *, times: int = 1, epoch: int = -1) -> ListOffsetsRequest:
    return ListOffsetsRequest(
        replica_id=replica_id,
        topics=[
            ListOffsetsRequest.ListOffsetsTopic(
                name=TOPIC,
                partitions=[
                    ListOffsetsRequest.ListOffsetsPartition(
                        partition_index=0, timestamp=LATEST, current_leader_epoch=epoch
                    )
                ]
                * times,
            )
        ],
    )


@pytest.mark.parametrize(
    ("node_id", "times", "epoch", "error"),
    [
        (2, 1, -1, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (1, 2, -1, ErrorCode.INVALID_REQUEST),
        (1, 1, 5, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ],
)
def test_list_offsets_refusals(
    scene: ReplicaScene, node_id: int, times: int, epoch: int, error: ErrorCode
) -> None:
    request = _list_offsets(times=times, epoch=epoch)
    response = scene.on(node_id, lambda: scene.nodes[node_id].replicas.list_offsets(request, 11))
    assert response.topics[0].partitions[0].error_code == error


@pytest.mark.parametrize("version", [2, 3, 4])
def test_offset_for_leader_epoch_goes_by_the_appended_end(
    scene: ReplicaScene, world: World, version: int
) -> None:
    world.network.block(scene.nodes[1].host, scene.nodes[2].host)
    scene.produce(1, b"a", acks=1)
    request = OffsetForLeaderEpochRequest(
        topics=[
            OffsetForLeaderEpochRequest.OffsetForLeaderTopic(
                topic=TOPIC,
                partitions=[
                    OffsetForLeaderEpochRequest.OffsetForLeaderPartition(partition=0),
                    OffsetForLeaderEpochRequest.OffsetForLeaderPartition(
                        partition=0, leader_epoch=7
                    ),
                    OffsetForLeaderEpochRequest.OffsetForLeaderPartition(partition=1),
                    OffsetForLeaderEpochRequest.OffsetForLeaderPartition(partition=7),
                ],
            )
        ]
    )
    response = scene.on(
        1, lambda: scene.nodes[1].replicas.offset_for_leader_epoch(request, version)
    )
    found = response.topics[0].partitions
    assert [(f.error_code, f.leader_epoch, f.end_offset) for f in found] == [
        (NO_ERROR, 0, 1),
        (NO_ERROR, -1, -1),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1, -1),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1, -1),
    ]


def test_s12_only_coordinators_write_to_internal_topics(world: World) -> None:
    scene = ReplicaScene(world)
    for name in ("__consumer_offsets", "__transaction_state"):
        scene.create(name=name)
        _, answer = produce(scene, version=12, name=name)
        assert answer.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
        replicas = scene.nodes[1].replicas

        async def append(name: str = name, replicas: Any = replicas) -> Any:
            deadline = asyncio.get_running_loop().time() + 5
            return await replicas.append(name, 0, batch(b"a"), deadline=deadline)

        outcome = scene.call(1, append())
        assert (outcome.error, outcome.base_offset) == (NO_ERROR, 0)
        state = replicas.partition_state(name, 0)
        assert state is not None
        assert state.high_watermark == 1, "answered when all in sync have it"


def test_coordinators_append_and_read_up_to_the_end(scene: ReplicaScene) -> None:
    replicas = scene.nodes[1].replicas

    async def append() -> Any:
        deadline = scene.nodes[1].host.loop.time() + 1
        return await replicas.append(TOPIC, 0, batch(b"a"), deadline=deadline)

    outcome = scene.call(1, append())
    assert (outcome.error, outcome.base_offset) == (NO_ERROR, 0)
    assert replicas.read_local(TOPIC, 0, 0, 1 << 20).next_offset == 1
