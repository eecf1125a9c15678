"""RULES F1 in produce: looking into a large batch, or compressing it anew, does not hold the loop,
and the order in which a producer's batches came is the order in the log."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from logboat.jepsen_style.simulation import World
from logboat.partitions.storage import (
    CompressionType,
    LeaderBatch,
    LogConfig,
    PartitionLog,
    RecordsRejected,
)
from logboat.partitions.storage.batch_contents import RECORDS_A_STEP
from logboat.partitions.storage.header_trust import HeaderTrust
from logboat.partitions.storage.leader_batch import (
    LONG_RECORDS,
    check_batch,
    check_batch_beside_the_loop,
)
from logboat.wire import ErrorCode
from logboat.wire.compression import Compression
from logboat.wire.messages.produce import ProduceRequest, ProduceResponse
from logboat.wire.records import Record, crc_of, encode_batch
from tests.partitions.replication.replica_scene import TOPIC, ReplicaScene
from tests.partitions.storage.log_scene import NOW_MS, new_disk, open_log

COMPRESSED = {"compression.type": "zstd"}


@pytest.fixture(params=range(4))
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    """The seed decides how long each piece of work beside the loop takes."""
    with World(seed=request.param) as world:
        yield world


def data(sequence: int, *values: bytes, pid: int = 5) -> bytes:
    return bytes(
        encode_batch(
            [Record(key=b"k", value=value, timestamp=1) for value in values or (b"%d" % sequence,)],
            producer_id=pid,
            producer_epoch=0 if pid >= 0 else -1,
            base_sequence=sequence if pid >= 0 else -1,
        )
    )


def broken(batch: bytes) -> bytes:
    return batch[:-1] + bytes([batch[-1] ^ 1])


async def send(
    scene: ReplicaScene, records: bytes, *, acks: int = -1, timeout_ms: int = 5000
) -> ErrorCode:
    request = ProduceRequest(
        acks=acks,
        timeout_ms=timeout_ms,
        topic_data=[
            ProduceRequest.TopicProduceData(
                topic_id=scene.metadata.image.topics[TOPIC].topic_id,
                partition_data=[ProduceRequest.PartitionProduceData(index=0, records=records)],
            )
        ],
    )
    response: ProduceResponse = await scene.nodes[1].replicas.produce(request, 13)
    return ErrorCode(response.responses[0].partition_responses[0].error_code)


def held(scene: ReplicaScene) -> list[bytes]:
    return [value for _, _, value in scene.nodes[1].log()]


# Order.


@pytest.mark.parametrize("pid", [5, -1], ids=["idempotent", "without an id"])
def test_f1_batches_that_are_compressed_anew_keep_their_order(world: World, pid: int) -> None:
    """Five requests in flight, as a producer has them; the work on each takes its own time."""
    scene = ReplicaScene(world)
    scene.create(configs=COMPRESSED)
    tasks = [scene.begin(1, send(scene, data(n, pid=pid))) for n in range(5)]
    scene.until(lambda: all(task.done() for task in tasks))
    assert [task.result() for task in tasks] == [ErrorCode.NONE] * 5
    assert held(scene) == [b"0", b"1", b"2", b"3", b"4"]


def test_f1_a_batch_that_needs_no_work_stays_behind_one_that_does(world: World) -> None:
    scene = ReplicaScene(world)
    scene.create(configs=COMPRESSED)
    ready = bytes(
        encode_batch(
            [Record(value=b"1", timestamp=1)],
            compression=Compression.ZSTD,
            producer_id=5,
            producer_epoch=0,
            base_sequence=1,
        )
    )
    first = scene.begin(1, send(scene, data(0)))
    second = scene.begin(1, send(scene, ready))
    scene.until(lambda: first.done() and second.done())
    assert (first.result(), second.result()) == (ErrorCode.NONE, ErrorCode.NONE)
    assert held(scene) == [b"0", b"1"]


def test_f1_one_that_is_refused_lets_nobody_pass_those_before_it(world: World) -> None:
    scene = ReplicaScene(world)
    scene.create(configs=COMPRESSED)
    tasks = [
        scene.begin(1, send(scene, records))
        for records in (data(0, pid=-1), broken(data(0, pid=-1)), data(2, pid=-1))
    ]
    scene.until(lambda: all(task.done() for task in tasks))
    assert [task.result() for task in tasks] == [
        ErrorCode.NONE,
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.NONE,
    ]
    assert held(scene) == [b"0", b"2"]


def test_f1_a_client_that_waits_for_nothing_loses_nothing(world: World) -> None:
    """acks=0 often comes with a timeout of 0."""
    scene = ReplicaScene(world)
    scene.create(configs=COMPRESSED)
    tasks = [scene.begin(1, send(scene, data(n), acks=0, timeout_ms=0)) for n in range(3)]
    scene.until(lambda: all(task.done() for task in tasks))
    assert held(scene) == [b"0", b"1", b"2"]


def test_f1_a_leader_deposed_meanwhile_appends_nothing(world: World) -> None:
    scene = ReplicaScene(world)
    scene.create(configs=COMPRESSED)
    late = scene.begin(1, send(scene, data(0)))
    scene.fence(1)
    scene.until(late.done)
    assert late.result() is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert held(scene) == []


# The loop is free.


class Turns:
    """Counts the turns of the loop while something goes on."""

    def __init__(self) -> None:
        self.count = 0
        self._over = False

    def __enter__(self) -> Turns:
        self._turn()
        return self

    def _turn(self) -> None:
        self.count += 1
        if not self._over:
            asyncio.get_running_loop().call_soon(self._turn)

    def __exit__(self, *_: object) -> None:
        self._over = True


MANY = [Record(key=b"k", value=b"v", timestamp=NOW_MS) for _ in range(20 * RECORDS_A_STEP)]


async def test_f1_many_records_are_looked_at_in_many_turns() -> None:
    for config in (LogConfig(), LogConfig(compact=True), LogConfig(timestamp_before_max_ms=10**9)):
        batch = bytes(encode_batch(MANY))
        trust = HeaderTrust()
        with Turns() as turns:
            found = await check_batch_beside_the_loop(batch, config, now_ms=NOW_MS, trust=trust)
        assert found.data == batch
        assert turns.count >= 20


class Beside:
    """Notes what leaves the loop."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        loop = asyncio.get_running_loop()
        original = loop.run_in_executor

        def noted(executor: object, function: object) -> object:
            self.count += 1
            return original(executor, function)  # type: ignore[arg-type]

        monkeypatch.setattr(loop, "run_in_executor", noted)


