"""librdkafka through its Python binding."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import (
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
)

from logboat.testing import LocalCluster

TIMEOUT_S = 60.0


PROTOCOLS = pytest.mark.parametrize("protocol", ["classic", "consumer"])
"""Of groups: the classic one, and KIP-848's."""


def produce(
    cluster: LocalCluster, topic: str, values: list[bytes], **config: Any
) -> dict[tuple[int, int], bytes]:
    """Produce all and return the value by (partition, offset) as acknowledged."""
    acknowledged: dict[tuple[int, int], bytes] = {}

    def on_delivery(error: KafkaError | None, message: Message) -> None:
        assert error is None, error
        partition, offset, value = message.partition(), message.offset(), message.value()
        assert partition is not None
        assert offset is not None
        assert value is not None
        acknowledged[partition, offset] = value

    settings = {"bootstrap.servers": cluster.bootstrap_servers, "acks": "all", **config}
    producer = Producer(settings)
    for number, value in enumerate(values):
        producer.produce(topic, value, key=str(number).encode(), on_delivery=on_delivery)
    assert producer.flush(TIMEOUT_S) == 0
    return acknowledged


def consume(consumer: Consumer, count: int) -> dict[tuple[int, int], bytes]:
    read: dict[tuple[int, int], bytes] = {}
    while len(read) < count:
        message = consumer.poll(TIMEOUT_S)
        assert message is not None, f"{len(read)} of {count} records in {TIMEOUT_S} s"
        assert message.error() is None, message.error()
        partition, offset, value = message.partition(), message.offset(), message.value()
        assert partition is not None
        assert offset is not None
        assert value is not None
        read[partition, offset] = value
    return read


def group_consumer(cluster: LocalCluster, group: str, **config: Any) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **config,
        }
    )


@pytest.mark.processes
@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_codec_is_read_back_as_acknowledged(
    cluster: LocalCluster, fresh: Callable[[str], str], codec: str
) -> None:
    topic = fresh("codec")
    values = [f"value {number} ".encode() * 20 for number in range(500)]
    config = {"compression.type": codec, "enable.idempotence": True}
    acknowledged = produce(cluster, topic, values, **config)
    assert len(acknowledged) == len(values)
    consumer = group_consumer(cluster, fresh("g"))
    consumer.subscribe([topic])
    try:
        assert consume(consumer, len(values)) == acknowledged
    finally:
        consumer.close()


@pytest.mark.processes
@PROTOCOLS
def test_a_group_resumes_from_its_commit(
    cluster: LocalCluster, fresh: Callable[[str], str], protocol: str
) -> None:
    topic, group = fresh("resume"), fresh("g")
    produce(cluster, topic, [b"first"])
    config = {"group.protocol": protocol}
    consumer = group_consumer(cluster, group, **config)
    consumer.subscribe([topic])
    assert list(consume(consumer, 1).values()) == [b"first"]
    consumer.commit(asynchronous=False)
    consumer.close()
    produce(cluster, topic, [b"second"])
    again = group_consumer(cluster, group, **config)
    again.subscribe([topic])
    try:
        assert list(consume(again, 1).values()) == [b"second"]
    finally:
        again.close()


@pytest.mark.processes
@PROTOCOLS
def test_two_members_share_the_partitions(
    cluster: LocalCluster, fresh: Callable[[str], str], protocol: str
) -> None:
    topic, group = fresh("share"), fresh("g")
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    created = admin.create_topics([NewTopic(topic, num_partitions=4, replication_factor=3)])
    created[topic].result(TIMEOUT_S)
    config = {"group.protocol": protocol}
    members = [group_consumer(cluster, group, **config) for _ in range(2)]
    for member in members:
        member.subscribe([topic])
    try:
        owned: list[list[TopicPartition]] = [[], []]
        for _ in range(600):
            for member in members:
                member.poll(0.05)
            owned = [member.assignment() for member in members]
            if [len(each) for each in owned] == [2, 2]:
                break
        partitions = sorted(p.partition for each in owned for p in each)
        assert partitions == [0, 1, 2, 3]
    finally:
        for member in members:
            member.close()


