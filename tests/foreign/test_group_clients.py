"""Every client in every event of a group's life, all clients' groups side by side on one cluster.

The members are processes of their own (`group_member.py` and its twins in other languages): one
dynamic, one static where the client knows such. All groups have the same coordinator.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from logboat.groups import OFFSETS_TOPIC, partition_for
from logboat.testing import LocalCluster, NotInTime
from tests.foreign.clients import on_java, on_node

HERE = Path(__file__).parent
OFFSETS_PARTITIONS = 4
"""What `LocalCluster` sets."""

SESSION_S = 8.0
"""Of the members."""

PATIENT_SESSION_S = 60.0
"""Of a static member of the classic protocol that is to come back: it began with a heartbeat that
nobody but its coordinator knows."""

PATIENCE_S = 90.0
"""For what has no deadline of its own; the machine may be busy."""

TAKEOVER_S = SESSION_S + 20.0
"""Session and half a second on a machine with time; no rebalance timeout of any client is as short,
but for aiokafka's, which is its session."""

SETTINGS: dict[str, str | int] = {"group.consumer.session.timeout.ms": int(SESSION_S * 1_000)}
ALL = [0, 1, 2, 3]
RECORDS = 8
"""Produced after each event, over all partitions."""

CLIENTS = [
    "confluent classic",
    "confluent consumer",
    "kafka-python classic",
    "aiokafka classic",
    "kafkajs classic",
    "java classic",
    "java consumer",
]
EVENTS = [
    *("join", "share", "static restart", "seen by kafkatop"),
    *("coordinator killed", "member killed", "leave"),
]
CANNOT = {("kafkajs classic", "static restart")}
"""kafkajs knows no static members."""


class Disappointed(Exception):
    """What was waited for did not come; says what was seen last."""


class MemberProcess:
    def __init__(self, command: list[str], news: threading.Condition, session_s: float) -> None:
        self.history: list[list[int]] = []
        """What it owned, each time it said so."""
        self.read: set[str] = set()
        self.said: list[str] = []
        """All the rest."""
        self._news = news
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "SESSION_MS": str(int(session_s * 1_000))},
        )
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            what, _, rest = line.rstrip().partition(" ")
            with self._news:
                if what == "owns":
                    self.history.append([int(number) for number in rest.split()])
                elif what == "read":
                    self.read.add(rest)
                else:
                    self.said.append(line.rstrip()[:200])
                self._news.notify_all()

    @property
    def owned(self) -> list[int]:
        return self.history[-1] if self.history else []

    @property
    def left(self) -> bool:
        return "left" in self.said

    def go(self) -> None:
        """Join now: the process has been started before, and its libraries are loaded."""
        assert self._process.stdin is not None
        self._process.stdin.write("go\n")
        self._process.stdin.flush()

    def stop(self) -> None:
        """In order; `left` becomes true."""
        assert self._process.stdin is not None
        self._process.stdin.close()

    def kill(self) -> None:
        """SIGKILL."""
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        self.kill()
        self._listener.join()
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            stream.close()


