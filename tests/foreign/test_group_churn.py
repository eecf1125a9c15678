"""Twenty members over sixty partitions, coming and going while records are produced: they leave,
some are killed, and so is their coordinator. Members of one client, and of all in one group.

Every record is processed, no partition has two owners at a time or in one generation, and commits
never go back.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from logboat.groups import OFFSETS_TOPIC, partition_for
from logboat.testing import LocalCluster
from tests.foreign.churn.casts import CASTS
from tests.foreign.churn.judge import judge
from tests.foreign.churn.python_members import COORDINATOR_IS_DEAD
from tests.foreign.churn.troupe import MEMBERS, Troupe

PARTITIONS = 60

LONG = "LOGBOAT_CHURN_SECONDS" in os.environ
"""`make group-churn`: two minutes for each client."""

SECONDS = float(os.environ.get("LOGBOAT_CHURN_SECONDS", "12"))

IN_BRIEF = ["confluent classic", "confluent consumer"]
"""Who plays in every run of the suite; the other casts take a JVM and twice as long."""

SETTLE_SECONDS = 120.0
LOOK_SECONDS = 0.5
PRODUCE_SECONDS = 0.05
RECORDS_AT_ONCE = 20
MOST_IN_FLIGHT = 500
"""Records without an acknowledgement yet: the test shall not outrun a busy machine."""

OFFSETS_PARTITIONS = 4
"""What `LocalCluster` sets."""

COORDINATOR_LIVES_SECONDS = min(SECONDS / 2, 30.0)
COORDINATOR_IS_AWAY_SECONDS = 3.0
MEMBER_LIVES_SECONDS = max(SECONDS / 10, 8.0)
"""Between two deaths."""


class Records:
    """Produced at an even pace; knows how far each partition was acknowledged."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.ends: dict[int, int] = {}
        self.sent = 0
        self._topic = topic
        settings = {"bootstrap.servers": bootstrap, "acks": "all", "enable.idempotence": True}
        self._producer = Producer(settings)

    def produce(self) -> None:
        for _ in range(RECORDS_AT_ONCE if len(self._producer) < MOST_IN_FLIGHT else 0):
            self._producer.produce(
                self._topic, partition=self.sent % PARTITIONS, on_delivery=self._on_delivery
            )
            self.sent += 1
        self._producer.poll(0)

    def finish(self) -> None:
        assert self._producer.flush(60) == 0
        assert sum(self.ends.values()) == self.sent

    def _on_delivery(self, error: KafkaError | None, message: Message) -> None:
        assert error is None, error
        partition, offset = message.partition(), message.offset()
        assert partition is not None
        assert offset is not None
        self.ends[partition] = max(self.ends.get(partition, 0), offset + 1)


class Watch:
    """What the coordinator says of the group, again and again."""

    def __init__(self, cluster: LocalCluster, topic: str) -> None:
        self.steps_back: list[str] = []
        self.types: list[str] = []
        """Of the group, each time it had another."""
        self._cluster, self._topic = cluster, topic
        self._committed: dict[int, int] = {}
        self._ends = threading.Event()
        looks = (self._look_at_commits, self._look_at_type)
        self._threads = [threading.Thread(target=look, daemon=True) for look in looks]
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        self._ends.set()
        for thread in self._threads:
            thread.join()

    @property
    def group_type(self) -> str:
        return self.types[-1] if self.types else ""

    def _look_at_type(self) -> None:
        while not self._ends.wait(LOOK_SECONDS):
            described = self._cluster.get(f"/api/v1/groups/{self._topic}")
            if described is not None and described.status == 200:
                now = described.body["type"]
                if now != self.group_type:
                    self.types.append(now)

    def _look_at_commits(self) -> None:
        # A consumer that never joins asks, not librdkafka's admin client: that one follows a null
        # pointer when it is told NOT_COORDINATOR (`rd_kafka_handle_OffsetFetch`, 2.x).
        where = {"bootstrap.servers": self._cluster.bootstrap_servers, "group.id": self._topic}
        consumer = Consumer(where)
        try:
            while not self._ends.wait(LOOK_SECONDS):
                self._note(consumer)
            self._note(consumer)
        finally:
            consumer.close()

    def _note(self, consumer: Consumer) -> None:
        """Nothing while the coordinator is dead or still reading its log."""
        partitions = [TopicPartition(self._topic, number) for number in range(PARTITIONS)]
        try:
            committed = consumer.committed(partitions, timeout=30)
        except KafkaException as error:
            if error.args[0].code() not in COORDINATOR_IS_DEAD:
                raise
            return
        for each in committed:
            before = self._committed.get(each.partition, -1)
            if 0 <= each.offset < before:
                self.steps_back.append(f"{each.partition}: {before} to {each.offset}")
            self._committed[each.partition] = max(before, each.offset)


class Coordinator:
    """Killed in the middle of the run, in a long one again and again, and back a little later."""

    def __init__(self, cluster: LocalCluster, group: str, began: float) -> None:
        self.deaths = 0
        self._cluster = cluster
        self._partition = partition_for(group, OFFSETS_PARTITIONS)
        self._dies, self._node = began + COORDINATOR_LIVES_SECONDS, -1

    def maybe_kill_or_start(self, now: float) -> None:
        if self._node < 0 and now >= self._dies:
            self._node = self._cluster.leader_of(OFFSETS_TOPIC, self._partition)
            if self._node >= 0:
                self._cluster.kill(self._node)
                self._dies = now
                self.deaths += 1
        elif self._node >= 0 and now >= self._dies + COORDINATOR_IS_AWAY_SECONDS:
            self.start()
            self._dies = now + COORDINATOR_LIVES_SECONDS

    def start(self) -> None:
        if self._node >= 0:
            self._cluster.start(self._node)
            self._node = -1