@pytest.mark.processes
def test_a_group_moves_to_the_new_protocol_and_back_while_it_reads(
    cluster: LocalCluster, fresh: Callable[[str], str]
) -> None:
    """KIP-848's online migration: members of both protocols share the partitions meanwhile."""
    topic, group = fresh("migrate"), fresh("g")
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    created = admin.create_topics([NewTopic(topic, num_partitions=4, replication_factor=3)])
    created[topic].result(TIMEOUT_S)

    def settle(members: dict[str, Consumer], sizes: dict[str, int]) -> str:
        owned: dict[str, int] = {}
        for _ in range(1200):
            for member in members.values():
                member.poll(0.02)
            owned = {name: len(member.assignment()) for name, member in members.items()}
            if owned == sizes:
                break
        assert owned == sizes
        listed = admin.list_consumer_groups().result(TIMEOUT_S).valid
        return next(str(g.type.name) for g in listed if g.group_id == group)

    strategy = {"partition.assignment.strategy": "cooperative-sticky"}
    old = group_consumer(cluster, group, **strategy)
    old.subscribe([topic])
    assert settle({"old": old}, {"old": 4}) == "CLASSIC"
    new = group_consumer(cluster, group, **{"group.protocol": "consumer"})
    new.subscribe([f"^{topic}.*"])
    assert settle({"old": old, "new": new}, {"old": 2, "new": 2}) == "CONSUMER"
    new.close()
    assert settle({"old": old}, {"old": 4}) == "CLASSIC"
    old.close()


@pytest.mark.processes
def test_the_admin_client_sees_the_cluster(
    cluster: LocalCluster, fresh: Callable[[str], str]
) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    topic = fresh("admin")
    admin.create_topics([NewTopic(topic, num_partitions=2)])[topic].result(TIMEOUT_S)
    metadata = admin.list_topics(timeout=TIMEOUT_S)
    assert len(metadata.brokers) == 3
    assert {len(p.isrs) for p in metadata.topics[topic].partitions.values()} == {3}
    admin.delete_topics([topic])[topic].result(TIMEOUT_S)
    assert topic not in admin.list_topics(timeout=TIMEOUT_S).topics


@pytest.mark.processes
def test_what_groups_inherit_is_altered_while_a_broker_runs(cluster: LocalCluster) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    interval = "group.consumer.assignment.interval.ms"
    broker = str(cluster.node_ids[0])

    def alter(operation: AlterConfigOpType, value: str | None) -> None:
        entry = ConfigEntry(interval, value, incremental_operation=operation)
        wanted = ConfigResource("broker", broker, incremental_configs=[entry])
        admin.incremental_alter_configs([wanted])[wanted].result(TIMEOUT_S)

    def described() -> ConfigEntry:
        """Altering is answered once the controller has done it; this broker hears of it then."""
        resource = ConfigResource("broker", broker)
        rows: dict[str, ConfigEntry] = admin.describe_configs([resource])[resource].result(
            TIMEOUT_S
        )
        return rows[interval]

    def becomes(value: str) -> bool:
        deadline = time.monotonic() + TIMEOUT_S
        while described().value != value and time.monotonic() < deadline:
            time.sleep(0.05)
        return bool(described().value == value)

    assert (described().value, described().is_read_only) == ("1000", False)
    alter(AlterConfigOpType.SET, "500")
    assert becomes("500")
    with pytest.raises(KafkaException, match="must be less than or equal to") as refused:
        alter(AlterConfigOpType.SET, "15001")
    assert refused.value.args[0].code() == KafkaError.INVALID_CONFIG
    alter(AlterConfigOpType.DELETE, None)
    assert becomes("1000")
