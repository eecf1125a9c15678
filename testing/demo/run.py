"""The demo from start to verdict."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from ..live_replicas import differences
from ..local_cluster import LocalCluster, NotInTime
from ..log_files import partition_folder, stored_batches
from .read_back import Comparison, compare, read_everything
from .sabotage import cut_batch
from .source_lines import source_lines
from .workload import Ack, Workload

TOPIC = "source"
PARTITIONS = 3
REPLICAS = 3
VICTIM_PARTITION = 0
"""Its leader is killed."""

KILL_FROM = 0.35
KILL_BEFORE = 0.6
"""Part of the records that is produced at most before the kill, so that acknowledgements, which
come in batches, cannot run past 70 % between two looks."""

ISR_LOOK_SECONDS = 0.1

_STARTED = time.monotonic()


@dataclass(frozen=True, slots=True)
class Verdict:
    held: bool
    line: str


@dataclass(frozen=True, slots=True)
class _Failover:
    """What the kill cost."""

    leaderless_seconds: float
    rejoin_seconds: float


def run_demo(records: int, *, sabotage: bool) -> Verdict:
    """Raises NotInTime or RuntimeError when it cannot be finished. No process is left."""
    lines = source_lines(records)
    with LocalCluster(nodes=3) as cluster:
        try:
            verdict = _run_in(cluster, lines, sabotage=sabotage)
        except (NotInTime, RuntimeError):
            _keep(cluster)
            raise
        if not verdict.held and not sabotage:
            _keep(cluster)
        return verdict


def _run_in(cluster: LocalCluster, lines: list[bytes], *, sabotage: bool) -> Verdict:
    _say(f"3 nodes on {cluster.bootstrap_servers}")
    _create_topic(cluster)
    workload = Workload(cluster.bootstrap_servers, TOPIC, lines)
    failover = _kill_and_restart(cluster, workload)
    workload.finish()
    if workload.failures:
        _say(f"{len(workload.failures)} records were given up: {workload.failures[0]}")
    cluster.wait_in_sync(TOPIC)
    _say(f"{workload.acknowledged} records acknowledged; every replica is in sync")
    differing = differences(cluster, TOPIC, PARTITIONS)
    if sabotage:
        _sabotage(cluster, workload)
    everything = read_everything(cluster.bootstrap_servers, TOPIC, PARTITIONS)
    comparison = compare(workload, lines, everything)
    comparison.complaints += differing
    for complaint in comparison.complaints:
        _say(complaint)
    return _verdict(comparison, failover)


def _say(sentence: str) -> None:
    print(f"{time.monotonic() - _STARTED:6.1f} s  {sentence}", flush=True)


def _keep(cluster: LocalCluster) -> None:
    cluster.keep_folder()
    _say(f"the nodes' folders are kept in {cluster.folder.path}")


def _create_topic(cluster: LocalCluster) -> None:
    body = {"name": TOPIC, "partitions": PARTITIONS, "replication_factor": REPLICAS}
    answer = cluster.post("/api/v1/topics", body)
    if answer is None or answer.status != 201:
        raise RuntimeError(f"topic {TOPIC} was not created: {answer}")
    cluster.wait_in_sync(TOPIC)


def _kill_and_restart(cluster: LocalCluster, workload: Workload) -> _Failover:
    size = workload.size
    workload.run_until(
        lambda: workload.acknowledged >= KILL_FROM * size,
        "a third of the records acknowledged",
        up_to=int(KILL_BEFORE * size),
    )
    victim = cluster.wait_leader(TOPIC, VICTIM_PARTITION)
    part = 100 * workload.acknowledged / size
    _say(f"SIGKILL for node {victim}, leader of partition {VICTIM_PARTITION}, at {part:.0f} %")
    produced_before = workload.produced
    acks: list[Ack] = []
    workload.listen(lambda ack: acks.append(ack) if ack.partition == VICTIM_PARTITION else None)
    killed_at = time.monotonic()
    cluster.kill(victim)
    # A record produced after the kill can only have been acknowledged by the new leader.
    workload.run_until(
        lambda: bool(acks) and acks[-1].number >= produced_before, "a new leader's acknowledgement"
    )
    _say("a new leader acknowledges; the killed node is started again")
    started_at = time.monotonic()
    cluster.start(victim, wait=False)
    workload.run_until(
        _now_and_then(lambda: cluster.is_in_sync(TOPIC)), f"node {victim} back in the ISR"
    )
    rejoined_at = time.monotonic()
    workload.listen(lambda ack: None)
    next_leaders_first = _first_of_next_leader(cluster, victim)
    first_ack = min(ack.at for ack in acks if ack.offset >= next_leaders_first)
    _say(f"node {victim} is back in the ISR")
    return _Failover(first_ack - killed_at, rejoined_at - started_at)


def _first_of_next_leader(cluster: LocalCluster, victim: int) -> int:
    """The first offset that was appended after the victim led: answers that were on their way
    when it died came in after the kill, but for offsets below this one."""
    survivor = next(node_id for node_id in cluster.node_ids if node_id != victim)
    folder = partition_folder(cluster.data_dir(survivor), TOPIC, VICTIM_PARTITION)
    first_epoch = None
    for batch in stored_batches(folder):
        if first_epoch is None:
            first_epoch = batch.leader_epoch
        if batch.leader_epoch > first_epoch:
            return batch.base_offset
    raise RuntimeError(f"{folder} holds one leader epoch only")


def _now_and_then(look: Callable[[], bool]) -> Callable[[], bool]:
    """Ask at most every ISR_LOOK_SECONDS: the answer costs the nodes a request."""
    next_look = 0.0

    def looked() -> bool:
        nonlocal next_look
        if time.monotonic() < next_look:
            return False
        next_look = time.monotonic() + ISR_LOOK_SECONDS
        return look()

    return looked


def _sabotage(cluster: LocalCluster, workload: Workload) -> None:
    last = workload.last_ack
    assert last is not None
    for node_id in cluster.node_ids:
        cluster.kill(node_id)
    data_dirs = [cluster.data_dir(node_id) for node_id in cluster.node_ids]
    count = cut_batch(data_dirs, TOPIC, last.partition, last.offset)
    _say(f"SABOTAGE: the last {count} records of partition {last.partition} are cut out of all")
    for node_id in cluster.node_ids:
        cluster.start(node_id, wait=False)
    cluster.wait_ready()
    cluster.wait_in_sync(TOPIC)


def _verdict(comparison: Comparison, failover: _Failover) -> Verdict:
    counts = f"acknowledged={comparison.acknowledged} read={comparison.read} lost={comparison.lost}"
    if not comparison.held:
        return Verdict(False, f"demo: violation | {counts}")
    return Verdict(
        True,
        f"demo: held | {counts} leaderless_s={failover.leaderless_seconds:.2f} "
        f"rejoin_s={failover.rejoin_seconds:.2f}",
    )
