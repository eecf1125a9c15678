"""Consumer groups: how soon members get partitions, takeover, commits, a large group, idle cost.

    python benchmarks/groups.py [members] [large] [idle] [--rounds 10] [--seconds 20] [--write]

The members are bare connections in one process (`group_members.py`) which shares the machine with
three nodes; records are synced. "Missed": not answered within the heartbeat interval, or answered
with an error; what a member does about the answer, joining again say, is not its time. By the
consumer protocol joining is a heartbeat, too, and its time begins before the connection is made.
How late that process itself wakes is told beside: it is part of every time. CPU is read from /proc.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from random import Random

from figures import Figure, machine, table, tell
from group_members import ClassicMember, Connection, ConsumerMember, Member, Topic, coordinator_of
from run import IDLE_S, TICKS_PER_S, compile_as_installed, cpu_ticks

from logboat.groups import OFFSETS_TOPIC
from logboat.testing import LocalCluster
from logboat.wire import ApiKey, ErrorCode
from logboat.wire.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from logboat.wire.messages.metadata import MetadataRequest, MetadataResponse
from logboat.wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse

OFFSETS_PARTITIONS = 4
"""What `cluster up` writes."""

SESSION_MS = 2_000
INTERVAL_S = 0.2
"""Of classic members; the others are told theirs."""

SETTINGS: dict[str, str | int] = {
    "group.min.session.timeout.ms": SESSION_MS,
    "group.consumer.session.timeout.ms": SESSION_MS,
    "group.consumer.heartbeat.interval.ms": 200,
}

BIG_GROUP = 500
BIG_SETTINGS: dict[str, str | int] = {
    "group.consumer.session.timeout.ms": 10_000,
    "group.consumer.heartbeat.interval.ms": 2_000,
}
BIG_INTERVAL_S = 2.0
BIG_SESSION_MS = 10_000

LOOK_S = 0.005

IDLE_LASTS = 5
"""One round of it, with three clusters made and left alone, takes a minute: as many of the other
rounds."""

COMMITTERS = 128
"""Connections, each with one commit in flight."""

CommitTopic = OffsetCommitRequest.OffsetCommitRequestTopic
CommitPartition = CommitTopic.OffsetCommitRequestPartition

Make = Callable[[str], Member]


class Stand:
    """A cluster with one topic, and members of it by protocol."""

    def __init__(self, cluster: LocalCluster, topic: Topic) -> None:
        self.cluster = cluster
        self.topic = topic
        self._addresses: dict[str, str] = {}

    @classmethod
    async def of(cls, cluster: LocalCluster, partitions: int) -> Stand:
        await _create_offsets_topic(cluster)
        body = {"name": "read", "partitions": partitions, "replication_factor": 1}
        await asyncio.to_thread(cluster.post, "/api/v1/topics", body)
        await asyncio.to_thread(cluster.wait_in_sync, "read")
        connection = Connection(cluster.node(1).kafka)
        name = MetadataRequest.MetadataRequestTopic(name="read")
        found = await connection.ask(
            ApiKey.METADATA, 12, MetadataRequest(topics=[name]), MetadataResponse
        )
        connection.cut()
        return cls(cluster, Topic("read", found.topics[0].topic_id, partitions))

    def address(self, group_id: str) -> str:
        """Of the group's coordinator, which does not move."""
        found = self._addresses.get(group_id)
        if found is None:
            node = coordinator_of(self.cluster, group_id, OFFSETS_PARTITIONS)
            found = self._addresses[group_id] = self.cluster.node(node).kafka
        return found

    def classic(self, group_id: str) -> Member:
        return ClassicMember(
            self.address(group_id),
            group_id,
            self.topic,
            interval_s=INTERVAL_S,
            session_ms=SESSION_MS,
        )

    def consumer(self, group_id: str) -> Member:
        return ConsumerMember(self.address(group_id), group_id, self.topic)


async def _create_offsets_topic(cluster: LocalCluster) -> None:
    """The first question for a coordinator creates it."""
    connection = Connection(cluster.node(1).kafka)
    request = FindCoordinatorRequest(key_type=0, coordinator_keys=["first"])
    await connection.ask(ApiKey.FIND_COORDINATOR, 4, request, FindCoordinatorResponse)
    connection.cut()
    await asyncio.to_thread(cluster.wait_in_sync, OFFSETS_TOPIC)


async def until(members: Sequence[Member], done: Callable[[], bool], timeout_s: float) -> float:
    """Seconds until it is so."""
    changed = asyncio.Event()
    for member in members:
        member.on_change = changed.set
    started = time.monotonic()
    async with asyncio.timeout(timeout_s):
        while not done():
            changed.clear()
            await changed.wait()
            for member in members:
                member.check()
    return time.monotonic() - started


