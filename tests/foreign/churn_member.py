"""A member that comes and goes: what it says of itself, and what all of them said comes to.

Members live in a thread of the test's own process or, to be killed, in one of theirs:

    python churn_member.py BOOTSTRAP PROTOCOL TOPIC NAME

which prints one event a line. Times are of the system's monotonic clock, which processes share.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

LOST_ITS_PLACE = (
    KafkaError.ILLEGAL_GENERATION,
    KafkaError.REBALANCE_IN_PROGRESS,
    KafkaError.STALE_MEMBER_EPOCH,
    KafkaError.UNKNOWN_MEMBER_ID,
    KafkaError._NO_OFFSET,
)
"""A commit that came too late: whoever has the partition now reads those records again."""

COORDINATOR_IS_DEAD = (
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
    KafkaError.REQUEST_TIMED_OUT,
    KafkaError._TIMED_OUT,
    KafkaError._TRANSPORT,
    KafkaError._WAIT_COORD,
)
"""A commit that may or may not have happened: the same holds."""

STRATEGIES: dict[str, dict[str, Any]] = {
    "classic": {
        "partition.assignment.strategy": "cooperative-sticky",
        "session.timeout.ms": 6_000,
        "heartbeat.interval.ms": 500,
    },
    "consumer": {"group.protocol": "consumer"},
}

TAKEN, GIVEN_UP, LOST, PROCESSED, DEAD = "taken", "given up", "lost", "processed", "dead"


@dataclass(frozen=True, order=True)
class Event:
    seconds: float
    name: str
    what: str
    partitions: tuple[int, ...] = ()
    values: tuple[str, ...] = ()


Tell = Callable[[Event], None]


class Member:
    def __init__(self, bootstrap: str, protocol: str, topic: str, name: str, tell: Tell) -> None:
        self.name, self._tell = name, tell
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": topic,
                "client.id": name,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                **STRATEGIES[protocol],
            }
        )
        self._consumer.subscribe(
            [topic],
            on_assign=lambda _, partitions: self._say(TAKEN, partitions),
            # The last moment in which this member owns them.
            on_revoke=lambda _, partitions: self._say(GIVEN_UP, partitions),
            on_lost=lambda _, partitions: self._say(LOST, partitions),
        )

    def _say(self, what: str, partitions: Iterable[TopicPartition]) -> None:
        numbers = tuple(each.partition for each in partitions)
        self._tell(Event(time.monotonic(), self.name, what, numbers))

    def work(self, seconds: float) -> None:
        """Process what is there, then say so: in one request at a time, for librdkafka sends a
        commit again that it thinks lost, behind a newer one."""
        positions: dict[int, TopicPartition] = {}
        values = []
        for message in self._consumer.consume(200, timeout=seconds):
            topic, partition, offset = message.topic(), message.partition(), message.offset()
            if message.error() is None and topic and partition is not None and offset is not None:
                values.append((message.value() or b"").decode())
                positions[partition] = TopicPartition(topic, partition, offset + 1)
        if not positions:
            return
        self._tell(Event(time.monotonic(), self.name, PROCESSED, values=tuple(values)))
        try:
            self._consumer.commit(offsets=list(positions.values()), asynchronous=False)
        except KafkaException as error:
            if error.args[0].code() not in (*LOST_ITS_PLACE, *COORDINATOR_IS_DEAD):
                raise

    def leave(self) -> None:
        self._consumer.close()
        self._tell(Event(time.monotonic(), self.name, DEAD))


@dataclass
class Verdict:
    processed: set[str] = field(default_factory=set)
    clashes: dict[tuple[str, int], str] = field(default_factory=dict)
    """(who owned it, partition) -> who owned it at the same time."""


def judge(events: Iterable[Event]) -> Verdict:
    """What the members saw together, in the order in which it happened."""
    verdict = Verdict()
    owners: dict[int, str] = {}
    for event in sorted(events):
        verdict.processed.update(event.values)
        if event.what == TAKEN:
            for partition in event.partitions:
                owner = owners.setdefault(partition, event.name)
                if owner != event.name:
                    verdict.clashes[owner, partition] = event.name
                    owners[partition] = event.name
        elif event.what != PROCESSED:
            gone = owners if event.what == DEAD else event.partitions
            for partition in list(gone):
                if event.what == LOST:
                    # It was thrown out, and learns so later than the others: that was another
                    # generation.
                    verdict.clashes.pop((event.name, partition), None)
                if owners.get(partition) == event.name:
                    del owners[partition]
    return verdict


def main() -> None:
    def tell(event: Event) -> None:
        values = [event.seconds, event.name, event.what, event.partitions, event.values]
        print(json.dumps(values), flush=True)

    bootstrap, protocol, topic, name = sys.argv[1:]
    member = Member(bootstrap, protocol, topic, name, tell)
    while True:
        member.work(0.1)


if __name__ == "__main__":
    main()
