"""A replica is to cut its log while its disk is full, or has no descriptors left: it lives, serves
nothing that it should have cut, and catches up when the disk works again (RULES C1, C4, D6).

`tests/simulation/test_cuts_on_a_failing_disk.py` lets every call of every cut fail; here a few do.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from logboat.jepsen_style.simulation import Host, Keep, World
from logboat.jepsen_style.simulation.crash_point import CHANGES, RefusedCalls
from logboat.metadata.commands import ElectionType, ElectLeaders, PartitionId
from logboat.metadata.image import NO_LEADER
from logboat.partitions import Replicas, Role
from logboat.partitions.partition import Partition
from logboat.partitions.storage import PartitionLog
from logboat.wire import ErrorCode
from tests.metadata.cluster_builder import topic_id
from tests.partitions.replication.replica_scene import NO_ERROR, Answer, ReplicaScene
from tests.partitions.replication.test_replica_scenes import damage_log, flip_a_bit

NUMBERS = (1, 2, 3)
"""Of the call that fails first."""

REFUSED = tuple(kind for kind in CHANGES if kind != "truncate")
"""By a full disk; to make a file shorter takes no room."""

ANYTHING = (*CHANGES, "sync_dir")
FIRST_CHANGE = 6
"""Of the calls of a cut in `forked`: five are the checkpoint's."""


@pytest.fixture
def world() -> Iterator[World]:
    with World(seed=31) as world:
        yield world


class Refused:
    """From the `number`-th call of the first cut on, the disk of `host` is full."""

    def __init__(
        self,
        monkeypatch: pytest.MonkeyPatch,
        host: Host,
        number: int,
        kinds: tuple[str, ...] = REFUSED,
    ) -> None:
        self.calls: RefusedCalls | None = None
        self.half_cut = False
        """The first attempt left the log like that."""
        self._kinds = kinds
        for name in ("truncate_to", "truncate_fully"):
            monkeypatch.setattr(PartitionLog, name, self._arming(name, host, number))

    def _arming(self, name: str, host: Host, number: int) -> Callable[..., Any]:
        cut = getattr(PartitionLog, name)

        async def armed(log: PartitionLog, offset: int) -> None:
            first = self.calls is None
            if first:
                self.calls = RefusedCalls(host, number, errno.ENOSPC, kinds=self._kinds)
            try:
                await cut(log, offset)
            finally:
                self.half_cut |= first and log.half_cut is not None

        return armed

    @property
    def failed(self) -> bool:
        return self.calls is not None and self.calls.failed

    def heal(self) -> None:
        assert self.calls is not None
        self.calls.heal()


def forked(world: World) -> ReplicaScene:
    """Node 1 has led on its own and holds what the others will never have; it is to come back."""
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
    scene.settle(6.0)  # A checkpoint.
    return scene


def come_back(scene: ReplicaScene) -> None:
    scene.world.network.heal()
    scene.nodes[1].deaf = False
    scene.on(1, scene.nodes[1].hear)
    scene.unfence(1)


@pytest.mark.parametrize("number", range(1, FIRST_CHANGE + 2))
@pytest.mark.parametrize("crash", [False, True])
def test_d6_a_follower_that_cannot_cut_confirms_nothing_until_it_has(
    world: World, monkeypatch: pytest.MonkeyPatch, number: int, crash: bool
) -> None:
    scene = forked(world)
    refused = Refused(monkeypatch, scene.nodes[1].host, number, ANYTHING)
    come_back(scene)
    scene.until(lambda: refused.failed)
    scene.settle(3.0)
    assert refused.half_cut is (number >= FIRST_CHANGE)
    assert scene.nodes[1].alive
    assert 1 not in scene.image().isr
    assert scene.produce(2, b"v8").error is NO_ERROR
    if crash:
        scene.nodes[1].host.power_off(Keep.ANY)
        scene.fence(1)
    refused.heal()
    if crash:
        scene.start(1)
    scene.await_isr(1, 2, 3)
    assert scene.consume(2) == [b"committed", *(b"v%d" % number for number in range(9))]
    assert scene.nodes[1].log() == scene.nodes[2].log() == scene.nodes[3].log()
    assert scene.nodes[1].replicas.failed_logs() == {}


def test_c4_a_half_cut_log_neither_follows_nor_leads_before_it_is_opened_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting: list[Partition] = []
    open_again = Replicas._open_again_soon
    monkeypatch.setattr(Replicas, "_open_again_soon", lambda self, p: waiting.append(p))
    scene = forked(world)
    refused = Refused(monkeypatch, scene.nodes[1].host, FIRST_CHANGE, ANYTHING)
    come_back(scene)
    scene.until(lambda: refused.failed)
    refused.heal()
    scene.settle(3.0)
    (partition,) = waiting
    assert partition.log.half_cut is not None
    assert partition.role is Role.OFFLINE
    assert ErrorCode(scene.fetch(1, 0).error_code) is ErrorCode.KAFKA_STORAGE_ERROR
    assert 1 not in scene.image().isr
    scene.on(1, lambda: open_again(scene.nodes[1].replicas, partition))
    scene.await_isr(1, 2, 3)
    assert scene.nodes[1].log() == scene.nodes[2].log()


