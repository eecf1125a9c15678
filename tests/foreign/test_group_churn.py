"""Twenty members over sixty partitions, coming and going while records are produced: they leave,
some are killed, and so is their coordinator.

Every record is processed, no partition has two owners at a time, and commits never go back.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from logboat.groups import OFFSETS_TOPIC, partition_for
from logboat.testing import LocalCluster
from tests.foreign.churn_member import (
    COORDINATOR_IS_DEAD,
    DEAD,
    GIVEN_UP,
    LOST,
    PROCESSED,
    STRATEGIES,
    TAKEN,
    Event,
    Member,
    judge,
)

PARTITIONS = 60
MEMBERS = 20
PROCESSES = 3
"""Members that are killed, not asked to leave, each replaced by another."""

SECONDS = float(os.environ.get("LOGBOAT_CHURN_SECONDS", "12"))
"""A longer run is for `LOGBOAT_CHURN_SECONDS=120 pytest tests/foreign/test_group_churn.py`."""

SETTLE_SECONDS = 120.0
LEAVE_SECONDS = 60.0
WORK_SECONDS = 0.1
"""How long a member waits for records before it looks whether it shall leave."""

PRODUCE_SECONDS = 0.05
RECORDS_AT_ONCE = 20
MOST_IN_FLIGHT = 500
"""Records without an acknowledgement yet: the test shall not outrun a busy machine."""

OFFSETS_PARTITIONS = 4
"""What `LocalCluster` sets."""

COORDINATOR_IS_BACK_SECONDS = 3.0


class MemberThread:
    """A member with an application of its own, as in life. Were one thread to serve several, it
    could wait in one's commit, which stands behind that one's JoinGroup, which waits for another
    to be served."""

    def __init__(self, member: Member) -> None:
        self._member = member
        self._leaves = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._live, name=member.name, daemon=True)
        self._thread.start()

    def _live(self) -> None:
        try:
            while not self._leaves.is_set():
                self._member.work(WORK_SECONDS)
            self._member.leave()
        except BaseException as error:
            self._failure = error

    def leave(self) -> None:
        """Nobody waits for it."""
        self._leaves.set()

    def end(self) -> None:
        """It has left. Raises what ended it."""
        self._leaves.set()
        self._thread.join(LEAVE_SECONDS)
        if self._failure is not None:
            raise self._failure
        assert not self._thread.is_alive(), f"{self._member.name} does not end"


class MemberProcess:
    def __init__(self, arguments: list[str], events: list[Event]) -> None:
        self.name = arguments[-1]
        self._events = events
        program = Path(__file__).with_name("churn_member.py")
        self._process = subprocess.Popen(
            [sys.executable, str(program), *arguments], stdout=subprocess.PIPE, text=True
        )
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.endswith("\n"):
                seconds, name, what, partitions, values = json.loads(line)
                event = Event(seconds, name, what, tuple(partitions), tuple(values))
                self._events.append(event)

    def kill(self) -> None:
        assert self._process.poll() is None, f"{self.name} ended by itself"
        self._process.kill()
        self._process.wait()
        self._events.append(Event(time.monotonic(), self.name, DEAD))
        self._listener.join()
        assert self._process.stdout is not None
        self._process.stdout.close()


class Churn:
    """The members and all that they said."""

    def __init__(self, cluster: LocalCluster, protocol: str, topic: str) -> None:
        self.events: list[Event] = []
        self.joined = 0
        self.members: list[MemberThread] = []
        self.leaving: list[MemberThread] = []
        self.processes: list[MemberProcess] = []
        self._arguments = (cluster.bootstrap_servers, protocol, topic)
        self._dice = random.Random(protocol)

    def add(self) -> None:
        member = Member(*self._arguments, self._next_name(), self.events.append)
        self.members.append(MemberThread(member))

    def add_process(self) -> None:
        self.processes.append(MemberProcess([*self._arguments, self._next_name()], self.events))

    def _next_name(self) -> str:
        self.joined += 1
        return f"m{self.joined}"

    def come_or_go(self) -> None:
        count = len(self.members) + len(self.processes)
        if len(self.members) > 1 and (count >= MEMBERS or self._dice.random() < 0.4):
            gone = self.members.pop(self._dice.randrange(len(self.members)))
            gone.leave()
            self.leaving.append(gone)
        else:
            self.add()

    def replace_process(self) -> None:
        self.processes.pop(0).kill()
        self.add_process()

    def end(self) -> None:
        """Raises what ended a member before its time."""
        for member in self.members:
            member.leave()
        for process in self.processes:
            process.kill()
        for member in [*self.leaving, *self.members]:
            member.end()


class Commits:
    """What the coordinator says of the group, again and again."""

    def __init__(self) -> None:
        self.steps_back: list[str] = []
        self._committed: dict[int, int] = {}

    def note(self, committed: list[TopicPartition]) -> None:
        for each in committed:
            before = self._committed.get(each.partition, -1)
            if 0 <= each.offset < before:
                self.steps_back.append(f"{each.partition}: {before} to {each.offset}")
            self._committed[each.partition] = max(before, each.offset)


class Coordinator:
    """Killed in the middle of the run, and back a little later."""

    def __init__(self, cluster: LocalCluster, group: str, began: float) -> None:
        self._cluster = cluster
        self._partition = partition_for(group, OFFSETS_PARTITIONS)
        self._dies, self._node = began + SECONDS / 2, -1
        self.was_killed = False

    def maybe_kill_or_start(self, now: float) -> None:
        if not self.was_killed and now >= self._dies:
            self._node = self._cluster.leader_of(OFFSETS_TOPIC, self._partition)
            self._cluster.kill(self._node)
            self.was_killed = True
        elif self._node >= 0 and now >= self._dies + COORDINATOR_IS_BACK_SECONDS:
            self.start()

    def start(self) -> None:
        if self._node >= 0:
            self._cluster.start(self._node)
            self._node = -1


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
    watcher = Consumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": topic})
    churn, commits, sent = Churn(cluster, protocol, topic), Commits(), 0
    dice = random.Random(protocol)
    began = time.monotonic()
    coordinator = Coordinator(cluster, topic, began)
    try:
        for _ in range(MEMBERS // 2 - PROCESSES):
            churn.add()
        for _ in range(PROCESSES):
            churn.add_process()
        next_change, next_death = began + 0.5, began + SECONDS / 4
        while (now := time.monotonic()) < began + SECONDS:
            for _ in range(RECORDS_AT_ONCE if len(producer) < MOST_IN_FLIGHT else 0):
                producer.produce(topic, f"{sent}".encode(), key=f"{sent}".encode())
                sent += 1
            producer.poll(0)
            time.sleep(PRODUCE_SECONDS)
            if now >= next_change:
                next_change = now + dice.uniform(0.2, 0.8)
                commits.note(committed_of(watcher, topic))
                churn.come_or_go()
            if now >= next_death:
                next_death = now + max(8.0, SECONDS / 10)
                churn.replace_process()
            coordinator.maybe_kill_or_start(now)
        assert producer.flush(30) == 0
        expected = {str(number) for number in range(sent)}
        deadline = time.monotonic() + SETTLE_SECONDS
        while judge(churn.events).processed != expected and time.monotonic() < deadline:
            time.sleep(PRODUCE_SECONDS)
        commits.note(committed_of(watcher, topic))
        seen = what_is_seen(cluster, topic)
    finally:
        churn.end()
        watcher.close()
        coordinator.start()
    verdict = judge(churn.events)
    missing = len(expected - verdict.processed)
    assert verdict.processed == expected, f"{missing} of {sent} records, {seen}"
    assert verdict.clashes == {}
    assert commits.steps_back == []
    assert churn.joined > MEMBERS // 2 + 1


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


def committed_of(watcher: Consumer, topic: str) -> list[TopicPartition]:
    """Nothing while the coordinator is dead or still reading its log.

    A consumer that never joins asks, not librdkafka's admin client: that one follows a null pointer
    when it is told NOT_COORDINATOR (`rd_kafka_handle_OffsetFetch`, 2.x).
    """
    partitions = [TopicPartition(topic, number) for number in range(PARTITIONS)]
    try:
        return list(watcher.committed(partitions, timeout=30))
    except KafkaException as error:
        if error.args[0].code() not in COORDINATOR_IS_DEAD:
            raise
        return []


def test_the_watch_sees_two_owners_at_a_time() -> None:
    """And no clash where one was lost, given up or dead before."""
    taken = Event(1, "a", TAKEN, (0,))
    for what in (GIVEN_UP, LOST, DEAD):
        gone = Event(2, "a", what, (0,) if what != DEAD else ())
        assert judge([Event(3, "b", TAKEN, (0,)), gone, taken]).clashes == {}
    late = Event(4, "a", PROCESSED, values=("v",))
    verdict = judge([taken, Event(3, "b", TAKEN, (0,)), late])
    assert verdict.clashes == {("a", 0): "b"}
    assert verdict.processed == {"v"}
