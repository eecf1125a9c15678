"""Members that come and go, of any Python client, in one process: not a test.

    python -m tests.foreign.churn.python_members CLIENT PROTOCOL ASSIGNOR BOOTSTRAP TOPIC

reads `add NAME` and `leave NAME`, and prints one `Event` a line, as judge.py has them. All leave
when its standard input ends. The other languages' programs beside it do the same.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from tests.foreign.churn.judge import What

SESSION_MS = 6_000
HEARTBEAT_MS = 500
POLL_S = 0.1
RECORDS_AT_ONCE = 200
MADE_WITHIN_S = 30.0

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


@dataclass(frozen=True)
class Place:
    """Where all members of this process come to."""

    protocol: str
    assignor: str
    bootstrap: str
    topic: str
    """And the group."""


_one_line_at_a_time = threading.Lock()


@dataclass(frozen=True)
class Voice:
    """How a member says what has happened to it."""

    name: str

    def taken(self, partitions: Iterable[Any], *, generation: int, member_id: str) -> None:
        self._say(What.TAKEN, partitions, generation=generation, member_id=member_id)

    def given_up(self, partitions: Iterable[Any]) -> None:
        self._say(What.GIVEN_UP, partitions)

    def lost(self, partitions: Iterable[Any]) -> None:
        self._say(What.LOST, partitions)

    def processed(self, positions: list[tuple[int, int]]) -> None:
        self._say(What.PROCESSED, positions=positions)

    def committed(self, positions: Mapping[int, int]) -> None:
        self._say(What.COMMITTED, positions=list(positions.items()))

    def dead(self) -> None:
        self._say(What.DEAD)

    def failed(self, error: BaseException) -> None:
        self._say(What.FAILED, member_id=repr(error))

    def _say(self, what: What, partitions: Iterable[Any] = (), **more: object) -> None:
        numbers = [each.partition for each in partitions]
        with _one_line_at_a_time:
            said = {"seconds": time.monotonic(), "name": self.name, "what": what}
            print(json.dumps({**said, "partitions": numbers, **more}), flush=True)


class Member(Protocol):
    def work(self) -> None:
        """Process what is there, say so, and commit it, in one request at a time."""

    def leave(self) -> None: ...


def next_positions(processed: list[tuple[int, int]]) -> dict[int, int]:
    return {partition: offset + 1 for partition, offset in processed}


class Confluent:
    def __init__(self, place: Place, voice: Voice) -> None:
        self._place, self._voice = place, voice
        settings: dict[str, Any] = {
            "bootstrap.servers": place.bootstrap,
            "group.id": place.topic,
            "group.protocol": place.protocol,
            "client.id": voice.name,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
        if place.protocol == "classic":
            settings |= {
                "partition.assignment.strategy": place.assignor,
                "session.timeout.ms": SESSION_MS,
                "heartbeat.interval.ms": HEARTBEAT_MS,
            }
        self._consumer = Consumer(settings)
        self._consumer.subscribe(
            [place.topic],
            on_assign=lambda _, partitions: self._say_taken(partitions),
            # The last moment in which this member owns them.
            on_revoke=lambda _, partitions: voice.given_up(partitions),
            on_lost=lambda _, partitions: voice.lost(partitions),
        )

    def _say_taken(self, partitions: Iterable[Any]) -> None:
        # "CGMDv2:", the generation, the group, ...: as librdkafka hands it to a producer.
        packed = self._consumer.consumer_group_metadata()[len("CGMDv2:") :]
        generation = int.from_bytes(packed[:4], sys.byteorder, signed=True)
        self._voice.taken(partitions, generation=generation, member_id=self._consumer.memberid())

    def work(self) -> None:
        processed = []
        for message in self._consumer.consume(RECORDS_AT_ONCE, timeout=POLL_S):
            partition, offset = message.partition(), message.offset()
            if message.error() is None and partition is not None and offset is not None:
                processed.append((partition, offset))
        if not processed:
            return
        self._voice.processed(processed)
        positions = next_positions(processed)
        offsets = [TopicPartition(self._place.topic, *each) for each in positions.items()]
        try:
            # librdkafka sends a commit again that it thinks lost, behind a newer one.
            done = self._consumer.commit(offsets=offsets, asynchronous=False) or []
        except KafkaException as error:
            if error.args[0].code() not in (*LOST_ITS_PLACE, *COORDINATOR_IS_DEAD):
                raise
        else:
            self._voice.committed({each.partition: each.offset for each in done if not each.error})

    def leave(self) -> None:
        self._consumer.close()


def patiently(make: Callable[[], Any], refusal: type[Exception]) -> Any:
    """kafka-python is not made while a server that it asks first is dead."""
    deadline = time.monotonic() + MADE_WITHIN_S
    while True:
        try:
            return make()
        except refusal:
            if time.monotonic() >= deadline:
                raise
            time.sleep(POLL_S)


class KafkaPython:
    def __init__(self, place: Place, voice: Voice) -> None:
        from kafka import ConsumerRebalanceListener, KafkaConsumer
        from kafka.consumer.subscription_state import TopicPartitionState
        from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
        from kafka.coordinator.assignors.range import RangePartitionAssignor
        from kafka.errors import KafkaConnectionError

        assignors = (CooperativeStickyAssignor, RangePartitionAssignor)
        self._place, self._voice = place, voice
        self._consumer: Any = patiently(
            lambda: KafkaConsumer(
                bootstrap_servers=place.bootstrap,
                client_id=voice.name,
                group_id=place.topic,
                partition_assignment_strategy=[
                    each for each in assignors if each.name == place.assignor
                ],
                session_timeout_ms=SESSION_MS,
                heartbeat_interval_ms=HEARTBEAT_MS,
                auto_offset_reset="earliest",
                enable_auto_commit=False,
            ),
            KafkaConnectionError,
        )
        member = self

        class Listener(ConsumerRebalanceListener):  # type: ignore[misc]
            def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
                # kafka-python 3.0 keeps its position in what it gave up, over a generation that it
                # misses, too: it would read and commit what another has long done since.
                for partition in assigned:
                    member._consumer._subscription.assignment[partition] = TopicPartitionState()
                member._say_taken(assigned)

            def on_partitions_revoked(self, revoked: Iterable[Any]) -> None:
                voice.given_up(revoked)

            def on_partitions_lost(self, lost: Iterable[Any]) -> None:
                voice.lost(lost)

        self._consumer.subscribe([place.topic], listener=Listener())

    def _say_taken(self, partitions: Iterable[Any]) -> None:
        now = self._consumer.group_metadata()
        self._voice.taken(partitions, generation=now.generation_id, member_id=now.member_id)

    def work(self) -> None:
        from kafka import OffsetAndMetadata
        from kafka import TopicPartition as Partition
        from kafka.errors import KafkaConnectionError, KafkaError

        try:
            # A join that ends between two polls it forgets, and begins another.
            found = self._consumer.poll(timeout_ms=1_000, max_records=RECORDS_AT_ONCE)
        except KafkaConnectionError:
            return  # A node is dead; it finds the others.
        processed = [(each.partition, each.offset) for batch in found.values() for each in batch]
        if not processed:
            return
        self._voice.processed(processed)
        positions = next_positions(processed)
        try:
            self._consumer.commit(
                {
                    Partition(self._place.topic, partition): OffsetAndMetadata(offset, "", -1)
                    for partition, offset in positions.items()
                }
            )
        except KafkaError:
            return  # It came too late, or its coordinator is dead: the same as above.
        self._voice.committed(positions)

    def leave(self) -> None:
        from kafka.errors import KafkaConnectionError

        with contextlib.suppress(KafkaConnectionError):
            self._consumer.close()


async def aiokafka(place: Place, voice: Voice, leaves: asyncio.Event) -> None:
    """A member from its first to its last moment: the others' `work` and `leave`."""
    from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener
    from aiokafka import TopicPartition as Partition
    from aiokafka.coordinator.assignors.range import RangePartitionAssignor
    from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
    from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
    from aiokafka.errors import KafkaError

    assignors = (RangePartitionAssignor, RoundRobinPartitionAssignor, StickyPartitionAssignor)
    consumer: Any = AIOKafkaConsumer(
        bootstrap_servers=place.bootstrap,
        client_id=voice.name,
        group_id=place.topic,
        partition_assignment_strategy=[each for each in assignors if each.name == place.assignor],
        session_timeout_ms=SESSION_MS,
        heartbeat_interval_ms=HEARTBEAT_MS,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    at_work = asyncio.Lock()
    """It rebalances beside its application, which is to be made an end of first."""

    class Listener(ConsumerRebalanceListener):  # type: ignore[misc]
        async def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
            mine = consumer._coordinator
            voice.taken(assigned, generation=mine.generation, member_id=mine.member_id)

        async def on_partitions_revoked(self, revoked: Iterable[Any]) -> None:
            async with at_work:
                thrown_out = consumer._coordinator.generation < 0
                (voice.lost if thrown_out else voice.given_up)(revoked)

    await consumer.start()
    # Only now, for to start it would wait for its first join and fail with it.
    consumer.subscribe([place.topic], listener=Listener())
    while not leaves.is_set():
        try:
            found = await consumer.getmany(
                timeout_ms=int(POLL_S * 1_000), max_records=RECORDS_AT_ONCE
            )
        except KafkaError:
            # It does not know "rebalance in progress" as the answer to JoinGroup, as a group gives
            # it that changes its protocol; it goes on by itself.
            continue
        async with at_work:
            mine = consumer.assignment()
            records = [each for where, batch in found.items() if where in mine for each in batch]
            if not records:
                continue
            processed = [(each.partition, each.offset) for each in records]
            voice.processed(processed)
            positions = next_positions(processed)
            try:
                await consumer.commit(
                    {Partition(place.topic, each): at for each, at in positions.items()}
                )
            except KafkaError:
                continue
            voice.committed(positions)
    await consumer.stop()


# A process of them

Start = Callable[[str], Callable[[], None]]
"""Begins a member by name; returns what asks it to leave, for which nobody waits."""


def told_by_standard_input(start: Start) -> None:
    members: dict[str, Callable[[], None]] = {}
    for line in sys.stdin:
        what, name = line.split()
        if what == "add":
            members[name] = start(name)
        else:
            members.pop(name)()
    for leave in members.values():
        leave()


def in_threads(client: Callable[[Place, Voice], Member], place: Place) -> None:
    """Each has an application of its own, as in life. Were one thread to serve several, it could
    wait in one's commit, which stands behind that one's JoinGroup, which waits for another to be
    served."""

    def live(voice: Voice, leaves: threading.Event) -> None:
        try:
            member = client(place, voice)
            while not leaves.is_set():
                member.work()
            member.leave()
            voice.dead()
        except BaseException as error:
            voice.failed(error)

    def start(name: str) -> Callable[[], None]:
        leaves = threading.Event()
        threading.Thread(target=live, args=(Voice(name), leaves), name=name).start()
        return leaves.set

    told_by_standard_input(start)


async def in_tasks(place: Place) -> None:
    loop = asyncio.get_running_loop()

    async def live(voice: Voice, leaves: asyncio.Event) -> None:
        try:
            await aiokafka(place, voice, leaves)
            voice.dead()
        except Exception as error:
            voice.failed(error)

    async with asyncio.TaskGroup() as members:

        def start(name: str) -> Callable[[], None]:
            leaves = asyncio.Event()
            loop.call_soon_threadsafe(lambda: members.create_task(live(Voice(name), leaves)))

            def leave() -> None:
                loop.call_soon_threadsafe(leaves.set)

            return leave

        await asyncio.to_thread(told_by_standard_input, start)


def main() -> None:
    client, *place = sys.argv[1:]
    if client == "aiokafka":
        asyncio.run(in_tasks(Place(*place)))
    elif client == "kafka-python":
        in_threads(KafkaPython, Place(*place))
    else:
        in_threads(Confluent, Place(*place))


if __name__ == "__main__":
    main()