def test_d6_who_leads_before_it_could_cut_leads_with_a_whole_log(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both others are away for ever; a person has node 1 lead while its log is half cut."""
    scene = forked(world)
    refused = Refused(monkeypatch, scene.nodes[1].host, FIRST_CHANGE, ANYTHING)
    come_back(scene)
    scene.until(lambda: refused.half_cut)
    for node_id in (2, 3):
        scene.kill(node_id)
        scene.fence(node_id)
    assert scene.image().leader == NO_LEADER
    wanted = (PartitionId(topic_id("t"), 0),)
    scene.metadata.must(ElectLeaders(scene.metadata.epoch, ElectionType.UNCLEAN, wanted))
    scene.publish()
    scene.settle(2.0)
    assert scene.image().leader == 1
    answer = scene.produce(1, b"x", acks=1)
    assert answer.error is ErrorCode.KAFKA_STORAGE_ERROR
    refused.heal()
    scene.await_role(1, Role.LEADER)
    held = scene.nodes[1].log()
    assert [offset for offset, _, _ in held] == [*range(len(held))]
    assert held[0][2] == b"committed"
    assert scene.produce(1, b"x", acks=1) == Answer(NO_ERROR, len(held))


@pytest.mark.parametrize("number", range(1, 6))  # The first ones are the checkpoint's.
def test_c1_a_damaged_follower_that_cannot_be_mended_is_mended_later(
    world: World, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    scene = ReplicaScene(world)
    scene.create()
    for value in range(10):
        scene.produce(1, b"%d" % value)
    scene.settle(6.0)
    scene.kill(3)
    scene.fence(3)
    flip_a_bit(scene, 3)
    scene.start(3)
    scene.await_isr(1, 2, 3)
    refused = Refused(monkeypatch, scene.nodes[3].host, number)
    assert ErrorCode(scene.fetch(3, 5).error_code) is ErrorCode.KAFKA_STORAGE_ERROR
    scene.until(lambda: refused.failed)
    scene.settle(3.0)
    assert scene.nodes[3].alive
    assert 3 not in scene.image().isr
    refused.heal()
    scene.await_isr(1, 2, 3)
    assert scene.consume(3) == [b"%d" % value for value in range(10)]


@pytest.mark.parametrize("number", range(1, 7))
def test_c1_a_damaged_log_that_is_to_lead_is_cut_when_there_is_room(
    world: World, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    scene = ReplicaScene(world, nodes=2)
    scene.create(1, 2, min_isr=1)
    scene.fence(2)
    scene.await_isr(1)
    for value in range(10):
        scene.produce(1, b"%d" % value)
    scene.settle(6.0)
    scene.kill(1)
    damage_log(scene, 1)
    scene.start(1)
    refused = Refused(monkeypatch, scene.nodes[1].host, number)
    wanted = (PartitionId(topic_id("t"), 0),)
    scene.metadata.must(ElectLeaders(scene.metadata.epoch, ElectionType.UNCLEAN, wanted))
    scene.publish()
    scene.until(lambda: refused.failed)
    scene.settle(3.0)
    assert scene.nodes[1].alive
    assert scene.produce(1, b"x", acks=1).error is ErrorCode.KAFKA_STORAGE_ERROR
    refused.heal()
    partition = scene.await_role(1, Role.LEADER)
    held = [value for _, _, value in scene.nodes[1].log()]
    assert held == [b"%d" % value for value in range(len(held))]
    assert 0 < len(held) < 10
    assert partition.high_watermark == len(held)
    assert scene.produce(1, b"x") == Answer(NO_ERROR, len(held))


@pytest.mark.parametrize("number", NUMBERS)
def test_a_follower_that_cannot_start_over_does_so_later(
    world: World, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """Its leader has deleted all that would continue its log."""
    scene = ReplicaScene(world)
    scene.create()
    scene.produce(1, b"0")
    scene.kill(3)
    scene.fence(3)
    for value in range(1, 10):
        scene.produce(1, b"%d" % value)
    scene.call(1, scene.nodes[1].partition().delete_records(8))
    refused = Refused(monkeypatch, scene.nodes[3].host, number)
    scene.start(3)
    scene.until(lambda: refused.failed)
    scene.settle(3.0)
    assert scene.nodes[3].alive
    assert 3 not in scene.image().isr
    refused.heal()
    scene.await_isr(1, 2, 3)
    assert scene.nodes[3].partition().log.log_start_offset == 8
    assert [value for _, _, value in scene.nodes[3].log()] == [b"8", b"9"]