@pytest.mark.parametrize("sent", [Compression.NONE, Compression.GZIP])
async def test_f1_the_codecs_work_beside_the_loop(
    monkeypatch: pytest.MonkeyPatch, sent: Compression
) -> None:
    config = LogConfig(compression_type=CompressionType.ZSTD)
    batch = bytes(encode_batch(MANY, compression=sent))
    beside = Beside(monkeypatch)
    found = await check_batch_beside_the_loop(batch, config, now_ms=NOW_MS, trust=HeaderTrust())
    assert beside.count == 1 + (sent is not Compression.NONE)
    at_once = check_batch(batch, config, now_ms=NOW_MS, from_client=True, trust=HeaderTrust())
    assert found == at_once


async def test_f1_what_is_refused_beside_the_loop_is_what_is_refused_at_once() -> None:
    config = LogConfig(compact=True)
    keyless = [*MANY[:LONG_RECORDS], Record(key=None, value=b"v", timestamp=NOW_MS)]
    for compression in Compression:
        torn = bytearray(encode_batch(keyless, compression=compression))
        torn[-1:] = b""
        torn[8:12] = (len(torn) - 12).to_bytes(4, "big")
        torn[17:21] = crc_of(torn).to_bytes(4, "big")
        for batch in (bytes(encode_batch(keyless, compression=compression)), bytes(torn)):
            with pytest.raises(RecordsRejected) as at_once:
                check_batch(batch, config, now_ms=NOW_MS, from_client=True, trust=HeaderTrust())
            with pytest.raises(RecordsRejected) as beside:
                await check_batch_beside_the_loop(batch, config, now_ms=NOW_MS, trust=HeaderTrust())
            assert beside.value.error == at_once.value.error
            assert beside.value.record_errors == at_once.value.record_errors


async def test_f1_which_batches_take_long() -> None:
    few, many = MANY[:10], MANY[: LONG_RECORDS + 1]
    zipped = Compression.ZSTD
    for config, records, compression, long in (
        (LogConfig(), few, Compression.NONE, False),
        (LogConfig(), few, zipped, False),
        (LogConfig(), many, Compression.NONE, True),
        (LogConfig(log_append_time=True), many, Compression.NONE, False),
        (LogConfig(compact=True), few, Compression.NONE, False),
        (LogConfig(compact=True), few, zipped, True),
        (LogConfig(compact=True), many, Compression.NONE, True),
        (LogConfig(compression_type=CompressionType.ZSTD), few, zipped, False),
        (LogConfig(compression_type=CompressionType.GZIP), few, zipped, True),
        (LogConfig(compression_type=CompressionType.UNCOMPRESSED), few, zipped, True),
    ):
        log = await open_log(new_disk(), config)
        batch = encode_batch(records, compression=compression)
        assert log.takes_long_to_check(batch) is long, (config, len(records), compression)
        await log.close()


async def test_f1_a_large_batch_is_not_sent_the_long_way_when_its_header_is_believed() -> None:
    log = await open_log(new_disk())
    batch = bytes(encode_batch(MANY))
    ways = []
    for _ in range(20):
        ways.append(log.takes_long_to_check(batch))
        append_either_way = await log.check(batch) if ways[-1] else batch
        log.append_as_leader(append_either_way, leader_epoch=0, now_ms=NOW_MS)
    assert ways.count(True) == 2
    await log.close()


async def test_log_append_time_is_that_of_the_append_not_of_the_check() -> None:
    config = LogConfig(log_append_time=True, compression_type=CompressionType.ZSTD)
    log: PartitionLog = await open_log(new_disk(), config)
    checked: LeaderBatch = await log.check(bytes(encode_batch(MANY[:2])))
    appended = log.append_as_leader(checked, leader_epoch=0, now_ms=NOW_MS + 7)
    assert appended.log_append_time_ms == NOW_MS + 7
    found = log.offset_of_max_timestamp()
    assert found is not None
    assert found.timestamp_ms == NOW_MS + 7
    await log.close()
