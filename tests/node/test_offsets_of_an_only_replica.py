"""The only copy of an offsets partition is damaged: its coordinator loads what is left."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from logboat.groups import OFFSETS_TOPIC, GroupCoordinator
from logboat.jepsen_style.simulation import World
from logboat.node.offset_store import ReplicatedOffsets
from logboat.wire import ErrorCode
from tests.groups.test_coordinator import AT_ONCE, Fetched, commit, fetch
from tests.partitions.replication.replica_scene import ReplicaScene

COMMITS = 10


@pytest.fixture
def world() -> Iterator[World]:
    with World(seed=5) as world:
        yield world


def coordinator(scene: ReplicaScene) -> GroupCoordinator:
    """Of the process that runs now."""
    node = scene.nodes[1]
    made = GroupCoordinator(
        node_id=1,
        store=ReplicatedOffsets(node.replicas),
        image=lambda: scene.metadata.image,
        settings=AT_ONCE,
        clock=node.host.clock,
        rng=node.host.rng,
        on_fatal=node.host.exit,
    )

    def on_leadership(topic: str, partition: int, leads: bool, epoch: int) -> None:
        if topic == OFFSETS_TOPIC:
            made.on_leadership(partition, leads, epoch)

    node.replicas.subscribe_leadership(on_leadership)
    state = node.replicas.partition_state(OFFSETS_TOPIC, 0)
    assert state is not None
    with scene.world.on(node.host.loop):
        made.on_leadership(0, True, state.leader_epoch)
    return made


def loaded(scene: ReplicaScene, groups: GroupCoordinator) -> Fetched:
    found: list[Fetched] = []

    def is_loaded() -> bool:
        found.append(scene.world.call(scene.nodes[1].host, fetch(groups)))
        return found[-1].error_code == ErrorCode.NONE

    for _ in range(100):
        if is_loaded():
            return found[-1]
        scene.settle(0.1)
    raise AssertionError(f"still loading: {ErrorCode(found[-1].error_code).name}")


def flip_a_bit(scene: ReplicaScene, number: int) -> None:
    """In the batch of one commit; they are all of one size."""
    path = f"data/{OFFSETS_TOPIC}-0/{0:020}.log"
    node = scene.nodes[1].host.drive.open_file(path, create=False)
    for image in (node.cached, node.durable):
        size = len(image) // COMMITS
        image[number * size + size - 5] ^= 1


@pytest.mark.parametrize(
    ("damaged", "position"), [(COMMITS - 1, COMMITS - 2), (4, COMMITS - 1), (0, COMMITS - 1)]
)
def test_a_coordinator_loads_what_the_only_replica_has_left(
    world: World, damaged: int, position: int
) -> None:
    """The last commit lost: the one before is in force; another: nothing is to be seen of it."""
    scene = ReplicaScene(world, nodes=1)
    scene.metadata.create((1,), name=OFFSETS_TOPIC, configs={"cleanup.policy": "compact"})
    scene.metadata.create((1,), name="t")
    scene.publish()
    scene.settle()
    groups = coordinator(scene)
    loaded(scene, groups)
    for offset in range(COMMITS):
        done = scene.call(1, commit(groups, offset))
        assert done == ErrorCode.NONE
    scene.settle(6.0)  # A checkpoint.
    scene.kill(1)
    flip_a_bit(scene, damaged)
    scene.start(1)
    groups = coordinator(scene)
    assert loaded(scene, groups).offset == position
    assert scene.nodes[1].replicas.counters.lost_group_records == 1
    assert scene.call(1, commit(groups, 77)) == ErrorCode.NONE
    scene.stop(1)
    scene.start(1)
    groups = coordinator(scene)
    assert loaded(scene, groups).offset == 77
