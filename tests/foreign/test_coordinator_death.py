"""A group goes on from its last commit when its coordinator is killed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import pytest
from aiokafka import AIOKafkaConsumer
from confluent_kafka import Consumer, Producer, TopicPartition
from kafka import KafkaConsumer

from logboat.groups import OFFSETS_TOPIC, partition_for
from logboat.testing import LocalCluster

pytestmark = pytest.mark.usefixtures("foreign_leaks")
"""kafka-python's; collected before another test is blamed for them."""

TIMEOUT_S = 60.0
OFFSETS_PARTITIONS = 4
"""What `LocalCluster` sets."""


@pytest.fixture(scope="module")
def one_cluster() -> Iterator[LocalCluster]:
    with LocalCluster(nodes=3) as running:
        yield running


@pytest.fixture
def cluster(one_cluster: LocalCluster) -> Iterator[LocalCluster]:
    """Whole again after each test."""
    yield one_cluster
    for node_id in one_cluster.node_ids:
        if not one_cluster.is_running(node_id):
            one_cluster.start(node_id)
    one_cluster.wait_in_sync(OFFSETS_TOPIC)


def produce(cluster: LocalCluster, topic: str, value: bytes) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "acks": "all"})
    producer.produce(topic, value, partition=0)
    assert producer.flush(TIMEOUT_S) == 0


def kill_coordinator(cluster: LocalCluster, group: str) -> None:
    partition = partition_for(group, OFFSETS_PARTITIONS)
    cluster.kill(cluster.wait_leader(OFFSETS_TOPIC, partition))


def committed(cluster: LocalCluster, topic: str, group: str) -> int:
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": group})
    try:
        (found,) = consumer.committed([TopicPartition(topic, 0)], timeout=TIMEOUT_S)
        offset: int = found.offset
        return offset
    finally:
        consumer.close()


@pytest.mark.processes
def test_confluent_kafka_goes_on(cluster: LocalCluster, fresh: Callable[[str], str]) -> None:
    topic, group = fresh("t"), fresh("g")
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )

    def read() -> bytes | None:
        for _ in range(int(TIMEOUT_S)):
            message = consumer.poll(1.0)
            # Errors tell of the dead node; the client mends them by itself.
            if message is not None and message.error() is None:
                value: bytes | None = message.value()
                return value
        return None

    produce(cluster, topic, b"before")
    consumer.subscribe([topic])
    assert read() == b"before"
    consumer.commit(asynchronous=False)
    kill_coordinator(cluster, group)
    produce(cluster, topic, b"after")
    assert read() == b"after"
    consumer.commit(asynchronous=False)
    consumer.close()
    assert committed(cluster, topic, group) == 2


@pytest.mark.processes
def test_kafka_python_goes_on(cluster: LocalCluster, fresh: Callable[[str], str]) -> None:
    topic, group = fresh("t"), fresh("g")
    produce(cluster, topic, b"before")
    consumer = KafkaConsumer(
        topic,
        bootstrap_servers=cluster.bootstrap_servers,
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        consumer_timeout_ms=int(TIMEOUT_S * 1000),
    )
    assert next(consumer).value == b"before"
    consumer.commit()
    kill_coordinator(cluster, group)
    produce(cluster, topic, b"after")
    assert next(consumer).value == b"after"
    consumer.commit()
    consumer.close()
    assert committed(cluster, topic, group) == 2


@pytest.mark.processes
async def test_aiokafka_goes_on(cluster: LocalCluster, fresh: Callable[[str], str]) -> None:
    topic, group = fresh("t"), fresh("g")
    await asyncio.to_thread(produce, cluster, topic, b"before")
    consumer = AIOKafkaConsumer(
        topic,
        bootstrap_servers=cluster.bootstrap_servers,
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    await consumer.start()
    try:
        async with asyncio.timeout(2 * TIMEOUT_S):
            assert (await consumer.getone()).value == b"before"
            await consumer.commit()
            kill_coordinator(cluster, group)
            await asyncio.to_thread(produce, cluster, topic, b"after")
            assert (await consumer.getone()).value == b"after"
            await consumer.commit()
    finally:
        await consumer.stop()
    assert await asyncio.to_thread(committed, cluster, topic, group) == 2
