"""Several whole replicas through the events that have cost others their data (RULES B, C, D)."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from logboat.jepsen_style.simulation import DiskCall, Keep, World
from logboat.jepsen_style.simulation.drive import UNLIMITED, DirectoryNode
from logboat.metadata.commands import (
    AlterConfigs,
    DeleteTopics,
    ElectionType,
    ElectLeaders,
    PartitionId,
    ReorderReplicas,
    ReplicaOrder,
    TopicConfigs,
)
from logboat.metadata.image import NO_LEADER
from logboat.partitions import Role, assignments, fetch, fetcher, follower_session, replicas
from logboat.wire import ErrorCode, Message
from logboat.wire.messages.fetch import FetchRequest, FetchResponse
from logboat.wire.records import batches, decode_records
from tests.metadata.cluster_builder import topic_id
from tests.partitions.replication.replica_scene import CONFIG, NO_ERROR, Answer, ReplicaScene

LATEST = -1


@pytest.fixture
def world() -> Iterator[World]:
    with World(seed=11) as world:
        yield world


def values(scene: ReplicaScene, node_id: int) -> list[bytes]:
    return [value for _, _, value in scene.nodes[node_id].log()]


def cut_off(scene: ReplicaScene, node_id: int) -> None:
    """Nobody reaches it, it reaches nobody, and it hears nothing."""
    others = [node.host for node in scene.nodes.values() if node.node_id != node_id]
    scene.world.network.partition([scene.nodes[node_id].host], others)
    scene.nodes[node_id].deaf = True


def reconnect(scene: ReplicaScene, node_id: int) -> None:
    scene.world.network.heal()
    node = scene.nodes[node_id]
    node.deaf = False
    if node.alive:
        scene.on(node_id, node.hear)


# The usual course.


def test_c2_acknowledged_records_are_synced_on_every_isr_member(world: World) -> None:
    scene = ReplicaScene(world)
    scene.create()
    answer = scene.produce(1, b"a", b"b")
    assert answer == Answer(NO_ERROR, 0)
    for node_id, node in scene.nodes.items():
        assert values(scene, node_id) == [b"a", b"b"]
        assert node.partition().log.synced_offset == 2
    assert scene.consume(1) == [b"a", b"b"]


def test_d7_followers_learn_the_watermark_at_once(world: World) -> None:
    """D7: without another record, and long before their long poll is over."""
    scene = ReplicaScene(world)
    scene.create()
    scene.produce(1, b"a")
    began = world.now
    scene.until(lambda: all(n.partition().high_watermark == 1 for n in scene.nodes.values()))
    assert world.now - began < 0.05


def test_several_partitions_share_one_fetch(world: World) -> None:
    scene = ReplicaScene(world)
    scene.create(partitions=5)
    for number in range(5):
        assert scene.produce(1, b"%d" % number, number=number).error is NO_ERROR
    for number in range(5):
        assert [v for _, _, v in scene.nodes[3].log(number)] == [b"%d" % number]


def test_an_idle_follower_asks_rarely_and_names_nothing(world: World) -> None:
    """KIP-227: a session makes idle partitions cheap."""
    scene = ReplicaScene(world)
    scene.create(partitions=5)
    scene.settle(2.0)
    asked: list[FetchRequest] = []

    def note(_node: int, request: Message, response: Message) -> None:
        assert isinstance(request, FetchRequest)
        assert isinstance(response, FetchResponse)
        asked.append(request)
        assert response.responses == []

    scene.before_answer = note
    scene.settle(2.0)
    assert 0 < len(asked) <= 10
    assert all(request.topics == [] for request in asked)


def test_without_a_session_an_idle_follower_asks_rarely_too(world: World) -> None:
    """What it knows of the watermark must be up to date in every full request (D7)."""
    scene = ReplicaScene(world, config=replace(CONFIG, session_cache_slots=0))
    scene.create()
    scene.produce(1, b"a")
    scene.settle(2.0)
    asked: list[Message] = []
    scene.before_answer = lambda _node, request, _response: asked.append(request)
    scene.settle(2.0)
    assert 0 < len(asked) <= 10


# Leader changes.


def test_a_new_leader_has_every_acknowledged_record(world: World) -> None:
    scene = ReplicaScene(world)
    scene.create()
    for number in range(20):
        assert scene.produce(1, b"%d" % number).error is NO_ERROR
    scene.kill(1)
    scene.fence(1)
    scene.await_role(2, Role.LEADER)
    assert scene.produce(2, b"20").error is NO_ERROR
    assert scene.consume(2) == [b"%d" % number for number in range(21)]


def test_a_new_leader_commits_long_before_any_long_poll_is_over(world: World) -> None:
    """Node 3 follows node 2 in another partition already; that poll must not hold up this one."""
    scene = ReplicaScene(world)
    scene.metadata.create((1, 2, 3), (2, 1, 3), min_isr=2)
    scene.publish()
    scene.settle(1.0)
    scene.kill(1)
    scene.fence(1)
    began = world.now
    scene.await_role(2, Role.LEADER)
    assert scene.produce(2, b"a").error is NO_ERROR
    assert world.now - began < 0.1


def test_a_killed_leader_comes_back_with_the_same_log(world: World) -> None:
    scene = ReplicaScene(world)
    scene.create()
    scene.produce(1, b"a")
    scene.kill(1)
    scene.fence(1)
    scene.await_role(2, Role.LEADER)
    scene.produce(2, b"b")
    scene.start(1)
    scene.await_isr(1, 2, 3)
    assert scene.nodes[1].log() == scene.nodes[2].log() == scene.nodes[3].log()


def test_what_an_old_leader_alone_had_is_cut_when_it_returns(world: World) -> None:
    scene = ReplicaScene(world)
    scene.create()
    scene.produce(1, b"kept")
    cut_off(scene, 1)
    lost = scene.produce(1, b"never acknowledged", timeout_ms=100)
    assert lost.error is ErrorCode.REQUEST_TIMED_OUT
    assert values(scene, 1) == [b"kept", b"never acknowledged"]
    scene.fence(1)
    scene.await_role(2, Role.LEADER)
    scene.produce(2, b"new")
    reconnect(scene, 1)
    scene.unfence(1)
    scene.await_isr(1, 2, 3)
    assert values(scene, 1) == [b"kept", b"new"]
    assert scene.nodes[1].replicas.counters.truncations == 1
    assert scene.nodes[1].replicas.counters.committed_records_cut == 0


def test_d6_two_failures_in_a_row_lose_nothing(world: World) -> None:
    """KIP-101, first scenario: truncation by watermark would cut a committed record here."""
    scene = ReplicaScene(world, nodes=2)
    scene.create(min_isr=1)
    scene.produce(1, b"a")
    # Node 2 has record b, but has not heard that it is committed.
    scene.nodes[2].partition()

    def hide_watermark(_node: int, _request: Message, response: Message) -> None:
        if isinstance(response, FetchResponse):
            for topic in response.responses:
                for partition in topic.partitions:
                    partition.high_watermark = min(partition.high_watermark, 1)

    scene.before_answer = hide_watermark
    assert scene.produce(1, b"b").error is NO_ERROR
    assert scene.nodes[2].partition().high_watermark == 1
    scene.kill(2)
    scene.fence(2)
    scene.start(2)
    scene.kill(1)
    scene.before_answer = None
    scene.fence(1)
    # Node 2 left the ISR when it fell; node 1 holds everything and is the only one to lead.
    assert scene.image().leader == -1
    scene.start(1)
    scene.await_role(1, Role.LEADER)
    scene.await_isr(1, 2)
    assert scene.consume(1) == [b"a", b"b"]
    assert values(scene, 2) == [b"a", b"b"]


def test_d6_logs_do_not_fork_when_epochs_were_skipped(world: World) -> None:
    """KIP-279: leadership moves several times, each leader keeping records of its own."""
    scene = ReplicaScene(world)
    scene.create(min_isr=1, unclean=True)
    scene.produce(1, b"common")
    # 1 leads alone, then 2 (uncleanly), then 3 (uncleanly): three different tails.
    for node_id in (1, 2, 3):
        for other in scene.nodes:
            if other != node_id and not scene.metadata.broker(other).fenced:
                scene.fence(other)
        if scene.metadata.broker(node_id).fenced:
            scene.unfence(node_id)
        scene.await_role(node_id, Role.LEADER)
        cut_off(scene, node_id)
        scene.nodes[node_id].deaf = False
        for number in range(node_id):
            assert scene.produce(node_id, b"of %d: %d" % (node_id, number)).error is NO_ERROR
        reconnect(scene, node_id)
        scene.fence(node_id)
        scene.settle(0.05)
    for node_id in scene.nodes:
        scene.unfence(node_id)
    scene.await_isr(1, 2, 3)
    logs = [node.log() for node in scene.nodes.values()]
    assert logs[0] == logs[1] == logs[2]


def test_an_epoch_without_records_is_forgotten_when_the_leader_never_had_it(world: World) -> None:
    """A leader that wrote nothing in its epoch must not look diverged for ever."""
    scene = ReplicaScene(world)
    scene.create()
    scene.produce(1, b"a")
    scene.fence(1)  # 2 leads, writes nothing
    scene.await_role(2, Role.LEADER)
    cut_off(scene, 2)
    scene.fence(2)
    scene.unfence(1)
    scene.settle()
    leader = scene.image().leader
    assert leader == 3
    scene.produce(3, b"b")
    reconnect(scene, 2)
    scene.unfence(2)
    scene.await_isr(1, 2, 3)
    assert values(scene, 2) == [b"a", b"b"]


def test_b1_no_record_is_written_twice_in_one_epoch_after_a_restart(world: World) -> None:
    """B1: replication factor 1 too, and although the old image still names the old leadership."""
    scene = ReplicaScene(world, nodes=1)
    scene.create(1, min_isr=1)
    scene.produce(1, b"a")
    before = scene.image().leader_epoch
    scene.kill(1)
    scene.nodes[1].host.power_off(Keep.NONE)
    scene.start(1)
    scene.await_role(1, Role.LEADER)
    assert scene.image().leader_epoch > before
    scene.produce(1, b"b")
    epochs = [epoch for _, epoch, _ in scene.nodes[1].log()]
    assert epochs == [before, scene.image().leader_epoch]


def test_f1_many_replicas_change_their_role_over_several_turns_by_the_newest_image(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replicas, "TOLD_AT_ONCE", 2)
    scene = ReplicaScene(world)
    scene.create(partitions=7)
    node = scene.nodes[2]
    scene.metadata.fence(1)

    def leaders() -> list[int]:
        return [node.partition(number).leader_id for number in range(7)]

    def hear_twice() -> tuple[list[int], list[int]]:
        node.hear()
        first = leaders()
        scene.metadata.fence(2)  # 3 leads now: nobody need take up what came before.
        node.hear()
        return first, leaders()

    first, second = scene.on(2, hear_twice)
    assert first == [2, 2, 1, 1, 1, 1, 1]
    assert second == [2, 2, 3, 3, 1, 1, 1]
    scene.settle(0.01)
    assert leaders() == [3] * 7
    assert node.replicas.counters.leader_changes == 2


def test_f1_a_change_of_brokers_reaches_all_that_lead_over_several_turns(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RULES D3: who may join an ISR depends on it. Followers need not know."""
    monkeypatch.setattr(replicas, "CHECKED_AT_ONCE", 3)
    scene = ReplicaScene(world)
    scene.create(1, 2, partitions=4)
    scene.create(2, 1, partitions=4, name="other")
    scene.settle()
    node = scene.nodes[1]

    def know_of_fenced(topic: str) -> list[bool]:
        wanted = [node.partition(number, topic)._wanted for number in range(4)]
        return [brokers[3].fenced for _, _, brokers in filter(None, wanted)]

    def hear(change: Callable[[int], object]) -> list[bool]:
        change(3)  # It has no replica.
        node.hear()
        return know_of_fenced("t")

    first = scene.on(1, lambda: hear(scene.metadata.fence))
    assert sum(first) == 3
    # Another change meanwhile comes behind what is waiting.
    assert scene.on(1, lambda: hear(scene.metadata.unfence)) == first
    scene.settle(0.01)
    assert know_of_fenced("t") == [False] * 4
    assert know_of_fenced("other") == [False] * 4


