"""DeleteRecords and retention over several replicas: the start moves, and everybody learns it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from logboat.jepsen_style.simulation import World
from logboat.partitions import Role
from logboat.wire import ErrorCode
from logboat.wire.messages.delete_records import DeleteRecordsRequest, DeleteRecordsResponse
from tests.partitions.replication.replica_scene import CONFIG, NO_ERROR, TOPIC, ReplicaScene

ALL = -1
"""As the offset: up to the high watermark."""


@pytest.fixture
def world() -> Iterator[World]:
    with World(seed=21) as world:
        yield world


@pytest.fixture
def scene(world: World) -> ReplicaScene:
    """Node 1 leads, five records are committed."""
    scene = ReplicaScene(world)
    scene.create()
    for number in range(5):
        scene.produce(1, b"%d" % number)
    return scene


async def delete_from(
    scene: ReplicaScene,
    node_id: int,
    offset: int,
    *,
    topic: str = TOPIC,
    number: int = 0,
    timeout_ms: int = 2_000,
    version: int = 2,
) -> tuple[ErrorCode, int]:
    request = DeleteRecordsRequest(
        timeout_ms=timeout_ms,
        topics=[
            DeleteRecordsRequest.DeleteRecordsTopic(
                name=topic,
                partitions=[
                    DeleteRecordsRequest.DeleteRecordsPartition(
                        partition_index=number, offset=offset
                    )
                ],
            )
        ],
    )
    response = await scene.nodes[node_id].replicas.delete_records(request)
    encoded = b"".join(response.encode(version))
    answer = DeleteRecordsResponse.decode(encoded, version).topics[0].partitions[0]
    return ErrorCode(answer.error_code), answer.low_watermark


def delete(scene: ReplicaScene, node_id: int, offset: int, **rest: Any) -> tuple[ErrorCode, int]:
    return scene.call(node_id, delete_from(scene, node_id, offset, **rest))


def starts(scene: ReplicaScene) -> list[int]:
    return [node.partition().log.log_start_offset for node in scene.nodes.values() if node.alive]


@pytest.mark.parametrize("version", [0, 1, 2])
def test_delete_records_is_answered_when_every_replica_has_deleted(
    scene: ReplicaScene, world: World, version: int
) -> None:
    began = world.now
    assert delete(scene, 1, 3, version=version) == (NO_ERROR, 3)
    assert starts(scene) == [3, 3, 3]
    assert world.now - began < 0.1, "followers are told at once, not after their long poll"
    assert scene.fetch(1, 2).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert scene.fetch(1, 3).error_code == NO_ERROR


def test_minus_one_deletes_all_that_is_committed(scene: ReplicaScene) -> None:
    assert delete(scene, 1, ALL) == (NO_ERROR, 5)
    assert starts(scene) == [5, 5, 5]
    assert scene.produce(1, b"next").base_offset == 5


def test_what_is_deleted_already_is_answered_at_once(scene: ReplicaScene) -> None:
    delete(scene, 1, 3)
    assert delete(scene, 1, 1, timeout_ms=0) == (NO_ERROR, 3)
    assert starts(scene) == [3, 3, 3]


def test_offsets_that_are_not_committed_are_out_of_range(scene: ReplicaScene) -> None:
    assert delete(scene, 1, 6) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)
    assert delete(scene, 1, -2) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)
    assert starts(scene) == [0, 0, 0]


def test_only_the_leader_deletes_and_only_what_there_is(scene: ReplicaScene) -> None:
    assert delete(scene, 2, 3) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
    unknown = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)
    assert delete(scene, 1, 3, number=7) == unknown
    assert delete(scene, 1, 3, topic="nowhere") == unknown
    internal = (ErrorCode.INVALID_TOPIC_EXCEPTION, -1)
    assert delete(scene, 1, 0, topic="__consumer_offsets") == internal


def test_a_topic_that_is_only_compacted_refuses(world: World) -> None:
    scene = ReplicaScene(world, broker_configs={"log.cleanup.policy": "compact"})
    scene.create()
    assert delete(scene, 1, 0) == (ErrorCode.POLICY_VIOLATION, -1)


def test_an_unreachable_follower_makes_it_time_out_though_the_leader_has_deleted(
    scene: ReplicaScene, world: World
) -> None:
    world.network.block(scene.nodes[1].host, scene.nodes[3].host)
    error, low_watermark = delete(scene, 1, 2, timeout_ms=500)
    assert (error, low_watermark) == (ErrorCode.REQUEST_TIMED_OUT, 0)
    assert starts(scene) == [2, 2, 0]
    world.network.heal()
    assert delete(scene, 1, 2) == (NO_ERROR, 2)
    assert starts(scene) == [2, 2, 2]


def test_a_fenced_broker_is_not_waited_for(scene: ReplicaScene) -> None:
    scene.kill(3)
    waiting = scene.begin(1, delete_from(scene, 1, 4))
    scene.settle()
    assert not waiting.done()
    scene.fence(3)
    scene.until(waiting.done, within=1)
    assert waiting.result() == (NO_ERROR, 4)
    scene.start(3)
    scene.until(lambda: starts(scene) == [4, 4, 4])


def test_a_leader_that_loses_its_office_says_so(scene: ReplicaScene, world: World) -> None:
    world.network.block(scene.nodes[1].host, scene.nodes[3].host)
    waiting = scene.begin(1, delete_from(scene, 1, 4))
    scene.settle()
    scene.fence(1)
    scene.until(waiting.done, within=1)
    assert waiting.result() == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)


def test_a_follower_behind_deletes_after_it_has_caught_up(
    scene: ReplicaScene, world: World
) -> None:
    world.network.block(scene.nodes[1].host, scene.nodes[3].host)
    for number in range(5, 9):
        scene.produce(1, b"%d" % number, acks=1)
    scene.await_isr(1, 2)
    delete(scene, 1, 8, timeout_ms=0)
    world.network.heal()
    scene.until(lambda: starts(scene) == [8, 8, 8])
    scene.await_isr(1, 2, 3)
    assert scene.nodes[3].log() == scene.nodes[1].log()


def test_a_deleted_start_is_remembered_after_a_clean_restart(scene: ReplicaScene) -> None:
    delete(scene, 1, 3)
    for node_id in (1, 2, 3):
        scene.stop(node_id)
    for node_id in (1, 2, 3):
        scene.start(node_id)
    assert starts(scene) == [3, 3, 3]


def test_retention_runs_on_every_replica_and_spares_the_uncommitted(world: World) -> None:
    config = replace(CONFIG, retention_check_interval_ms=1_000)
    brokers = {"log.retention.bytes": "0", "log.segment.bytes": "100"}
    scene = ReplicaScene(world, config=config, broker_configs=brokers)
    scene.create()
    for number in range(5):
        scene.produce(1, b"%d" % number)
    for node_id in (2, 3):
        world.network.block(scene.nodes[1].host, scene.nodes[node_id].host)
    scene.begin(1, scene.produce_to(1, b"lonely", acks=1))
    scene.settle(5.0)
    leader = scene.nodes[1].partition().log
    assert leader.log_start_offset <= 5 < leader.log_end_offset
    world.network.heal()
    scene.until(lambda: min(starts(scene)) >= 5, within=30)
    assert scene.nodes[1].partition().role is Role.LEADER
    scene.await_isr(1, 2, 3)
    assert scene.produce(1, b"next").error is NO_ERROR


def test_a_follower_begins_anew_where_records_were_deleted_amid_a_batch(
    scene: ReplicaScene,
) -> None:
    """KAFKA-6975: the leader's log begins in the middle of a batch, and it sends whole batches."""
    scene.kill(3)
    scene.fence(3)
    assert scene.produce(1, b"5", b"6", b"7", b"8").base_offset == 5
    scene.produce(1, b"9")
    delete(scene, 1, 7)  # In vain: one replica does not answer.
    assert scene.nodes[1].partition().log.log_start_offset == 7
    scene.start(3)
    scene.await_isr(1, 2, 3)
    scene.settle(0.5)
    assert starts(scene) == [7, 7, 7]
    held = [[value for _, _, value in node.log()] for node in scene.nodes.values()]
    assert held == [held[0]] * 3
    assert held[0][-3:] == [b"7", b"8", b"9"]
    assert scene.nodes[3].partition().high_watermark == 10
    for node_id in (2, 1):
        scene.kill(node_id)
        scene.fence(node_id)
    scene.await_role(3, Role.LEADER)
    assert scene.fetch(3, 6).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert scene.produce(3, b"10", acks=1).base_offset == 10
