"""A bit flips in a record that nobody reads, and is found while others still have it (RULES C1)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from logboat.jepsen_style.simulation import World
from logboat.partitions import Role
from logboat.wire import ErrorCode
from tests.partitions.replication.replica_scene import NO_ERROR, Answer, ReplicaScene
from tests.partitions.replication.test_replica_scenes import flip_a_bit

COUNT = 10
SETTINGS = {"log.scrubber.interval.ms": "2000"}


@pytest.fixture
def world() -> Iterator[World]:
    with World(seed=17) as world:
        yield world


def filled(world: World, nodes: int = 3, *, enable: str = "true") -> ReplicaScene:
    settings = SETTINGS | {"log.scrubber.enable": enable}
    scene = ReplicaScene(world, nodes=nodes, broker_configs=settings)
    scene.create(min_isr=min(2, nodes))
    for number in range(COUNT):
        assert scene.produce(1, b"%d" % number).error is NO_ERROR
    return scene


@pytest.mark.parametrize("damaged", [1, 3])
def test_c1_a_bit_that_flips_where_nobody_reads_is_found_while_others_have_the_record(
    world: World, damaged: int
) -> None:
    """On the leader or on a follower. All others may die afterwards."""
    scene = filled(world)
    flip_a_bit(scene, damaged)
    scene.until(lambda: damaged not in scene.image().isr)
    scene.await_isr(1, 2, 3)
    assert scene.nodes[damaged].replicas.counters.damage_scrubbed == 1
    others = [node_id for node_id in scene.nodes if node_id != damaged]
    for node_id in others:
        scene.kill(node_id)
        scene.fence(node_id)
    partition = scene.await_role(damaged, Role.LEADER)
    held = [value for _, _, value in scene.nodes[damaged].log()]
    assert held == [b"%d" % number for number in range(COUNT)]
    assert partition.log.damage is None


def test_c1_without_a_scrubber_nobody_finds_it(world: World) -> None:
    scene = filled(world, enable="false")
    flip_a_bit(scene, 3)
    scene.settle(60.0)
    assert sorted(scene.image().isr) == [1, 2, 3]
    assert scene.nodes[3].replicas.counters.scrubbed_bytes == 0


def test_c1_the_only_replica_sets_aside_what_its_scrubber_finds(world: World) -> None:
    scene = filled(world, nodes=1)
    flip_a_bit(scene, 1)
    scene.until(lambda: scene.nodes[1].replicas.counters.damage_scrubbed == 1)
    scene.settle()
    scene.await_role(1, Role.LEADER)
    assert ErrorCode(scene.fetch(1, 5).error_code) is ErrorCode.CORRUPT_MESSAGE
    assert scene.fetch(1, 6).error_code == NO_ERROR
    assert scene.produce(1, b"x") == Answer(NO_ERROR, COUNT)
    scene.settle(20.0)
    assert scene.nodes[1].replicas.counters.damage_scrubbed == 1
    assert scene.nodes[1].partition().role is Role.LEADER


def test_c1_the_scrubbers_find_nothing_in_what_is_whole(world: World) -> None:
    scene = filled(world)
    scene.settle(20.0)
    for node in scene.nodes.values():
        counters = node.replicas.counters
        assert counters.damage_scrubbed == 0
        assert counters.scrubbed_logs >= 5
        assert counters.scrubbed_bytes >= 5 * node.partition().log.size_bytes
