"""Twenty members over sixty partitions, coming and going while records are produced.

Every record is processed, no partition has two owners at a time, and commits never go back.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, NewTopic

from logboat.testing import LocalCluster

PARTITIONS = 60
MEMBERS = 20
SECONDS = float(os.environ.get("LOGBOAT_CHURN_SECONDS", "12"))
"""A longer run is for `LOGBOAT_CHURN_SECONDS=120 pytest tests/foreign/test_group_churn.py`."""

SETTLE_SECONDS = 60.0
MOST_IN_FLIGHT = 500
"""Records without an acknowledgement yet: the test shall not outrun a busy machine."""

LOST_ITS_PLACE = (
    KafkaError.ILLEGAL_GENERATION,
    KafkaError.REBALANCE_IN_PROGRESS,
    KafkaError.STALE_MEMBER_EPOCH,
    KafkaError.UNKNOWN_MEMBER_ID,
    KafkaError._NO_OFFSET,
)
"""A commit that came too late: whoever has the partition now reads those records again."""

STRATEGIES: dict[str, dict[str, Any]] = {
    "classic": {
        "partition.assignment.strategy": "cooperative-sticky",
        "session.timeout.ms": 10_000,
        "heartbeat.interval.ms": 500,
    },
    "consumer": {"group.protocol": "consumer"},
}


@dataclass
class Watch:
    """What all members together saw."""

    processed: set[bytes] = field(default_factory=set)
    owners: dict[int, str] = field(default_factory=dict)
    clashes: dict[tuple[str, int], str] = field(default_factory=dict)
    """(who owned it, partition) -> who owned it at the same time."""
    steps_back: list[str] = field(default_factory=list)
    committed: dict[int, int] = field(default_factory=dict)

    def taken(self, name: str, partitions: list[TopicPartition]) -> None:
        for partition in (each.partition for each in partitions):
            owner = self.owners.setdefault(partition, name)
            if owner != name:
                self.clashes[owner, partition] = name
                self.owners[partition] = name

    def given_up(self, name: str, partitions: list[TopicPartition]) -> None:
        for partition in (each.partition for each in partitions):
            if self.owners.get(partition) == name:
                del self.owners[partition]

    def lost(self, name: str, partitions: list[TopicPartition]) -> None:
        """It was thrown out, and learns so later than the others: that was another generation."""
        for partition in (each.partition for each in partitions):
            self.clashes.pop((name, partition), None)
        self.given_up(name, partitions)

    def note_commits(self, committed: list[TopicPartition]) -> None:
        for each in committed:
            before = self.committed.get(each.partition, -1)
            if 0 <= each.offset < before:
                self.steps_back.append(f"{each.partition}: {before} to {each.offset}")
            self.committed[each.partition] = max(before, each.offset)


class Member:
    def __init__(self, cluster: LocalCluster, protocol: str, topic: str, name: str, watch: Watch):
        self.name, self._watch = name, watch
        self._consumer = Consumer(
            {
                "bootstrap.servers": cluster.bootstrap_servers,
                "group.id": topic,
                "client.id": name,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                **STRATEGIES[protocol],
            }
        )
        self._consumer.subscribe(
            [topic], on_assign=self._taken, on_revoke=self._given_up, on_lost=self._lost
        )

    def _taken(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._watch.taken(self.name, partitions)

    def _given_up(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        # The last moment in which this member owns them.
        self._watch.given_up(self.name, partitions)

    def _lost(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._watch.lost(self.name, partitions)

    def work(self) -> None:
        """Process what is there, then say so: in one request at a time, for librdkafka sends a
        commit again that it thinks lost, behind a newer one."""
        positions: dict[int, TopicPartition] = {}
        for message in self._consumer.consume(200, timeout=0):
            topic, partition, offset = message.topic(), message.partition(), message.offset()
            if message.error() is None and topic and partition is not None and offset is not None:
                self._watch.processed.add(message.value() or b"")
                positions[partition] = TopicPartition(topic, partition, offset + 1)
        if positions:
            try:
                self._consumer.commit(offsets=list(positions.values()), asynchronous=False)
            except KafkaException as error:
                if error.args[0].code() not in LOST_ITS_PLACE:
                    raise

    def leave(self) -> None:
        self._consumer.close()
        for partition, owner in list(self._watch.owners.items()):
            if owner == self.name:
                del self._watch.owners[partition]


@pytest.mark.processes
@pytest.mark.parametrize("protocol", list(STRATEGIES))
def test_members_come_and_go_and_no_record_is_skipped(
    cluster: LocalCluster, fresh: Callable[[str], str], protocol: str
) -> None:
    topic = fresh("churn")
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    made = admin.create_topics([NewTopic(topic, num_partitions=PARTITIONS, replication_factor=3)])
    made[topic].result(30)
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "acks": "all"})
    dice, watch, sent = random.Random(protocol), Watch(), 0
    members = [Member(cluster, protocol, topic, f"m{n}", watch) for n in range(MEMBERS // 2)]
    joined = len(members)
    try:
        end = time.monotonic() + SECONDS
        next_change = time.monotonic() + 0.5
        while time.monotonic() < end:
            for _ in range(20 if len(producer) < MOST_IN_FLIGHT else 0):
                producer.produce(topic, f"{sent}".encode(), key=f"{sent}".encode())
                sent += 1
            producer.poll(0)
            for member in members:
                member.work()
            if time.monotonic() >= next_change:
                next_change = time.monotonic() + dice.uniform(0.2, 0.8)
                watch.note_commits(committed_of(admin, topic))
                if len(members) > 1 and (len(members) >= MEMBERS or dice.random() < 0.4):
                    members.pop(dice.randrange(len(members))).leave()
                else:
                    members.append(Member(cluster, protocol, topic, f"m{joined}", watch))
                    joined += 1
        assert producer.flush(30) == 0
        expected = {str(number).encode() for number in range(sent)}
        deadline = time.monotonic() + SETTLE_SECONDS
        while watch.processed != expected and time.monotonic() < deadline:
            for member in members:
                member.work()
        watch.note_commits(committed_of(admin, topic))
    finally:
        for member in members:
            member.leave()
    assert watch.processed == expected
    assert watch.clashes == {}
    assert watch.steps_back == []
    assert joined > MEMBERS // 2


def committed_of(admin: AdminClient, group: str) -> list[TopicPartition]:
    """Nothing while the coordinator is still reading its log."""
    asked = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])
    try:
        return list(asked[group].result(30).topic_partitions or [])
    except KafkaException as error:
        if error.args[0].code() != KafkaError.COORDINATOR_LOAD_IN_PROGRESS:
            raise
        return []