async def first_assignment(stand: Stand, make: Make, group_id: str) -> float:
    """Two new members of a new group, 50 ms apart: until both read their half."""
    one, other = make(group_id), make(group_id)
    half = stand.topic.partitions // 2
    one.start()
    await asyncio.sleep(0.05)
    other.start()
    seconds = await until(
        [one, other], lambda: len(one.owned) == half and len(other.owned) == half, 30
    )
    await one.leave()
    await other.leave()
    return seconds


async def takeover(stand: Stand, make: Make, group_id: str, pause_s: float) -> float:
    """Seconds from a member's death until another reads all that it read."""
    one, other = make(group_id), make(group_id)
    half, all_of_it = stand.topic.partitions // 2, stand.topic.partitions
    one.start()
    other.start()
    both = [one, other]
    await until(both, lambda: len(one.owned) == half and len(other.owned) == half, 30)
    await asyncio.sleep(pause_s)
    await one.kill()
    seconds = await until([other], lambda: len(other.owned) == all_of_it, 30)
    await other.leave()
    return seconds


async def members_come_and_die(rounds: int) -> list[Figure]:
    bar = "0.5 s"
    figures = [
        Figure("two new members have their halves, classic", "s", bar),
        Figure("two new members have their halves, consumer", "s", bar),
        Figure("takeover beyond the session timeout, classic", "s", bar),
        Figure("takeover beyond the session timeout, consumer", "s", bar),
    ]
    dice = Random(1)
    with LocalCluster(nodes=3, settings=SETTINGS) as cluster:
        stand = await Stand.of(cluster, 12)
        for number in range(rounds):
            pause_s = dice.uniform(1, 2)
            measured: list[Awaitable[float]] = [
                takeover(stand, stand.classic, f"tc{number}", pause_s),
                takeover(stand, stand.consumer, f"tn{number}", pause_s),
            ]
            figures[0].values.append(await first_assignment(stand, stand.classic, f"fc{number}"))
            figures[1].values.append(await first_assignment(stand, stand.consumer, f"fn{number}"))
            for figure, seconds in zip(figures[2:], await asyncio.gather(*measured), strict=True):
                figure.values.append(seconds - SESSION_MS / 1000)
    return figures


