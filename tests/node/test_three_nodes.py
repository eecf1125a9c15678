"""Three real nodes: what clients notice when one is stopped, or its process stands still."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from logboat.testing import LocalCluster

pytestmark = pytest.mark.processes


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(nodes=3) as running:
        yield running


@pytest.fixture
def topic(cluster: LocalCluster, request: pytest.FixtureRequest) -> str:
    name = str(request.node.name)
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
    admin.create_topics([NewTopic(name, 1, 3)])[name].result()
    return name


class Load:
    """A producer with acks=all that writes its running number until the block ends."""

    def __init__(self, cluster: LocalCluster, topic: str) -> None:
        self._topic = topic
        self.acknowledged: dict[int, int] = {}
        """Value by offset."""
        self.failures: list[KafkaError] = []
        self._stop = threading.Event()
        self._producer = Producer(
            {
                "bootstrap.servers": cluster.bootstrap_servers,
                "acks": "all",
                "enable.idempotence": True,
                "reconnect.backoff.max.ms": 100,
                # A paused leader keeps its connections: only time tells that it is no more.
                "request.timeout.ms": 1_500,
                "socket.timeout.ms": 2_000,
                "log_level": 0,
            }
        )
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Load:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        assert self._producer.flush(60) == 0

    def wait_for_more(self, count: int = 20) -> None:
        """Until this many further records are acknowledged."""
        wanted = len(self.acknowledged) + count
        deadline = time.monotonic() + 60
        while len(self.acknowledged) < wanted:
            assert time.monotonic() < deadline, "nothing is acknowledged any more"
            time.sleep(0.01)

    def _run(self) -> None:
        number = 0
        while not self._stop.is_set():
            value = str(number)
            self._producer.produce(self._topic, value, partition=0, on_delivery=self._delivered)
            number += 1
            self._producer.poll(0.005)

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.failures.append(error)
            return
        offset, value = message.offset(), message.value()
        assert offset is not None
        assert value is not None
        self.acknowledged[offset] = int(value)


def read_back(cluster: LocalCluster, topic: str) -> dict[int, int]:
    """Value by offset, up to the high watermark."""
    consumer = Consumer(
        {"bootstrap.servers": cluster.bootstrap_servers, "group.id": "g", "log_level": 0}
    )
    partition = TopicPartition(topic, 0, 0)
    _, high_watermark = consumer.get_watermark_offsets(partition, timeout=60)
    consumer.assign([partition])
    found: dict[int, int] = {}
    deadline = time.monotonic() + 60
    while len(found) < high_watermark:
        assert time.monotonic() < deadline, f"{len(found)} of {high_watermark} records read"
        for message in consumer.consume(1_000, 0.5):
            assert message.error() is None
            found[message.offset()] = int(message.value())
    consumer.close()
    return found


def test_every_node_is_restarted_in_turn_and_nothing_is_lost_or_twice(
    cluster: LocalCluster, topic: str
) -> None:
    with Load(cluster, topic) as load:
        for node_id in cluster.node_ids:
            load.wait_for_more()
            cluster.stop(node_id)
            load.wait_for_more()
            cluster.start(node_id)
            cluster.wait_in_sync(topic)
    assert load.failures == []
    assert read_back(cluster, topic) == load.acknowledged
    assert sorted(load.acknowledged.values()) == list(range(len(load.acknowledged)))


def test_a_controller_that_stands_still_is_replaced_and_harms_nobody_when_it_goes_on(
    cluster: LocalCluster, topic: str
) -> None:
    def controller(node_id: int) -> int:
        answer = cluster.get("/api/v1/cluster", node_id=node_id)
        assert answer is not None
        return int(answer.body["controller_id"])

    paused = controller(1)
    observer = next(node_id for node_id in cluster.node_ids if node_id != paused)
    with Load(cluster, topic) as load:
        load.wait_for_more()
        cluster.pause(paused)
        cluster.wait_until(
            lambda: "the same" if controller(observer) == paused else None, "another controller"
        )
        load.wait_for_more()
        cluster.resume(paused)
        cluster.wait_in_sync(topic)
        load.wait_for_more()
    assert load.failures == []
    found = read_back(cluster, topic)
    assert found == load.acknowledged
