"""Batches sent behind one that was refused: none of them takes its place.

An idempotent producer has up to five on their way. Each test refuses the first for a reason that
has passed by the time of the second.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logboat.jepsen_style.simulation import World
from logboat.partitions import Role
from logboat.partitions.leader import LeaderState
from logboat.partitions.partition import Partition
from logboat.partitions.refused_batches import BEHIND, MAX_REMEMBERED, RefusedBatches
from logboat.partitions.roles import Refused
from logboat.partitions.storage.producer_states import SEQUENCE_LIMIT, WINDOW
from logboat.wire import ErrorCode
from logboat.wire.messages.produce import ProduceRequest, ProduceResponse
from tests.partitions.replication.replica_scene import (
    NO_ERROR,
    TOPIC,
    ReplicaScene,
    batch,
)

PID = 7
NOT_LEADER = ErrorCode.NOT_LEADER_OR_FOLLOWER
TOO_FEW = ErrorCode.NOT_ENOUGH_REPLICAS
OUT_OF_ORDER = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


@pytest.fixture
def world() -> Iterator[World]:
    with World(seed=5) as world:
        yield world


@pytest.fixture
def scene(world: World) -> ReplicaScene:
    """Node 1 leads, node 2 follows, and both are wanted."""
    scene = ReplicaScene(world, nodes=2)
    scene.create(1, 2)
    scene.await_role(1, Role.LEADER)
    return scene


def send(scene: ReplicaScene, sequence: int, *, node_id: int = 1, pid: int = PID) -> ErrorCode:
    return scene.produce(
        node_id, b"%d-%d" % (pid, sequence), producer_id=pid, sequence=sequence
    ).error


def alone(scene: ReplicaScene) -> None:
    """Node 1 has no follower in sync."""
    scene.fence(2)
    scene.until(lambda: partition(scene).leader is not None and scene.image().isr == (1,))
    scene.settle(0.01)


def together(scene: ReplicaScene) -> None:
    scene.unfence(2)
    scene.await_isr(1, 2)


def lead(scene: ReplicaScene, node_id: int) -> None:
    """The fenced other one comes back as a follower."""
    scene.publish()
    scene.await_role(node_id, Role.LEADER)
    scene.unfence(3 - node_id)
    scene.await_isr(1, 2)


def partition(scene: ReplicaScene, node_id: int = 1) -> Partition:
    return scene.nodes[node_id].partition()


def values(scene: ReplicaScene) -> list[bytes]:
    return [value for _, _, value in scene.nodes[1].log()]


def test_a_new_producers_second_batch_does_not_take_the_place_of_its_first(
    scene: ReplicaScene,
) -> None:
    alone(scene)
    assert send(scene, 0) == TOO_FEW
    together(scene)
    assert [send(scene, sequence) for sequence in (1, 2, 3)] == [TOO_FEW] * 3
    assert values(scene) == []
    assert [send(scene, sequence) for sequence in (0, 1, 2, 3)] == [NO_ERROR] * 4
    assert values(scene) == [b"7-0", b"7-1", b"7-2", b"7-3"]


def test_a_known_producer_is_told_what_its_first_was_told_not_that_it_is_out_of_order(
    scene: ReplicaScene,
) -> None:
    assert send(scene, 0) == NO_ERROR
    alone(scene)
    assert send(scene, 1) == TOO_FEW
    together(scene)
    assert [send(scene, sequence) for sequence in (2, 3, 1, 2, 3)] == [
        TOO_FEW,
        TOO_FEW,
        NO_ERROR,
        NO_ERROR,
        NO_ERROR,
    ]


def test_a_leader_that_learns_of_its_election_between_two_batches_takes_neither(
    scene: ReplicaScene,
) -> None:
    assert send(scene, 0) == NO_ERROR
    scene.nodes[2].deaf = True
    scene.fence(1)
    scene.await_role(1, Role.FOLLOWER)
    assert send(scene, 1, node_id=2) == NOT_LEADER
    scene.nodes[2].deaf = False
    lead(scene, 2)
    assert send(scene, 2, node_id=2) == NOT_LEADER
    assert [send(scene, sequence, node_id=2) for sequence in (1, 2)] == [NO_ERROR] * 2


def test_the_first_may_have_been_for_a_topic_that_was_not_known_yet(world: World) -> None:
    scene = ReplicaScene(world, nodes=2)
    scene.nodes[1].deaf = True
    scene.create(1, 2)
    assert send(scene, 0) == ErrorCode.UNKNOWN_TOPIC_ID
    scene.nodes[1].deaf = False
    scene.publish()
    scene.await_role(1, Role.LEADER)
    scene.settle()
    assert send(scene, 1) == ErrorCode.UNKNOWN_TOPIC_ID
    assert [send(scene, sequence) for sequence in (0, 1)] == [NO_ERROR] * 2


def test_what_the_first_did_through_another_leader_lets_the_others_pass(
    scene: ReplicaScene,
) -> None:
    assert send(scene, 0) == NO_ERROR
    assert send(scene, 1, node_id=2) == NOT_LEADER
    assert send(scene, 1) == NO_ERROR
    scene.fence(1)
    lead(scene, 2)
    assert send(scene, 2, node_id=2) == NO_ERROR


def test_after_as_many_as_can_have_been_on_their_way_the_log_alone_decides(
    scene: ReplicaScene,
) -> None:
    assert send(scene, 0) == NO_ERROR
    alone(scene)
    assert send(scene, 1) == TOO_FEW
    together(scene)
    behind = [send(scene, sequence) for sequence in (2, 3, 4, 5) * 2]
    assert behind == [TOO_FEW] * BEHIND, "on a connection that was given up, and on the next"
    assert send(scene, 2) == OUT_OF_ORDER


def test_other_producers_and_plain_batches_pass(scene: ReplicaScene) -> None:
    alone(scene)
    assert send(scene, 0) == TOO_FEW
    together(scene)
    assert send(scene, 1, pid=PID + 1) == NO_ERROR
    assert scene.produce(1, b"plain").error == NO_ERROR


def test_a_batch_that_will_not_come_again_holds_nobody_back() -> None:
    refused = RefusedBatches()
    records = batch(b"x", producer_id=PID, sequence=0)
    refused.note((TOPIC, 0), records, ErrorCode.MESSAGE_TOO_LARGE)
    refused.note((TOPIC, 0), batch(b"plain"), NOT_LEADER)
    refused.note((TOPIC, 0), records[:20], NOT_LEADER)
    assert not refused


def test_a_batch_that_waits_for_the_long_check_of_one_that_is_refused_then_is_refused_too(
    scene: ReplicaScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    long_one = batch(*[b"x" * 100] * 2_000, producer_id=PID, sequence=0)
    assert partition(scene).log.takes_long_to_check(long_one)
    require, reasons = partition(scene).require_appendable, [TOO_FEW]

    def refuse_once(acks: int) -> LeaderState:
        if reasons:
            raise Refused(reasons.pop())
        return require(acks)

    async def both() -> list[ErrorCode]:
        produce = scene.nodes[1].replicas.produce
        second = batch(b"y", producer_id=PID, sequence=2_000)
        answers = (produce(request(scene, records), 13) for records in (long_one, second))
        return [error(answer) for answer in await asyncio.gather(*answers)]

    monkeypatch.setattr(partition(scene), "require_appendable", refuse_once)
    assert scene.call(1, both()) == [TOO_FEW, TOO_FEW]
    assert scene.call(1, both()) == [NO_ERROR, NO_ERROR]


def request(scene: ReplicaScene, records: bytes) -> ProduceRequest:
    return ProduceRequest(
        acks=-1,
        timeout_ms=1_000,
        topic_data=[
            ProduceRequest.TopicProduceData(
                topic_id=scene.metadata.image.topics[TOPIC].topic_id,
                partition_data=[ProduceRequest.PartitionProduceData(index=0, records=records)],
            )
        ],
    )


def error(response: ProduceResponse) -> ErrorCode:
    return ErrorCode(response.responses[0].partition_responses[0].error_code)


def test_the_table_is_bounded_and_forgets_the_oldest(scene: ReplicaScene) -> None:
    refused = RefusedBatches()
    for pid in range(MAX_REMEMBERED + 10):
        refused.note((TOPIC, 0), batch(b"x", producer_id=pid, sequence=0), NOT_LEADER)
    assert len(refused) == MAX_REMEMBERED
    log = partition(scene).log
    refused.require_not_behind((TOPIC, 0), batch(b"y", producer_id=9, sequence=1), log)
    with pytest.raises(Refused):
        refused.require_not_behind((TOPIC, 0), batch(b"y", producer_id=10, sequence=1), log)


@given(
    first=st.integers(0, SEQUENCE_LIMIT - 1),
    sent=st.lists(st.integers(0, WINDOW - 1), max_size=12),
    refusals=st.lists(st.booleans(), max_size=12),
)
def test_whatever_is_refused_and_sent_again_the_log_holds_the_sequences_without_a_gap(
    first: int, sent: list[int], refusals: list[bool]
) -> None:
    """A client with five batches in flight sends all that have no answer yet again, in order, as
    often as one of them was refused; the broker refuses as it likes."""
    refused = RefusedBatches()
    appended: list[int] = []
    whims = iter(refusals)

    def deliver(number: int) -> bool:
        sequence = (first + number) % SEQUENCE_LIMIT
        records = batch(b"x", producer_id=PID, sequence=sequence)
        try:
            if next(whims, False):
                raise Refused(NOT_LEADER)
            if refused:
                refused.require_not_behind((TOPIC, 0), records, Follows(appended, first))  # type: ignore[arg-type]
        except Refused as error:
            refused.note((TOPIC, 0), records, error.error)
            return False
        if appended and number != appended[-1] + 1:
            refused.note((TOPIC, 0), records, OUT_OF_ORDER)
            return False
        appended.append(number)
        return True

    todo = list(range(WINDOW))
    while todo:
        todo = [number for number in todo if not deliver(number)]
    assert appended == list(range(WINDOW))


class Follows:
    """A log that knows the producer once something of it was appended."""

    def __init__(self, appended: list[int], first: int) -> None:
        self._appended = appended
        self._first = first

    def continues(self, header: object) -> bool:
        if not self._appended:
            return False
        expected = (self._first + self._appended[-1] + 1) % SEQUENCE_LIMIT
        return getattr(header, "base_sequence", None) == expected