@dataclass
class Play:
    cluster: LocalCluster
    topic: str
    """And group."""
    troupe: Troupe
    seed: str

    def __post_init__(self) -> None:
        self.began = time.monotonic()
        self.records = Records(self.cluster.bootstrap_servers, self.topic)
        self.watch = Watch(self.cluster, self.topic)
        self.coordinator = Coordinator(self.cluster, self.topic, self.began)
        self.seen = ""

    def run(self) -> None:
        """Until every record is processed, or none is for a long time. No process is left."""
        try:
            self.troupe.begin()
            self._come_and_go()
            self.records.finish()
            deadline = time.monotonic() + SETTLE_SECONDS
            while not self._all_is_processed and time.monotonic() < deadline:
                time.sleep(LOOK_SECONDS)
            self.seen = what_is_seen(self.cluster, self.topic)
        finally:
            self.coordinator.start()
            self.troupe.end()
            self.watch.end()

    def _come_and_go(self) -> None:
        dice = random.Random(self.seed)
        next_change, next_death = self.began + 0.5, self.began + SECONDS / 4
        while (now := time.monotonic()) < self.began + SECONDS or not self._enough(now):
            self.records.produce()
            time.sleep(PRODUCE_SECONDS)
            if now >= next_change:
                next_change = now + dice.uniform(0.2, 0.8)
                self.troupe.come_or_go()
            if now >= next_death and self.troupe.may_kill_one:
                next_death = now + MEMBER_LIVES_SECONDS
                self.troupe.kill_one()
            self.troupe.receive_guests(
                progress=(now - self.began) / SECONDS, group_type=self.watch.group_type
            )
            self.coordinator.maybe_kill_or_start(now)

    def _enough(self, now: float) -> bool:
        """A busy machine may need longer until all has happened once."""
        happened = self.troupe.killed and self.coordinator.deaths and self.troupe.guests_are_gone
        return bool(happened) or now >= self.began + SECONDS + SETTLE_SECONDS

    @property
    def _all_is_processed(self) -> bool:
        return judge(self.troupe.events).ends == self.records.ends


@pytest.mark.processes
@pytest.mark.foreign
@pytest.mark.parametrize("members", list(CASTS) if LONG else IN_BRIEF)
def test_members_come_and_go_and_no_record_is_skipped(
    cluster: LocalCluster,
    fresh: Callable[[str], str],
    request: pytest.FixtureRequest,
    absent: Callable[[str], NoReturn],
    tmp_path: Path,
    members: str,
) -> None:
    topic, cast = fresh("churn"), CASTS[members]
    kinds = (*cast.kinds, *cast.for_a_while)
    java = any(kind.client == "java" for kind in kinds)
    java_classes = request.getfixturevalue("java_classes") if java else None
    arguments = [cluster.bootstrap_servers, topic]
    commands = {
        kind: [*(kind.command(java_classes) or absent(kind.client)), *arguments] for kind in kinds
    }
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    made = admin.create_topics([NewTopic(topic, num_partitions=PARTITIONS, replication_factor=3)])
    made[topic].result(60)
    troupe = Troupe(cast, commands, random.Random(members))
    play = Play(cluster, topic, troupe, seed=members)
    play.run()
    trace = tmp_path / "trace.txt"
    trace.write_text("".join(f"{event}\n" for event in sorted(troupe.events)))
    verdict, records, watch = judge(troupe.events), play.records, play.watch
    takeover = max(verdict.takeovers, default=0)
    print(
        f"{members}: {records.sent} records, {troupe.joined} members came, {troupe.killed} were"
        f" killed, the coordinator {play.coordinator.deaths} times; group was {watch.types};"
        f" partitions of the dead were taken over after {takeover:.1f} s at most"
    )
    seen = f"{play.seen}; all that was said is in {trace}"
    assert verdict.complaints == {}, seen
    assert verdict.ends == records.ends, seen
    assert watch.steps_back == [], seen
    assert troupe.joined > MEMBERS // 2 + 1
    assert troupe.killed > 0
    assert play.coordinator.deaths > 0
    assert all(cluster.is_running(node) for node in cluster.node_ids)
    if cast.for_a_while:
        # And perhaps once more, for whoever was thrown out and came back before he left.
        assert watch.types[:3] == ["classic", "consumer", "classic"]
        assert watch.group_type == "classic"


def what_is_seen(cluster: LocalCluster, group: str) -> str:
    """Before the members leave: were records skipped, or does somebody not read what it owns?"""
    described = cluster.get(f"/api/v1/groups/{group}")
    lag = cluster.get(f"/api/v1/groups/{group}/lag")
    if described is None or lag is None:
        return "nobody answers"
    behind = [
        (row["partition"], row["committed_offset"], row["log_end_offset"], row["client_id"])
        for row in lag.body.get("partitions", [])
        if row["lag"] != 0
    ]
    return f"{described.body.get('state')}; (partition, committed, end, owner): {behind}"