def test_f1_records_are_copied_where_each_partition_is_looked_at_in_a_turn_of_its_own(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At both ends of a fetch, while records come and leaders change."""
    monkeypatch.setattr(fetch, "SLICE_PARTITIONS", 1)
    monkeypatch.setattr(fetcher, "LOOKED_AT_ONCE", 1)
    monkeypatch.setattr(follower_session, "LOOKED_AT_ONCE", 1)
    scene = ReplicaScene(world)
    scene.create(partitions=5)
    leader = 1
    for round_ in range(6):
        began = world.now
        for number in range(5):
            value = b"%d of %d" % (round_, number)
            assert scene.produce(leader, value, number=number).error is NO_ERROR
        # Nobody waits for an idle fetch of 500 ms to end.
        assert world.now - began < 0.5
        if round_ == 2:
            scene.fence(1)
            scene.unfence(1)
            leader = scene.image().leader
            scene.await_role(leader, Role.LEADER, 4)
            for number in range(5):
                scene.await_isr(1, 2, 3, number=number)
    scene.settle(1.0)
    for number in range(5):
        assert len(scene.nodes[1].log(number)) == 6
        assert len({tuple(node.log(number)) for node in scene.nodes.values()}) == 1


def test_a_checkpoint_asks_for_no_watermark_of_a_topic_that_had_the_name_before(
    world: World,
) -> None:
    """Case P24. What the checkpoint takes, it takes in slices, or behind another writer."""
    scene = ReplicaScene(world)
    scene.create()
    node = scene.nodes[1]
    old = node.partition().log
    scene.metadata.must(DeleteTopics(scene.metadata.epoch, (topic_id("t"),), None))
    scene.publish()
    scene.settle()
    assert node.replicas._high_watermark_of(old) is None
    scene.create(uuid=topic_id("again"))
    assert node.replicas._high_watermark_of(old) is None
    assert node.replicas._high_watermark_of(node.partition().log) == 0


def test_what_goes_through_a_topic_is_counted_where_it_goes(world: World) -> None:
    scene = ReplicaScene(world)
    scene.create()
    scene.produce(1, b"a", b"b")
    scene.await_isr(1, 2, 3)
    assert scene.consume(1) == [b"a", b"b"]
    (seen,) = scene.nodes[1].replicas.traffic.seen()
    assert (seen.topic, seen.messages_in, seen.produces, seen.failed_produces) == ("t", 2, 1, 0)
    assert seen.bytes_in > 0
    assert seen.bytes_out == seen.bytes_in
    assert seen.replicated_out == 2 * seen.bytes_in
    (copied,) = scene.nodes[2].replicas.traffic.seen()
    assert (copied.replicated_in, copied.messages_in) == (seen.bytes_in, 0)
    assert scene.produce(2, b"to a follower").error is not NO_ERROR
    (refused,) = scene.nodes[2].replicas.traffic.seen()
    assert (refused.produces, refused.failed_produces, refused.bytes_in) == (1, 0, 0)
    scene.fence(2)
    scene.fence(3)
    assert scene.produce(1, b"to nobody else").error is ErrorCode.NOT_ENOUGH_REPLICAS
    (failed,) = scene.nodes[1].replicas.traffic.seen()
    assert (failed.produces, failed.failed_produces, failed.messages_in) == (2, 1, 2)
    scene.metadata.must(DeleteTopics(scene.metadata.epoch, (topic_id("t"),), None))
    scene.publish()
    scene.until(lambda: scene.nodes[1].replicas.traffic.seen() == ())


# ISR.


def test_a_silent_follower_leaves_the_isr_and_comes_back(world: World) -> None:
    scene = ReplicaScene(world)
    scene.create()
    cut_off(scene, 3)
    scene.produce(1, b"a", timeout_ms=5_000)
    scene.await_isr(1, 2)
    scene.produce(1, b"b")
    reconnect(scene, 3)
    scene.await_isr(1, 2, 3)
    assert values(scene, 3) == [b"a", b"b"]
    counters = scene.nodes[1].replicas.counters
    assert (counters.isr_shrinks, counters.isr_expands) == (1, 1)


def test_a_leader_that_was_itself_stalled_blames_nobody(world: World) -> None:
    scene = ReplicaScene(world)
    scene.create()
    scene.produce(1, b"a")
    producing = scene.begin(1, scene.produce_to(1, b"b", timeout_ms=20_000))
    scene.nodes[1].host.stall(5.0)
    scene.settle(8.0)
    assert producing.done()
    assert scene.nodes[1].replicas.counters.isr_shrinks == 0


def test_d1_nothing_is_committed_while_the_isr_is_below_its_minimum(world: World) -> None:
    scene = ReplicaScene(world)
    scene.create(min_isr=2)
    scene.produce(1, b"a")
    cut_off(scene, 2)
    cut_off(scene, 3)
    scene.fence(2)
    scene.fence(3)
    scene.settle()
    refused = scene.produce(1, b"refused")
    assert refused.error is ErrorCode.NOT_ENOUGH_REPLICAS
    assert scene.produce(1, b"for the leader only", acks=1).error is NO_ERROR
    assert scene.nodes[1].partition().high_watermark == 1
    assert scene.consume(1) == [b"a"]
    assert values(scene, 1) == [b"a", b"for the leader only"]


def test_d2_a_lost_answer_of_the_controller_keeps_the_change_in_flight(world: World) -> None:
    """D2: carried out or not, the image tells."""
    scene = ReplicaScene(world)
    scene.create()
    scene.fence(3)
    scene.settle()
    scene.lose_answers = True
    scene.nodes[1].deaf = True
    scene.unfence(3)
    scene.settle()
    # The leader does not even know that 3 is unfenced.
    assert scene.proposals == []
    scene.nodes[1].deaf = False
    scene.on(1, scene.nodes[1].hear)
    scene.await_isr(1, 2, 3)
    leader = scene.nodes[1].partition().leader
    assert leader is not None
    scene.until(lambda: leader.isr == (1, 2, 3) and leader.in_flight is None)


def test_an_unreachable_controller_is_asked_again_and_again(world: World) -> None:
    scene = ReplicaScene(world)
    scene.create()
    scene.fence(3)
    scene.settle()
    scene.controller_reachable = False
    scene.unfence(3)
    scene.settle(3.0)
    assert scene.image().isr == (1, 2)
    scene.controller_reachable = True
    scene.await_isr(1, 2, 3)


def test_a_refused_joiner_does_not_hold_the_watermark_for_ever(world: World) -> None:
    scene = ReplicaScene(world)
    scene.create()
    scene.fence(3)
    scene.settle()
    scene.refuse_proposals = ErrorCode.INELIGIBLE_REPLICA
    scene.unfence(3)
    scene.settle()
    assert scene.produce(1, b"a").error is NO_ERROR
    scene.refuse_proposals = None
    scene.await_isr(1, 2, 3)


def test_b3_a_wiped_follower_is_filled_again(world: World) -> None:
    """Hole 5: an emptied disk does not rejoin as if it held its data."""
    scene = ReplicaScene(world)
    scene.create()
    for number in range(10):
        scene.produce(1, b"%d" % number)
    scene.kill(3)
    scene.nodes[3].host.drive.root.entries.clear()
    scene.fence(3)
    scene.start(3)
    scene.await_isr(1, 2, 3)
    assert scene.nodes[3].log() == scene.nodes[1].log()


def damage_log(scene: ReplicaScene, node_id: int) -> None:
    """Half of a log is gone that had been synced and checkpointed."""
    node = scene.nodes[node_id].host.drive.open_file(f"data/t-0/{0:020}.log", create=False)
    for image in (node.cached, node.durable):
        del image[len(image) // 2 :]


def test_c1_a_damaged_follower_is_filled_again_once_nobody_counts_on_it(world: World) -> None:
    """C1."""
    scene = ReplicaScene(world)
    scene.create()
    for number in range(10):
        scene.produce(1, b"%d" % number)
    scene.settle(6.0)  # A checkpoint.
    scene.kill(3)
    scene.fence(3)
    damage_log(scene, 3)
    scene.start(3)
    scene.await_isr(1, 2, 3)
    assert scene.nodes[3].log() == scene.nodes[1].log()
    assert len(scene.nodes[3].log()) == 10


def test_c1_a_damaged_log_is_never_led_unless_that_is_wanted(world: World) -> None:
    """C1: the last one in sync stays offline instead of passing a shorter log for the truth: there
    is another replica, and it may have what this one lost."""
    scene = ReplicaScene(world, nodes=2)
    scene.create(1, 2, min_isr=1)
    scene.fence(2)
    scene.await_isr(1)
    for number in range(10):
        scene.produce(1, b"%d" % number)
    scene.settle(6.0)
    scene.kill(1)
    damage_log(scene, 1)
    scene.controller_reachable = False
    scene.nodes[1].host.start(scene.nodes[1].main)
    scene.settle(1.0)
    assert not scene.nodes[1].ready  # It does not ask to be unfenced before its loss is known.
    scene.unfence(1)
    scene.settle()
    assert scene.image().leader == 1
    assert scene.nodes[1].partition().role is Role.OFFLINE
    assert scene.produce(1, b"x").error is ErrorCode.KAFKA_STORAGE_ERROR
    scene.controller_reachable = True
    scene.until(lambda: scene.image().leader == NO_LEADER)
    assert (scene.image().isr, scene.image().elr) == ((), ())


def test_c1_damage_is_seen_again_at_every_start_until_the_controller_knows(world: World) -> None:
    """A checkpoint taken meanwhile must not turn it into a torn tail that is cut in silence."""
    scene = ReplicaScene(world)
    scene.create()
    for number in range(10):
        scene.produce(1, b"%d" % number)
    scene.settle(6.0)
    scene.kill(3)
    scene.fence(2)
    scene.fence(3)
    damage_log(scene, 3)
    scene.controller_reachable = False
    scene.nodes[3].host.start(scene.nodes[3].main)
    scene.settle(6.0)  # A checkpoint with the damage.
    assert 3 in scene.image().elr
    scene.kill(3)
    scene.controller_reachable = True
    scene.start(3)
    assert 3 not in scene.image().elr
    scene.unfence(2)
    scene.await_isr(1, 2, 3)
    assert scene.nodes[3].log() == scene.nodes[1].log()


def test_c1_a_log_whose_folder_is_gone_is_no_new_one(world: World) -> None:
    """The last one in the ELR comes back without the partition's folder: it must not lead."""
    scene = ReplicaScene(world)
    scene.create()
    for number in range(10):
        scene.produce(1, b"%d" % number)
    scene.settle(6.0)
    for node_id in (3, 2, 1):
        scene.kill(node_id)
        scene.fence(node_id)
    assert sorted(scene.image().elr) == [1, 2]
    data = scene.nodes[2].host.drive.root.entries["data"]
    assert isinstance(data, DirectoryNode)
    del data.entries["t-0"]
    scene.start(2)
    assert scene.image().elr == (1,)
    assert scene.image().leader == NO_LEADER
    scene.start(1)
    scene.await_isr(1, 2)
    assert scene.nodes[2].log() == scene.nodes[1].log()
    assert len(scene.nodes[2].log()) == 10


def test_c1_an_unclean_election_of_a_damaged_log_takes_what_is_left(world: World) -> None:
    scene = ReplicaScene(world, nodes=2)
    scene.create(1, 2, min_isr=1)
    scene.fence(2)
    scene.await_isr(1)
    for number in range(10):
        scene.produce(1, b"%d" % number)
    scene.settle(6.0)
    scene.kill(1)
    damage_log(scene, 1)
    scene.start(1)
    assert scene.image().leader == NO_LEADER
    wanted = (PartitionId(topic_id("t"), 0),)
    scene.metadata.must(ElectLeaders(scene.metadata.epoch, ElectionType.UNCLEAN, wanted))
    scene.publish()
    partition = scene.await_role(1, Role.LEADER)
    left = values(scene, 1)
    assert left == [b"%d" % number for number in range(len(left))]
    assert 0 < len(left) < 10
    assert partition.high_watermark == len(left)
    assert scene.produce(1, b"x") == Answer(NO_ERROR, len(left))


def flip_a_bit(scene: ReplicaScene, node_id: int) -> None:
    """In the middle of a log that had been synced and checkpointed; headers are as they were."""
    node = scene.nodes[node_id].host.drive.open_file(f"data/t-0/{0:020}.log", create=False)
    for image in (node.cached, node.durable):
        image[5 * len(image) // 10 + 65] ^= 1


def test_c1_a_leader_whose_records_turn_out_damaged_gives_way_and_is_filled_again(
    world: World,
) -> None:
    """C1: nobody sees the damage when the log is opened; the first who reads there does."""
    scene = ReplicaScene(world)
    scene.create()
    for number in range(10):
        scene.produce(1, b"%d" % number)
    scene.settle(6.0)  # A checkpoint.
    scene.kill(1)
    scene.fence(1)
    flip_a_bit(scene, 1)
    scene.start(1)
    scene.await_isr(1, 2, 3)
    scene.fence(3)
    scene.fence(2)
    scene.await_role(1, Role.LEADER)
    scene.unfence(2)
    scene.unfence(3)
    scene.await_isr(1, 2, 3)
    assert scene.fetch(1, 9).error_code == NO_ERROR
    assert ErrorCode(scene.fetch(1, 0).error_code) is ErrorCode.KAFKA_STORAGE_ERROR
    assert scene.nodes[1].partition().role is Role.OFFLINE
    assert scene.produce(1, b"x").error is ErrorCode.KAFKA_STORAGE_ERROR
    scene.until(lambda: scene.image().leader in (2, 3))
    scene.await_isr(1, 2, 3)
    assert scene.consume(scene.image().leader) == [b"%d" % number for number in range(10)]
    assert scene.nodes[1].log() == scene.nodes[2].log() == scene.nodes[3].log()


def only_replica(world: World) -> ReplicaScene:
    """Ten records that were synced and checkpointed, and one batch among them is damaged. It has
    been started again, and nobody has read yet."""
    scene = ReplicaScene(world, nodes=1)
    scene.create(1, min_isr=1)
    for number in range(10):
        scene.produce(1, b"%d" % number)
    scene.settle(6.0)
    scene.kill(1)
    flip_a_bit(scene, 1)
    scene.start(1)
    scene.await_role(1, Role.LEADER)
    return scene


def test_c1_the_only_replica_lives_on_without_its_damaged_batch(world: World) -> None:
    """C1: there is nobody to fill it again. One batch is lost, and nobody is led past it."""
    scene = only_replica(world)
    before = scene.image()
    assert ErrorCode(scene.fetch(1, 0).error_code) is ErrorCode.KAFKA_STORAGE_ERROR
    scene.await_role(1, Role.LEADER)
    assert scene.image() == before  # Nothing was reported, nobody elected.
    data = scene.fetch(1, 0)
    assert [found.header.base_offset for part in data.records for found in batches(part)] == [
        *range(5)
    ]
    assert data.high_watermark == 10
    refused = scene.fetch(1, 5)
    assert ErrorCode(refused.error_code) is ErrorCode.CORRUPT_MESSAGE
    assert not refused.records
    data = scene.fetch(1, 6)
    assert [found.header.base_offset for part in data.records for found in batches(part)] == [
        *range(6, 10)
    ]
    assert scene.produce(1, b"10") == Answer(NO_ERROR, 10)
    scene.stop(1)
    scene.start(1)
    scene.await_role(1, Role.LEADER)
    assert ErrorCode(scene.fetch(1, 5).error_code) is ErrorCode.CORRUPT_MESSAGE
    assert scene.fetch(1, 10).error_code == NO_ERROR
    assert scene.produce(1, b"11") == Answer(NO_ERROR, 11)


def test_c1_the_only_replica_that_is_found_damaged_at_its_start_leads_all_the_same(
    world: World,
) -> None:
    scene = ReplicaScene(world, nodes=1)
    scene.create(1, min_isr=1)
    for number in range(10):
        scene.produce(1, b"%d" % number)
    scene.settle(6.0)
    scene.kill(1)
    damage_log(scene, 1)
    scene.start(1)
    scene.await_role(1, Role.LEADER)
    state = scene.nodes[1].partition().state()
    assert (state.high_watermark, state.log_end_offset) == (10, 10)
    for offset in range(5, 10):
        assert ErrorCode(scene.fetch(1, offset).error_code) is ErrorCode.CORRUPT_MESSAGE
    assert scene.fetch(1, 0).error_code == NO_ERROR
    assert scene.produce(1, b"10") == Answer(NO_ERROR, 10)


def test_a_producer_that_waits_while_damage_is_found_is_told_that_nothing_is_known(
    world: World,
) -> None:
    """D5; the batch is in the log all the same, at its offset, in the same leader epoch."""
    scene = only_replica(world)
    epoch = scene.image().leader_epoch
    waiting = scene.begin(1, scene.produce_to(1, b"10"))
    reading = scene.begin(1, scene.fetch_from(1, 5))
    scene.until(lambda: waiting.done() and reading.done())
    assert waiting.result().error in (NO_ERROR, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    scene.await_role(1, Role.LEADER)
    assert scene.image().leader_epoch == epoch
    assert scene.produce(1, b"11") == Answer(NO_ERROR, 11)
    held = [
        record.value
        for part in scene.fetch(1, 6).records
        for found in batches(part)
        for record in decode_records(found.view)
    ]
    assert held == [b"6", b"7", b"8", b"9", b"10", b"11"]


def test_the_only_replica_without_room_for_a_copy_waits_for_it(world: World) -> None:
    scene = only_replica(world)
    drive = scene.nodes[1].host.drive
    drive.capacity_bytes = drive.used_bytes() + 1000
    assert ErrorCode(scene.fetch(1, 5).error_code) is ErrorCode.KAFKA_STORAGE_ERROR
    scene.settle(3.0)
    assert scene.produce(1, b"x").error is ErrorCode.KAFKA_STORAGE_ERROR
    drive.capacity_bytes = UNLIMITED
    scene.await_role(1, Role.LEADER)
    assert scene.produce(1, b"10") == Answer(NO_ERROR, 10)


@pytest.mark.parametrize("looked_at_once", [1, assignments.LOOKED_AT_ONCE])
def test_a_damaged_topic_that_is_deleted_is_gone(
    world: World, monkeypatch: pytest.MonkeyPatch, looked_at_once: int
) -> None:
    """Also when the image has it no more, and the deletion is still to be taken up."""
    monkeypatch.setattr(assignments, "LOOKED_AT_ONCE", looked_at_once)
    scene = only_replica(world)
    reading = scene.begin(1, scene.fetch_from(1, 5))
    scene.until(reading.done)
    scene.metadata.must(DeleteTopics(scene.metadata.epoch, (topic_id("t"),), None))
    scene.publish()
    scene.settle(5.0)
    data = scene.nodes[1].host.drive.root.entries["data"]
    assert isinstance(data, DirectoryNode)
    assert "t-0" not in data.entries
    assert scene.nodes[1].alive


def test_c1_a_follower_that_finds_damage_leaves_the_isr_and_is_filled_again(world: World) -> None:
    """A consumer that reads from the nearest replica is the one who meets it (KIP-392)."""
    scene = ReplicaScene(world)
    scene.create()
    for number in range(10):
        scene.produce(1, b"%d" % number)
    scene.settle(6.0)
    scene.kill(3)
    scene.fence(3)
    flip_a_bit(scene, 3)
    scene.start(3)
    scene.await_isr(1, 2, 3)
    assert ErrorCode(scene.fetch(3, 5).error_code) is ErrorCode.KAFKA_STORAGE_ERROR
    scene.until(lambda: 3 not in scene.image().isr)
    scene.await_isr(1, 2, 3)
    assert scene.consume(3) == [b"%d" % number for number in range(10)]
    assert scene.nodes[3].replicas.counters.committed_records_cut == 0


def test_c3_a_member_that_lost_its_end_leaves_at_once_and_is_filled_again(world: World) -> None:
    """Behind the back of everybody, and in one life: the leader sees it by the next fetch."""
    scene = ReplicaScene(world)
    scene.create()
    for number in range(10):
        scene.produce(1, b"%d" % number)
    log = scene.nodes[3].partition().log
    scene.call(3, log.truncate_to(4))
    scene.produce(1, b"10")
    scene.until(lambda: scene.nodes[1].replicas.counters.replicas_that_lost_data == 1)
    scene.until(lambda: 3 not in scene.image().isr)
    scene.await_isr(1, 2, 3)
    assert scene.nodes[3].log() == scene.nodes[1].log()


# Planned moves.


def test_hole_13_a_planned_move_keeps_what_every_replica_in_sync_had(world: World) -> None:
    """`acks=1` promises the leader's device; a move may lose it. `acks=all` promises the rest."""
    scene = ReplicaScene(world)
    scene.metadata.create((2, 1, 3), min_isr=2)
    scene.publish()
    scene.await_role(2, Role.LEADER)
    scene.fence(2)
    scene.await_role(1, Role.LEADER)
    scene.unfence(2)
    scene.await_isr(1, 2, 3)
    assert scene.produce(1, b"all").error is NO_ERROR
    for other in (2, 3):
        world.network.block(scene.nodes[1].host, scene.nodes[other].host)
    assert scene.produce(1, b"leader only", acks=1).error is NO_ERROR
    wanted = (PartitionId(topic_id("t"), 0),)
    scene.metadata.must(ElectLeaders(scene.metadata.epoch, ElectionType.PREFERRED, wanted))
    scene.publish()
    world.network.heal()
    scene.await_role(2, Role.LEADER)
    scene.await_isr(1, 2, 3)
    assert scene.produce(2, b"next").error is NO_ERROR
    assert scene.consume(2) == [b"all", b"next"]
    assert values(scene, 1) == [b"all", b"next"]


def test_d2_a_leader_whose_replicas_are_put_in_another_order_leads_on_and_proposes_again(
    world: World,
) -> None:
    """Its proposal may be under way: that one is refused by the partition epoch."""
    scene = ReplicaScene(world)
    scene.create()
    scene.await_isr(1, 2, 3)
    before = scene.image()
    world.network.block(scene.nodes[1].host, scene.nodes[3].host)
    order = ReplicaOrder(topic_id("t"), 0, (3, 2, 1))
    scene.metadata.must(ReorderReplicas(scene.metadata.epoch, (order,)))
    scene.publish()
    assert scene.produce(1, b"by the same leader").error is NO_ERROR
    scene.await_isr(2, 1)
    assert (scene.image().leader, scene.image().leader_epoch) == (1, before.leader_epoch)
    world.network.heal()
    scene.await_isr(3, 2, 1)
    wanted = (PartitionId(topic_id("t"), 0),)
    scene.metadata.must(ElectLeaders(scene.metadata.epoch, ElectionType.PREFERRED, wanted))
    scene.publish()
    scene.await_role(3, Role.LEADER)
    assert scene.produce(3, b"by the chosen one").error is NO_ERROR
    assert scene.consume(3) == [b"by the same leader", b"by the chosen one"]


# Power.


def test_c1_synced_records_survive_loss_of_power_everywhere(world: World) -> None:
    scene = ReplicaScene(world)
    scene.create()
    for number in range(10):
        assert scene.produce(1, b"%d" % number).error is NO_ERROR
    for node in scene.nodes.values():
        node.host.power_off(Keep.NONE)
    for node_id in scene.nodes:
        scene.fence(node_id)
    for node_id in scene.nodes:
        scene.start(node_id)
    scene.await_isr(1, 2, 3)
    leader = scene.image().leader
    scene.until(lambda: scene.nodes[leader].partition().high_watermark == 10)
    assert scene.consume(leader) == [b"%d" % number for number in range(10)]


def test_a_clean_stop_and_start_needs_no_recovery(world: World) -> None:
    scene = ReplicaScene(world)
    scene.create()
    scene.produce(1, b"a")
    scene.stop(3)
    scene.produce(1, b"b", timeout_ms=5_000)
    scene.start(3)
    scene.await_isr(1, 2, 3)
    assert scene.nodes[3].directory.clean
    assert values(scene, 3) == [b"a", b"b"]


def test_page_cache_mode_replicates_alike(world: World) -> None:
    scene = ReplicaScene(world)
    scene.create(synced=False, configs={"flush.messages": "10000"})
    assert scene.produce(1, b"a").error is NO_ERROR
    scene.kill(1)
    scene.fence(1)
    scene.await_role(2, Role.LEADER)
    scene.until(lambda: scene.nodes[2].partition().high_watermark == 1)
    assert scene.consume(2) == [b"a"]
    scene.start(1)
    scene.await_isr(1, 2, 3)


# What clients see across leaders (D4).


def test_d4_no_client_sees_the_watermark_go_back(world: World) -> None:
    scene = ReplicaScene(world)
    scene.create()

    def hide_watermark(_node: int, _request: Message, response: Message) -> None:
        if isinstance(response, FetchResponse):
            for topic in response.responses:
                for partition in topic.partitions:
                    partition.high_watermark = min(partition.high_watermark, 0)

    scene.before_answer = hide_watermark
    assert scene.produce(1, b"a").error is NO_ERROR
    assert scene.list_offset(1, LATEST) == (NO_ERROR, 1)
    cut_off(scene, 3)
    scene.nodes[3].deaf = False
    scene.kill(1)
    scene.fence(1)
    scene.await_role(2, Role.LEADER)
    # 2 was never told of watermark 1 and cannot raise its own before 3 has fetched from it.
    assert scene.nodes[2].partition().high_watermark == 0
    assert scene.list_offset(2, LATEST) == (ErrorCode.OFFSET_NOT_AVAILABLE, -1)
    assert scene.list_offset(2, LATEST, version=4) == (ErrorCode.LEADER_NOT_AVAILABLE, -1)
    data = scene.fetch(2, 1)
    assert data.error_code == NO_ERROR
    assert not data.records
    reconnect(scene, 3)
    scene.until(lambda: scene.nodes[2].partition().high_watermark == 1)
    assert scene.list_offset(2, LATEST) == (NO_ERROR, 1)


# Who waits for an answer (D5).


def test_d5_produce_that_waits_through_a_leader_change_is_told_that_nothing_is_known(
    world: World,
) -> None:
    scene = ReplicaScene(world)
    scene.create()
    cut_off(scene, 2)
    cut_off(scene, 3)
    waiting = scene.begin(1, scene.produce_to(1, b"a", timeout_ms=60_000))
    scene.settle(0.1)
    assert not waiting.done()
    scene.fence(1)
    scene.until(waiting.done)
    assert waiting.result().error is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_d5_produce_that_waits_while_the_isr_shrinks_times_out(world: World) -> None:
    scene = ReplicaScene(world)
    scene.create()
    cut_off(scene, 2)
    cut_off(scene, 3)
    waiting = scene.begin(1, scene.produce_to(1, b"a", timeout_ms=500))
    scene.settle(0.1)
    scene.fence(2)
    scene.fence(3)
    scene.until(waiting.done)
    assert waiting.result().error is ErrorCode.REQUEST_TIMED_OUT


def test_d5_a_duplicate_waits_like_the_first_copy_and_gets_its_offset(world: World) -> None:
    scene = ReplicaScene(world)
    scene.create()
    scene.produce(1, b"before")
    cut_off(scene, 2)
    cut_off(scene, 3)
    first = scene.begin(1, scene.produce_to(1, b"a", producer_id=7, sequence=0, timeout_ms=60_000))
    scene.settle(0.05)
    retry = scene.begin(1, scene.produce_to(1, b"a", producer_id=7, sequence=0, timeout_ms=60_000))
    scene.settle(0.05)
    assert not first.done()
    assert not retry.done()
    scene.nodes[2].deaf = scene.nodes[3].deaf = False
    world.network.heal()
    scene.until(lambda: first.done() and retry.done())
    assert first.result() == retry.result() == Answer(NO_ERROR, 1)
    assert values(scene, 1) == [b"before", b"a"]


def test_idempotence_survives_a_leader_change(world: World) -> None:
    scene = ReplicaScene(world)
    scene.create()
    scene.produce(1, b"a", producer_id=7, sequence=0)
    scene.kill(1)
    scene.fence(1)
    scene.await_role(2, Role.LEADER)
    assert scene.produce(2, b"a", producer_id=7, sequence=0) == Answer(NO_ERROR, 0)
    assert scene.produce(2, b"b", producer_id=7, sequence=1) == Answer(NO_ERROR, 1)
    assert values(scene, 2) == [b"a", b"b"]


def test_a_stopping_node_answers_those_who_wait(world: World) -> None:
    scene = ReplicaScene(world)
    scene.create()
    cut_off(scene, 2)
    cut_off(scene, 3)
    waiting = scene.begin(1, scene.produce_to(1, b"a", timeout_ms=60_000))
    long_poll = scene.begin(1, scene.fetch_from(1, 0, max_wait_ms=60_000))
    scene.settle(0.1)

    async def until_answered() -> None:
        await asyncio.wait([waiting, long_poll])

    answered = scene.begin(1, until_answered())
    scene.on(1, scene.nodes[1].stopping.set)  # type: ignore[union-attr]
    scene.until(answered.done, within=2.0)
    assert waiting.result().error is ErrorCode.NOT_LEADER_OR_FOLLOWER


# Topics.


def test_a_topic_created_again_under_its_name_begins_empty(world: World) -> None:
    scene = ReplicaScene(world)
    scene.create()
    scene.produce(1, b"old")
    waiting = scene.begin(1, scene.fetch_from(1, 1, max_wait_ms=60_000))
    scene.settle(0.05)
    delete_topic(scene)
    scene.until(waiting.done)
    scene.create()
    scene.await_role(1, Role.LEADER)
    assert scene.produce(1, b"new") == Answer(NO_ERROR, 0)
    for node_id in scene.nodes:
        assert values(scene, node_id) == [b"new"]


def test_a_topic_deleted_while_a_node_was_down_is_set_aside_there(world: World) -> None:
    scene = ReplicaScene(world)
    scene.create()
    scene.produce(1, b"old")
    scene.kill(3)
    scene.fence(3)
    delete_topic(scene)
    scene.start(3)
    scene.settle()
    assert scene.nodes[3].directory.stored_logs() == []


def delete_topic(scene: ReplicaScene) -> None:
    topic_id = scene.metadata.image.topics["t"].topic_id
    scene.metadata.must(DeleteTopics(scene.metadata.epoch, (topic_id,), None))
    scene.publish()
    scene.settle()


def test_a_log_that_a_full_disk_refused_opens_when_there_is_room(world: World) -> None:
    """Found in simulation: the replica stayed away, its leader without a log, until a restart."""
    scene = ReplicaScene(world)

    def refuse(call: DiskCall) -> None:
        if call.kind == "make_dirs" and "/t" in call.path:
            raise OSError(errno.ENOSPC, "no space left on device")

    drive = scene.nodes[1].host.drive
    drive.on_call = refuse
    scene.create()
    scene.until(lambda: bool(scene.nodes[1].replicas.failed_logs()))
    drive.on_call = None
    scene.until(lambda: not scene.nodes[1].replicas.failed_logs())
    scene.await_role(1, Role.LEADER)
    assert scene.produce(1, b"a") == Answer(NO_ERROR, 0)


def test_a_setting_that_changes_while_a_log_is_made_holds_for_it(world: World) -> None:
    scene = ReplicaScene(world)
    drive = scene.nodes[1].host.drive

    def change(call: DiskCall) -> None:
        if call.kind == "make_dirs" and "/t-1" in call.path:
            drive.on_call = None
            settings = TopicConfigs(topic_id("t"), {}, {"segment.bytes": "12345"}, 2, False)
            scene.metadata.must(AlterConfigs(scene.metadata.epoch, (settings,), ()))
            scene.publish()

    drive.on_call = change
    scene.create(partitions=2)
    for number in (0, 1):
        assert scene.nodes[1].partition(number).log.config.segment_bytes == 12345


def test_a_follower_whose_disk_is_full_asks_less_and_less_often(world: World) -> None:
    """What it is sent is thrown away again, and each time it says so in its log."""
    scene = ReplicaScene(world)
    scene.create()
    scene.produce(1, b"a")
    drive = scene.nodes[3].host.drive
    drive.capacity_bytes = drive.used_bytes()
    scene.produce(1, bytes(1000), acks=1)
    asked: list[float] = []

    def count(node_id: int, request: Message, response: Message) -> None:
        state = request.replica_state if isinstance(request, FetchRequest) else None
        if state is not None and state.replica_id == 3:
            asked.append(world.now)

    scene.before_answer = count
    world.run(20)
    assert values(scene, 3) == [b"a"]
    late = [when for when in asked if when > asked[0] + 10]
    assert 5 <= len(late) <= 40  # Ten seconds; the longest pause is a second, the shortest half.
    drive.capacity_bytes = UNLIMITED
    scene.until(lambda: values(scene, 3) == [b"a", bytes(1000)])
