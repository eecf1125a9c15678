"""Room for transactions: what waits before an append, and what readers of committed data see."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from logboat.jepsen_style.simulation import World
from logboat.partitions.partition import Partition
from logboat.wire import ErrorCode
from logboat.wire.messages.describe_producers import DescribeProducersRequest
from logboat.wire.messages.fetch import FetchRequest, FetchResponse
from logboat.wire.messages.list_offsets import ListOffsetsRequest
from logboat.wire.messages.produce import ProduceRequest, ProduceResponse
from logboat.wire.records import (
    BatchHeader,
    Record,
    batches,
    encode_batch,
    encode_end_txn_marker,
)
from tests.partitions.replication.replica_scene import TOPIC, ReplicaScene

PID = 5
OTHER = 6
PartitionData = FetchResponse.FetchableTopicResponse.PartitionData
Leave = asyncio.Future[ErrorCode]


@pytest.fixture
def world() -> Iterator[World]:
    with World(seed=11) as world:
        yield world


def data(pid: int, sequence: int, *, transactional: bool = True) -> bytes:
    return bytes(
        encode_batch(
            [Record(value=b"p%d-%d" % (pid, sequence), timestamp=1)],
            producer_id=pid,
            producer_epoch=0,
            base_sequence=sequence,
            transactional=transactional,
        )
    )


async def send(
    scene: ReplicaScene,
    records: bytes,
    *,
    timeout_ms: int = 5000,
    node_id: int = 1,
    version: int = 13,
) -> ErrorCode:
    request = ProduceRequest(
        acks=-1,
        timeout_ms=timeout_ms,
        topic_data=[
            ProduceRequest.TopicProduceData(
                name=TOPIC,
                topic_id=scene.metadata.image.topics[TOPIC].topic_id,
                partition_data=[ProduceRequest.PartitionProduceData(index=0, records=records)],
            )
        ],
    )
    response: ProduceResponse = await scene.nodes[node_id].replicas.produce(request, version)
    return ErrorCode(response.responses[0].partition_responses[0].error_code)


def end(scene: ReplicaScene, pid: int, *, commit: bool) -> int:
    """A marker, as a coordinator writes it: to all in-sync replicas. Returns its offset."""
    marker = encode_end_txn_marker(
        commit=commit, producer_id=pid, producer_epoch=0, coordinator_epoch=1, timestamp=1
    )

    async def append() -> Any:
        deadline = asyncio.get_running_loop().time() + 5
        return await scene.nodes[1].replicas.append(TOPIC, 0, marker, deadline=deadline)

    outcome = scene.call(1, append())
    assert outcome.error is ErrorCode.NONE
    return int(outcome.base_offset)


async def fetch(
    scene: ReplicaScene, node_id: int, offset: int, *, committed: bool, max_wait_ms: int = 0
) -> PartitionData:
    request = FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        session_id=0,
        session_epoch=-1,
        isolation_level=1 if committed else 0,
        topics=[
            FetchRequest.FetchTopic(
                topic_id=scene.metadata.image.topics[TOPIC].topic_id,
                partitions=[
                    FetchRequest.FetchPartition(
                        partition=0, fetch_offset=offset, partition_max_bytes=1 << 20
                    )
                ],
            )
        ],
    )
    response = await scene.nodes[node_id].replicas.fetch(request, 17, object(), from_replica=False)
    return response.responses[0].partitions[0]


class Coordinator:
    """Asked before every transactional batch; answers when the test says so."""

    def __init__(self, scene: ReplicaScene) -> None:
        self.asked: list[tuple[int, int]] = []
        """(producer id, base sequence)."""
        self.leaves: list[Leave] = []
        scene.nodes[1].replicas.ask_before_append(self.before_append)

    def before_append(self, partition: Partition, header: BatchHeader, version: int) -> Leave:
        assert version in (11, 13)
        self.asked.append((header.producer_id, header.base_sequence))
        leave: Leave = asyncio.get_running_loop().create_future()
        self.leaves.append(leave)
        return leave

    def answer(self, number: int, error: ErrorCode = ErrorCode.NONE) -> None:
        self.leaves[number].set_result(error)


def held(scene: ReplicaScene) -> list[bytes]:
    return [value for _, _, value in scene.nodes[1].log()]


# S17: the order of a producer's batches.


def test_s17_batches_of_a_producer_keep_their_order_while_the_first_waits(world: World) -> None:
    scene = ReplicaScene(world)
    scene.create()
    coordinator = Coordinator(scene)
    first = scene.begin(1, send(scene, data(PID, 0)))
    second = scene.begin(1, send(scene, data(PID, 1)))
    scene.settle()
    assert coordinator.asked == [(PID, 0), (PID, 1)]
    scene.on(1, lambda: coordinator.answer(1))
    scene.settle()
    assert held(scene) == []
    scene.on(1, lambda: coordinator.answer(0))
    scene.until(lambda: first.done() and second.done())
    assert (first.result(), second.result()) == (ErrorCode.NONE, ErrorCode.NONE)
    assert held(scene) == [b"p5-0", b"p5-1"]


def test_s17_others_pass_by(world: World) -> None:
    scene = ReplicaScene(world)
    scene.create()
    coordinator = Coordinator(scene)
    waiting = scene.begin(1, send(scene, data(PID, 0)))
    scene.settle()
    assert scene.call(1, send(scene, data(OTHER, 0, transactional=False))) is ErrorCode.NONE
    assert not waiting.done()
    scene.on(1, lambda: coordinator.answer(0))
    scene.until(waiting.done)
    assert held(scene) == [b"p6-0", b"p5-0"]


def test_s17_a_refused_batch_is_not_appended_and_the_next_one_is_judged_alone(
    world: World,
) -> None:
    scene = ReplicaScene(world)
    scene.create()
    coordinator = Coordinator(scene)
    first = scene.begin(1, send(scene, data(PID, 0)))
    second = scene.begin(1, send(scene, data(PID, 0)))
    scene.settle()
    scene.on(1, lambda: coordinator.answer(0, ErrorCode.INVALID_TXN_STATE))
    scene.on(1, lambda: coordinator.answer(1))
    scene.until(lambda: first.done() and second.done())
    assert (first.result(), second.result()) == (ErrorCode.INVALID_TXN_STATE, ErrorCode.NONE)
    assert held(scene) == [b"p5-0"]


def test_s19_what_the_coordinator_says_is_told_as_the_version_knows_it(world: World) -> None:
    scene = ReplicaScene(world)
    scene.create()
    coordinator = Coordinator(scene)
    for number, (version, said, told) in enumerate(
        (
            (11, ErrorCode.NOT_COORDINATOR, ErrorCode.NOT_ENOUGH_REPLICAS),
            (11, ErrorCode.TRANSACTION_ABORTABLE, ErrorCode.TRANSACTION_ABORTABLE),
            (13, ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.CONCURRENT_TRANSACTIONS),
            (11, ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.NOT_ENOUGH_REPLICAS),
            (13, ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH),
        )
    ):
        asked = scene.begin(1, send(scene, data(PID, 0), version=version))
        scene.settle()
        scene.on(1, lambda number=number, said=said: coordinator.answer(number, said))  # type: ignore[misc]
        scene.until(asked.done)
        assert asked.result() is told
    assert held(scene) == []


def test_s17_a_batch_given_up_at_its_deadline_is_never_appended(world: World) -> None:
    scene = ReplicaScene(world)
    scene.create()
    coordinator = Coordinator(scene)
    late = scene.begin(1, send(scene, data(PID, 0), timeout_ms=100))
    scene.until(late.done)
    assert late.result() is ErrorCode.REQUEST_TIMED_OUT
    scene.on(1, lambda: coordinator.answer(0))
    scene.settle()
    assert held(scene) == []
    after = scene.begin(1, send(scene, data(PID, 0)))
    scene.settle()
    scene.on(1, lambda: coordinator.answer(1))
    scene.until(after.done)
    assert after.result() is ErrorCode.NONE


# S2: the guard, through a produce request.


def test_s2_what_was_allowed_before_a_marker_is_not_appended_behind_it(world: World) -> None:
    scene = ReplicaScene(world)
    scene.create()
    coordinator = Coordinator(scene)
    late = scene.begin(1, send(scene, data(PID, 0), version=11))
    scene.settle()
    end(scene, PID, commit=False)
    scene.on(1, lambda: coordinator.answer(0))
    scene.until(late.done)
    assert late.result() is ErrorCode.INVALID_TXN_STATE
    assert scene.nodes[1].partition().last_stable_offset == 1, "no transaction hangs"


def test_s2_while_a_transaction_is_open_nobody_is_asked_again(world: World) -> None:
    scene = ReplicaScene(world)
    scene.create()
    coordinator = Coordinator(scene)
    first = scene.begin(1, send(scene, data(PID, 0)))
    scene.settle()
    scene.on(1, lambda: coordinator.answer(0))
    scene.until(first.done)
    assert scene.call(1, send(scene, data(PID, 1))) is ErrorCode.NONE
    assert coordinator.asked == [(PID, 0)]
    end(scene, PID, commit=True)
    scene.begin(1, send(scene, data(PID, 2)))
    scene.settle()
    assert coordinator.asked == [(PID, 0), (PID, 2)]


# S9: DescribeProducers.


def described(scene: ReplicaScene, node_id: int) -> list[tuple[int, ...]]:
    """(producer id, epoch, last sequence, coordinator epoch, open since) of each."""
    request = DescribeProducersRequest(
        topics=[DescribeProducersRequest.TopicRequest(name=TOPIC, partition_indexes=[0])]
    )
    response = scene.on(node_id, lambda: scene.nodes[node_id].replicas.describe_producers(request))
    answer = response.topics[0].partitions[0]
    assert answer.error_code == ErrorCode.NONE
    return [
        (
            producer.producer_id,
            producer.producer_epoch,
            producer.last_sequence,
            producer.coordinator_epoch,
            producer.current_txn_start_offset,
        )
        for producer in answer.active_producers
    ]


def test_s9_any_replica_tells_its_producers_and_what_they_have_open(world: World) -> None:
    scene = ReplicaScene(world)
    scene.create()
    assert scene.call(1, send(scene, data(OTHER, 0, transactional=False))) is ErrorCode.NONE
    assert scene.call(1, send(scene, data(PID, 0))) is ErrorCode.NONE
    scene.settle()
    for node_id in (1, 2):
        assert described(scene, node_id) == [(PID, 0, 0, -1, 1), (OTHER, 0, 0, -1, -1)]
    end(scene, PID, commit=True)
    scene.settle()
    for node_id in (1, 2):
        assert described(scene, node_id) == [(PID, 0, 0, 1, -1), (OTHER, 0, 0, -1, -1)]


def test_s9_producers_of_an_unknown_partition_are_not_told(world: World) -> None:
    scene = ReplicaScene(world)
    scene.create()
    request = DescribeProducersRequest(
        topics=[DescribeProducersRequest.TopicRequest(name=TOPIC, partition_indexes=[0, 9])]
    )
    response = scene.on(1, lambda: scene.nodes[1].replicas.describe_producers(request))
    known, unknown = response.topics[0].partitions
    assert (known.error_code, known.active_producers) == (ErrorCode.NONE, [])
    assert unknown.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


# S20: expiry.


def test_s20_a_silent_producer_is_forgotten_unless_its_transaction_is_open(world: World) -> None:
    scene = ReplicaScene(world)
    scene.create()
    assert scene.call(1, send(scene, data(PID, 0))) is ErrorCode.NONE
    assert scene.call(1, send(scene, data(OTHER, 0, transactional=False))) is ErrorCode.NONE
    # Their records bear the year 1970.
    scene.settle(601)
    for node in scene.nodes.values():
        assert list(node.partition().log.producers.entries()) == [PID]


# S5, S8, S9: the last stable offset.


def test_s8_a_reader_of_committed_data_stops_at_the_last_stable_offset(world: World) -> None:
    scene = ReplicaScene(world)
    scene.create()
    scene.produce(1, b"before")
    assert scene.call(1, send(scene, data(PID, 0))) is ErrorCode.NONE
    scene.produce(1, b"after")
    found = scene.call(1, fetch(scene, 1, 0, committed=True))
    assert (found.high_watermark, found.last_stable_offset) == (3, 1)
    assert found.aborted_transactions == []
    assert _next_offset(found) == 1
    found = scene.call(1, fetch(scene, 1, 0, committed=False))
    assert found.aborted_transactions is None
    assert _next_offset(found) == 3


def test_s8_the_aborted_transactions_of_what_was_read_are_listed(world: World) -> None:
    scene = ReplicaScene(world)
    scene.create()
    assert scene.call(1, send(scene, data(PID, 0))) is ErrorCode.NONE
    marker = end(scene, PID, commit=False)
    assert scene.call(1, send(scene, data(PID, 1))) is ErrorCode.NONE
    end(scene, PID, commit=True)
    found = scene.call(1, fetch(scene, 1, 0, committed=True))
    assert _listed(found) == [(PID, 0)]
    assert _listed(scene.call(1, fetch(scene, 1, marker, committed=True))) == [(PID, 0)]
    assert _listed(scene.call(1, fetch(scene, 1, marker + 1, committed=True))) == []


def test_s5_followers_know_the_same_transactions(world: World) -> None:
    scene = ReplicaScene(world)
    scene.create()
    assert scene.call(1, send(scene, data(PID, 0))) is ErrorCode.NONE
    end(scene, PID, commit=False)
    assert scene.call(1, send(scene, data(OTHER, 0))) is ErrorCode.NONE
    scene.until(lambda: all(n.partition().high_watermark == 3 for n in scene.nodes.values()))
    for node_id, node in scene.nodes.items():
        assert node.partition().last_stable_offset == 2
        found = scene.call(node_id, fetch(scene, node_id, 0, committed=True))
        assert (_listed(found), _next_offset(found)) == ([(PID, 0)], 2)


def test_s5_a_waiting_reader_of_committed_data_is_woken_by_the_marker(world: World) -> None:
    scene = ReplicaScene(world)
    scene.create()
    assert scene.call(1, send(scene, data(PID, 0))) is ErrorCode.NONE
    waiting = scene.begin(1, fetch(scene, 1, 0, committed=True, max_wait_ms=30_000))
    scene.produce(1, b"more")
    assert not waiting.done()
    began = world.now
    end(scene, PID, commit=True)
    scene.until(waiting.done)
    assert world.now - began < 0.5
    assert _next_offset(waiting.result()) == 3


def test_s9_list_offsets_answers_the_last_stable_offset_to_readers_of_committed_data(
    world: World,
) -> None:
    scene = ReplicaScene(world)
    scene.create()
    scene.produce(1, b"before")
    assert scene.call(1, send(scene, data(PID, 0))) is ErrorCode.NONE
    assert [_latest(scene, isolation) for isolation in (0, 1)] == [2, 1]


def _latest(scene: ReplicaScene, isolation_level: int) -> int:
    request = ListOffsetsRequest(
        replica_id=-1,
        isolation_level=isolation_level,
        topics=[
            ListOffsetsRequest.ListOffsetsTopic(
                name=TOPIC,
                partitions=[
                    ListOffsetsRequest.ListOffsetsPartition(partition_index=0, timestamp=-1)
                ],
            )
        ],
    )
    answer = scene.on(1, lambda: scene.nodes[1].replicas.list_offsets(request, 7))
    return answer.topics[0].partitions[0].offset


def _listed(found: PartitionData) -> list[tuple[int, int]]:
    assert found.aborted_transactions is not None
    return [(entry.producer_id, entry.first_offset) for entry in found.aborted_transactions]


def _next_offset(found: PartitionData) -> int:
    parts = found.records if isinstance(found.records, list) else [found.records or b""]
    joined = b"".join(bytes(part) for part in parts)
    return max(batch.header.next_offset for batch in batches(joined))