async def commits(seconds: float) -> list[Figure]:
    """One coordinator, 3 replicas, synced; every connection commits as soon as it may again."""
    counted = 0
    latencies: list[float] = []
    with LocalCluster(nodes=3) as cluster:
        stand = await Stand.of(cluster, COMMITTERS)
        address = stand.address("commits")
        coordinator = coordinator_of(cluster, "commits", OFFSETS_PARTITIONS)
        end = time.monotonic() + seconds

        async def commit(partition: int) -> None:
            nonlocal counted
            connection = Connection(address)
            offset = 0
            while (started := time.monotonic()) < end:
                offset += 1
                part = CommitPartition(partition_index=partition, committed_offset=offset)
                topic = CommitTopic(name=stand.topic.name, partitions=[part])
                request = OffsetCommitRequest(group_id="commits", topics=[topic])
                answer = await connection.ask(
                    ApiKey.OFFSET_COMMIT, 8, request, OffsetCommitResponse
                )
                assert answer.topics[0].partitions[0].error_code == ErrorCode.NONE
                counted += 1
                latencies.append(time.monotonic() - started)
            connection.cut()

        before = cpu_ticks(cluster.pid(coordinator))
        await asyncio.gather(*(commit(partition) for partition in range(COMMITTERS)))
        used = (cpu_ticks(cluster.pid(coordinator)) - before) / TICKS_PER_S
    latencies.sort()
    return [
        Figure("commits on one coordinator", "/s", "2,000 /s", [counted / seconds]),
        Figure(
            "99th percentile of a commit then",
            "ms",
            "none",
            [1_000 * latencies[len(latencies) * 99 // 100]],
        ),
        Figure("coordinator's CPU per commit", "us", "none", [used / counted * 1e6]),
    ]


async def big_group(seconds: float) -> list[Figure]:
    figures = []
    with LocalCluster(nodes=3, settings=BIG_SETTINGS) as cluster:
        stand = await Stand.of(cluster, BIG_GROUP)

        def classic(group_id: str) -> Member:
            return ClassicMember(
                stand.address(group_id),
                group_id,
                stand.topic,
                interval_s=BIG_INTERVAL_S,
                session_ms=BIG_SESSION_MS,
            )

        for name, make in (("classic", classic), ("consumer", stand.consumer)):
            figures += await _big_group(stand, name, make, seconds)
    return figures


async def _big_group(stand: Stand, protocol: str, make: Make, seconds: float) -> list[Figure]:
    """All of them join within a second; then one leaves and one comes."""
    members = [make(f"big-{protocol}") for _ in range(BIG_GROUP)]
    lateness = Lateness()
    started = time.monotonic()
    for member in members:
        member.start()
        await asyncio.sleep(1 / BIG_GROUP)
    everybody = len(members)
    await until(members, lambda: sum(len(m.owned) == 1 for m in members) == everybody, 90)
    settled = time.monotonic() - started
    await asyncio.sleep(seconds / 2)
    await members.pop().leave()
    members.append(make(f"big-{protocol}"))
    members[-1].start()
    await asyncio.sleep(seconds / 2)
    beats = [took for member in members for took in member.beats.seconds]
    errors: dict[str, int] = {}
    for member in members:
        member.check()
        for error, count in member.beats.errors.items():
            errors[error] = errors.get(error, 0) + count
    late = sum(took > BIG_INTERVAL_S for took in beats)
    print(f"{protocol}: {len(beats)} heartbeats, {late} late, {errors}", file=sys.stderr)
    await asyncio.gather(*(member.kill() for member in members))
    late_ms = await lateness.stop()
    return [
        Figure(
            f"500 members, {protocol}: heartbeats missed",
            f"of {len(beats)}",
            "0",
            [float(late + sum(errors.values()))],
        ),
        Figure(f"500 members, {protocol}: each reads one partition after", "s", "none", [settled]),
        Figure(f"500 members, {protocol}: slowest heartbeat", "ms", "none", [1_000 * max(beats)]),
        Figure("the members' program then wakes late by at most", "ms", "none", [late_ms]),
    ]


class Lateness:
    """How late the loop of the members' program wakes, which is no fault of a coordinator."""

    def __init__(self) -> None:
        self._most_s = 0.0
        self._task = asyncio.create_task(self._watch())

    async def _watch(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + LOOK_S
            await asyncio.sleep(LOOK_S)
            self._most_s = max(self._most_s, loop.time() - due)

    async def stop(self) -> float:
        """Milliseconds."""
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task
        return 1_000 * self._most_s


def idle_cpu(offsets_partitions: int) -> float:
    """Percent of a core, the mean of three nodes."""
    settings: dict[str, str | int] = {"offsets.topic.num.partitions": offsets_partitions}
    with LocalCluster(nodes=3, settings=settings) as cluster:
        asyncio.run(_create_offsets_topic(cluster))
        time.sleep(3.0)
        pids = [cluster.pid(node_id) for node_id in cluster.node_ids]
        before = sum(map(cpu_seconds, pids))
        time.sleep(IDLE_S)
        used = sum(map(cpu_seconds, pids)) - before
        return 100 * used / len(pids) / IDLE_S


def cpu_seconds(pid: int) -> float:
    """Of all threads, more exactly than in ticks."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


def idle(rounds: int) -> list[Figure]:
    """With 3 each node follows both others; then the partitions alone make the difference."""
    bars = {
        1: "what it costs to be there",
        3: "every node follows both others",
        50: "as with 3",
    }
    figures = {
        count: Figure(f"idle CPU with {count} offsets partitions", "% of a core", bar)
        for count, bar in bars.items()
    }
    for _ in range(rounds):
        for count, figure in figures.items():
            figure.values.append(idle_cpu(count))
            print(f"{figure.name}: {figure.values[-1]:.2f} {figure.unit}", file=sys.stderr)
    return list(figures.values())


def sections(arguments: argparse.Namespace) -> Iterator[tuple[str, str, list[Figure]]]:
    """(title, what it is about, figures) of each that is wanted, one after the other."""
    wanted = arguments.sections or ("members", "large", "idle")
    if "members" in wanted:
        figures = asyncio.run(members_come_and_die(arguments.rounds))
        figures += asyncio.run(commits(arguments.seconds / 2))
        times = f"session timeout {SESSION_MS / 1000:g} s, heartbeats every {INTERVAL_S:g} s"
        yield "Consumer groups", times, figures
    if "large" in wanted:
        times = f"session timeout {BIG_SESSION_MS / 1000:g} s, heartbeats every {BIG_INTERVAL_S} s"
        yield "A group of 500 members", times, asyncio.run(big_group(arguments.seconds))
    if "idle" in wanted:
        rounds = max(1, arguments.rounds // IDLE_LASTS)
        yield "Idle offsets partitions", f"{IDLE_S:g} s each", idle(rounds)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("sections", nargs="*", help="members, large, idle; all of them")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    compile_as_installed()

    for title, about, figures in sections(arguments):
        text = (
            f"Machine: {machine()}. Clients and three nodes share it. `benchmarks/groups.py`, "
            f"{about}.\n\n" + table(figures)
        )
        tell(title, text, write=arguments.write)
    return 0


if __name__ == "__main__":
    sys.exit(main())