@dataclass
class Story:
    """One client's group; `problems` tells what went wrong in which event."""

    client: str
    command: list[str]
    cluster: LocalCluster
    group: str
    problems: dict[str, str] = field(default_factory=dict)
    takeover_s: float | None = None
    """From the death of a member until the other reads everything."""

    def __post_init__(self) -> None:
        self._news = threading.Condition()
        where = [self.cluster.bootstrap_servers, self.group, self.group]
        instance = ["the-second"] if self._knows_static_members else []
        self.members = [
            MemberProcess([*self.command, *where, *own], self._news, session_s)
            for own, session_s in (
                ([], SESSION_S),
                (instance, PATIENT_SESSION_S if instance else SESSION_S),
                (instance, SESSION_S),
            )
        ]
        self.first, self.second, self.second_again = self.members
        self._sent = 0

    def tell(self, events: dict[str, Callable[[], None]]) -> None:
        """Each needs those before it."""
        for event, happen in events.items():
            if self.problems:
                self.problems[event] = f"not reached: {next(iter(self.problems))} failed"
                continue
            try:
                happen()
            except Disappointed as error:
                self.problems[event] = str(error)

    def begin(self) -> None:
        events: dict[str, Callable[[], None]] = {"join": self._join, "share": self._share}
        if self._knows_static_members:
            events["static restart"] = self._restart
        self.tell(events)

    def end(self) -> None:
        self.tell({"member killed": self._kill, "leave": self._leave})

    def close(self) -> None:
        for member in self.members:
            member.close()

    @property
    def _knows_static_members(self) -> bool:
        return (self.client, "static restart") not in CANNOT

    # The events

    def _join(self) -> None:
        self.first.go()
        self._until(lambda: self.first.owned == ALL, "the only member reads everything")

    def _share(self) -> None:
        self.second.go()
        self._until(self._both_read, "each reads a half")
        self._process_records()

    def _restart(self) -> None:
        """As the protocols want it: killed within its session, or gone with a promise to return."""
        kept, seen, began = self.second.owned, len(self.first.history), time.monotonic()
        if self.client.endswith("classic"):
            self.second.kill()
            session_s = PATIENT_SESSION_S / 2
        else:
            # Its session begins anew when the coordinator hears of that.
            self.second.stop()
            self._until(lambda: self.second.left, "a static member stops")
            session_s = SESSION_S - 1

        def too_late() -> bool:
            """A machine that takes so long makes it a stranger, rightly."""
            return time.monotonic() > began + session_s

        self.second = self.second_again
        self.second.go()
        self._until(
            lambda: self.second.owned == kept or (too_late() and self._both_read()),
            "it has its partitions again",
        )
        if not too_late() and len(self.first.history) != seen:
            raise Disappointed(f"the other member was disturbed: {self.first.history[seen:]}")

    def look(self, summary: dict[str, Any]) -> None:
        """What kafkatop says of all groups while two members share each."""

        def as_it_is() -> None:
            seen = summary.get(self.group, {})
            topics = {self.group: {"partitions": len(ALL), "lag_max": 0, "lag_min": 0}}
            if (state_of(seen), seen.get("topics")) != ("stable", topics):
                raise Disappointed(f"kafkatop sees {seen}")

        self.tell({"seen by kafkatop": as_it_is})

    def go_on(self) -> None:
        """After the coordinator's death."""
        self.tell({"coordinator killed": self._process_records})

    def _kill(self) -> None:
        self.second.kill()
        killed = time.monotonic()
        self._until(lambda: self.first.owned == ALL, "the other takes over", TAKEOVER_S)
        self.takeover_s = time.monotonic() - killed
        self._process_records()

    def _leave(self) -> None:
        """The last one does, and its coordinator knows at once."""
        try:
            # The node that was killed may still be on its way, and would be asked first.
            self.cluster.wait_ready()
            self.first.stop()
            self._until(lambda: self.first.left, "it leaves")
            # Its session would have ended later.
            self.cluster.wait_until(self._why_not_empty, "nobody is left", SESSION_S - 2)
        except NotInTime as error:
            raise Disappointed(str(error)) from None

    # What they are made of

    def _both_read(self) -> bool:
        one, other = self.first.owned, self.second.owned
        return len(one) == len(other) == 2 and sorted(one + other) == ALL

    def _process_records(self) -> None:
        producer = Producer({"bootstrap.servers": self.cluster.bootstrap_servers, "acks": "all"})
        for number in range(RECORDS):
            producer.produce(self.group, f"{self._sent}".encode(), partition=number % len(ALL))
            self._sent += 1
        if producer.flush(PATIENCE_S):
            raise Disappointed("records could not be produced")
        expected = {str(number) for number in range(self._sent)}
        self._until(lambda: self._read() == expected, "every record is processed")

    def _read(self) -> set[str]:
        return {value for member in self.members for value in member.read}

    def _until(self, holds: Callable[[], bool], what: str, seconds: float = PATIENCE_S) -> None:
        with self._news:
            if not self._news.wait_for(holds, seconds):
                seen = [(m.history[-3:], sorted(m.read), m.said[-3:]) for m in self.members]
                raise Disappointed(f"not within {seconds} s: {what}; {seen}")

    def _why_not_empty(self) -> str | None:
        answer = self.cluster.get(f"/api/v1/groups/{self.group}/lag")
        if answer is None or answer.status != 200:
            return f"answered {answer}"
        seen = answer.body.get("state"), answer.body.get("total_lag")
        return None if seen == ("Empty", 0) else f"state and lag are {seen}"


