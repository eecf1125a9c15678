"""A run of the churn from start to verdict."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from ..demo.read_back import Comparison, compare, read_everything
from ..demo.source_lines import source_lines
from ..demo.workload import Workload
from ..live_replicas import differences
from ..local_cluster import LocalCluster, NotInTime
from .schedule import Fault, Step, steps

TOPICS = ("churn-1", "churn-2", "churn-3")
"""One for each producer, so that its order can be told."""

PARTITIONS = 3
REPLICAS = 3
NODES = 3

RECORDS_PER_SECOND = 300
"""Of each producer."""

MIN_KILLS = 6

SYNC_SECONDS = 180.0

PAGE_CACHE_SETTINGS = {"log.flush.interval.messages": "9223372036854775807"}


@dataclass(frozen=True, slots=True)
class Verdict:
    held: bool
    acknowledged: int
    read: int
    faults: Counter[Fault]
    complaints: list[str]

    @property
    def line(self) -> str:
        counts = f"acknowledged={self.acknowledged} read={self.read}"
        lost = f"lost={self.acknowledged - self.read}"
        done = " ".join(
            f"{name}={self.faults[fault]}"
            for name, fault in (
                ("kills", Fault.KILL),
                ("pauses", Fault.PAUSE),
                ("stops", Fault.STOP),
                ("kills_of_all", Fault.KILL_ALL),
            )
        )
        return f"churn: {'held' if self.held else 'violation'} | {counts} {lost} {done}"


def run_churn(seconds: float, *, synced: bool, seed: int) -> Verdict:
    """Raises NotInTime or RuntimeError when it cannot be finished. No process is left."""
    settings = None if synced else PAGE_CACHE_SETTINGS
    with LocalCluster(nodes=NODES, settings=settings) as cluster:
        try:
            verdict = _run_in(cluster, seconds, synced=synced, seed=seed)
        except (NotInTime, RuntimeError):
            cluster.keep_folder()
            print(f"the nodes' folders are kept in {cluster.folder.path}", flush=True)
            raise
        if not verdict.held:
            cluster.keep_folder()
            print(f"the nodes' folders are kept in {cluster.folder.path}", flush=True)
        return verdict


def _run_in(cluster: LocalCluster, seconds: float, *, synced: bool, seed: int) -> Verdict:
    for topic in TOPICS:
        body = {"name": topic, "partitions": PARTITIONS, "replication_factor": REPLICAS}
        answer = cluster.post("/api/v1/topics", body)
        if answer is None or answer.status != 201:
            raise RuntimeError(f"topic {topic} was not created: {answer}")
    _wait_in_sync(cluster)
    lines = source_lines(int(seconds * RECORDS_PER_SECOND))
    workloads = [Workload(cluster.bootstrap_servers, topic, lines) for topic in TOPICS]
    with ThreadPoolExecutor(1) as worker:
        schedule = steps(cluster.node_ids, synced=synced, seed=seed)
        hurting = worker.submit(_hurt, cluster, schedule, time.monotonic() + seconds, synced)
        _produce_steadily(workloads, hurting)
        faults = hurting.result()
    for workload in workloads:
        workload.finish()
    _wait_in_sync(cluster)
    comparisons = [_compare(cluster, workload, lines) for workload in workloads]
    return Verdict(
        held=all(comparison.held for comparison in comparisons),
        acknowledged=sum(comparison.acknowledged for comparison in comparisons),
        read=sum(comparison.read for comparison in comparisons),
        faults=faults,
        complaints=[text for comparison in comparisons for text in comparison.complaints],
    )


def _produce_steadily(workloads: list[Workload], until: Future[Counter[Fault]]) -> None:
    """At an even pace while the nodes are hurt: what is not taken now waits in the client."""
    began = time.monotonic()
    while not until.done():
        due = int((time.monotonic() - began) * RECORDS_PER_SECOND)
        for workload in workloads:
            target = min(due, workload.size)
            workload.run_until(
                lambda workload=workload, target=target: workload.produced >= target,  # type: ignore[misc]
                "room for another record",
                up_to=target,
            )
            workload.poll()
        time.sleep(0.01)


def _hurt(
    cluster: LocalCluster, schedule: Iterator[Step], until: float, synced: bool
) -> Counter[Fault]:
    """Carry out steps up to that time, and on until there were MIN_KILLS: a busy machine starts
    nodes slowly. Every node runs when this returns."""
    done: Counter[Fault] = Counter()
    for step in schedule:
        if time.monotonic() >= until and done[Fault.KILL] >= MIN_KILLS:
            return done
        if not synced:
            _wait_in_sync(cluster)
        _carry_out(cluster, step)
        done[step.fault] += 1
        time.sleep(step.rest_seconds)
    return done


def _carry_out(cluster: LocalCluster, step: Step) -> None:
    if step.fault is Fault.PAUSE:
        cluster.pause(step.node_id)
        time.sleep(step.away_seconds)
        cluster.resume(step.node_id)
        return
    victims = cluster.node_ids if step.fault is Fault.KILL_ALL else [step.node_id]
    for node_id in victims:
        if step.fault is Fault.STOP:
            cluster.stop(node_id)
        else:
            cluster.kill(node_id)
    time.sleep(step.away_seconds)
    for node_id in victims:
        cluster.start(node_id, wait=False)
    cluster.wait_ready(SYNC_SECONDS)


def _wait_in_sync(cluster: LocalCluster) -> None:
    for topic in TOPICS:
        cluster.wait_in_sync(topic, SYNC_SECONDS)


def _compare(cluster: LocalCluster, workload: Workload, lines: list[bytes]) -> Comparison:
    topic = workload.topic
    differing = differences(cluster, topic, PARTITIONS)
    everything = read_everything(cluster.bootstrap_servers, topic, PARTITIONS)
    comparison = compare(workload, lines, everything)
    comparison.complaints += differing
    return comparison
