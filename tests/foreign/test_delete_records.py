"""DeleteRecords as other people's administrators ask for it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from confluent_kafka import KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec
from kafka import KafkaAdminClient
from kafka import TopicPartition as PythonTopicPartition

from logboat.testing import LocalCluster

pytestmark = pytest.mark.usefixtures("foreign_leaks")
"""kafka-python's; collected before another test is blamed for them."""

TIMEOUT_S = 60.0


@pytest.fixture
def admin(cluster: LocalCluster) -> AdminClient:
    return AdminClient({"bootstrap.servers": cluster.bootstrap_servers})


@pytest.fixture
def topic(cluster: LocalCluster, admin: AdminClient, fresh: Callable[[str], str]) -> str:
    """Two partitions on three nodes, ten records in each."""
    name = fresh("deleted")
    admin.create_topics([NewTopic(name, 2, 3)])[name].result(TIMEOUT_S)
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "acks": "all"})
    for partition in (0, 1):
        for number in range(10):
            producer.produce(name, b"%d" % number, partition=partition)
    assert producer.flush(TIMEOUT_S) == 0
    return name


def earliest(admin: AdminClient, topic: str, partition: int) -> int:
    key = TopicPartition(topic, partition)
    found = admin.list_offsets({key: OffsetSpec.earliest()})[key].result(TIMEOUT_S)
    return int(found.offset)


@pytest.mark.processes
@pytest.mark.foreign
def test_confluent_kafka_deletes_records(admin: AdminClient, topic: str) -> None:
    asked = [TopicPartition(topic, 0, 4), TopicPartition(topic, 1, -1)]
    answers = {
        key.partition: future.result(TIMEOUT_S).low_watermark
        for key, future in admin.delete_records(asked).items()
    }
    assert answers == {0: 4, 1: 10}
    assert [earliest(admin, topic, partition) for partition in (0, 1)] == [4, 10]
    ((_, future),) = admin.delete_records([TopicPartition(topic, 0, 11)]).items()
    with pytest.raises(KafkaException, match="OFFSET_OUT_OF_RANGE"):
        future.result(TIMEOUT_S)


@pytest.mark.processes
@pytest.mark.foreign
def test_kafka_python_deletes_records(
    cluster: LocalCluster, admin: AdminClient, topic: str
) -> None:
    theirs = KafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers)
    try:
        theirs.delete_records({PythonTopicPartition(topic, 0): 7})
    finally:
        theirs.close()
    assert [earliest(admin, topic, partition) for partition in (0, 1)] == [7, 0]