def commands(java_classes: Path | None) -> dict[str, list[str]]:
    """How to start a member of each client that is at hand."""
    python = [sys.executable, str(HERE / "group_member.py")]
    found = {name: [*python, *name.split()] for name in CLIENTS[:4]}
    if (node := on_node("group_member.js")) is not None:
        found["kafkajs classic"] = node
    if (java := on_java(java_classes, "GroupMember")) is not None:
        found["java classic"], found["java consumer"] = [*java, "classic"], [*java, "consumer"]
    return found


def state_of(seen: dict[str, Any]) -> str:
    """kafkatop says `ConsumerGroupState.STABLE`."""
    return str(seen.get("state")).rpartition(".")[2].lower()


def kafkatop(cluster: LocalCluster, groups: list[str]) -> dict[str, Any]:
    """Its summary of them, once it sees no lag and no rebalance: what was read last is about to be
    committed, and a busy machine may have had a member miss its session."""
    program = str(Path(sys.executable).with_name("kafkatop"))
    where = ["--kafka-broker", cluster.bootstrap_servers, "--summary-json"]
    pattern = ["--group-filter-pattern", f"^({'|'.join(groups)})$"]
    deadline = time.monotonic() + PATIENCE_S
    while True:
        done = subprocess.run(
            [program, *where, *pattern], capture_output=True, text=True, timeout=180, check=True
        )
        seen: dict[str, Any] = json.loads(done.stdout)
        lags = [topic["lag_max"] for one in seen.values() for topic in one["topics"].values()]
        calm = all(state_of(one) == "stable" for one in seen.values())
        if (calm and not any(lags)) or time.monotonic() >= deadline:
            return seen


@pytest.fixture(scope="module")
def stories(java_classes: Path | None) -> Iterator[dict[str, Story]]:
    """All of it, once: the tests below look at one cell each."""
    with LocalCluster(nodes=3, settings=SETTINGS) as cluster:
        told = {
            client: Story(client, command, cluster, group_of(client))
            for client, command in commands(java_classes).items()
        }
        create_topics(cluster, [story.group for story in told.values()])
        try:
            with ThreadPoolExecutor(len(told)) as side_by_side:
                list(side_by_side.map(Story.begin, told.values()))
                summary = kafkatop(cluster, [story.group for story in told.values()])
                for story in told.values():
                    story.look(summary)
                coordinator = cluster.wait_leader(OFFSETS_TOPIC, 0)
                cluster.kill(coordinator)
                list(side_by_side.map(Story.go_on, told.values()))
                cluster.start(coordinator, wait=False)
                list(side_by_side.map(Story.end, told.values()))
            yield told
        finally:
            for story in told.values():
                story.close()


def group_of(client: str) -> str:
    """A name whose group is kept in partition 0."""
    while True:
        name = f"{client.replace(' ', '-')}-{uuid.uuid4().hex[:6]}"
        if partition_for(name, OFFSETS_PARTITIONS) == 0:
            return name


def create_topics(cluster: LocalCluster, names: list[str]) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    topics = [NewTopic(name, num_partitions=len(ALL), replication_factor=3) for name in names]
    for created in admin.create_topics(topics).values():
        created.result(PATIENCE_S)


@pytest.mark.processes
@pytest.mark.foreign
@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize("client", CLIENTS)
def test_members_of_every_client_live_through(
    stories: dict[str, Story], absent: Callable[[str], NoReturn], client: str, event: str
) -> None:
    if client not in stories:
        absent(client)
    if (client, event) in CANNOT:
        pytest.skip(f"{client} cannot: {event}")
    story = stories[client]
    if event == "member killed" and story.takeover_s is not None:
        print(f"taken over after {story.takeover_s:.2f} s; the session is {SESSION_S} s")
    assert event not in story.problems, story.problems[event]
