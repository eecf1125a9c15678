"""One schedule from start to verdict."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ..clients import Journal, TopicPartition
from ..history import Recorder
from ..history.written import WrittenHistory
from ..schedule import Schedule, generate
from ..schedule.schedule import OFFSETS_TOPIC
from ..simulation import World
from ..simulation.cluster import Cluster
from ..simulation.errors import HostFailed, NotReached, SimEscape, WatchdogExpired
from ..simulation.scope import SeedResult
from .controls import broken_by
from .disks import Key, NodeDisk
from .inject import Injector
from .judging import judge_history, replica_divergence
from .ledger import Ledger
from .observing import observe_batches, observe_partition
from .stage import Stage
from .supervisor import Supervisor
from .watched import Watch
from .workload import Workload

COMES_UP_S = 30.0
"""A cluster without faults is there within this, topics made."""
LOOK_S = 0.1
CLIENTS_END_S = 15.0
"""The batch on its way is decided within this once a producer is told to stop."""

LEAST_SIMULATED_S = 30.0
LEAST_ACKNOWLEDGED = 300
LEAST_STRIKES = 6
LEAST_KINDS = 3
LEAST_LEADER_CHANGES = 1

PROCESSOR_S = 120.0
"""Seconds of processor time for a run: a control may spin for ever."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What, besides the seed, makes the run."""

    nodes: int = 3
    bug: str | None = None
    schedule: Schedule | None = None
    """Instead of those that seeds give."""
    path: str = ""
    """Of the file that the schedule came from."""
    histories: Path | None = None
    """The folder into which each seed's history is written."""

    def seeds(self) -> range | None:
        seed = None if self.schedule is None else self.schedule.seed
        return None if seed is None else range(seed, seed + 1)

    def run(self, seed: int) -> SeedResult:
        schedule = self.schedule or generate(seed, nodes=self.nodes)
        if self.histories is None:
            return run_schedule(schedule, bug=self.bug)
        self.histories.mkdir(parents=True, exist_ok=True)
        with (self.histories / f"{seed}.jsonl").open("wb") as file:
            return run_schedule(schedule, bug=self.bug, recorder=Recorder(file))

    def arguments(self, seed: int) -> str:
        """The options of the command that repeat it."""
        said = f"--seeds {seed}:{seed + 1} --nodes {self.nodes}"
        if self.schedule is not None:
            said = f"--schedule {self.path}"
        return said if self.bug is None else f"{said} --bug {self.bug}"


def run_schedule(
    schedule: Schedule,
    *,
    bug: str | None = None,
    floors: bool = True,
    recorder: Recorder | None = None,
) -> SeedResult:
    """`bug`: a control, see `controls`; a run ends when that has shown itself, unless a history is
    wanted. Without `floors` a run may be as short as its schedule, and need not have been hard.
    `recorder` writes the history down while it comes about."""
    result = SeedResult(schedule.seed)
    level = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with broken_by(bug), World(schedule.seed, processor_limit_s=PROCESSOR_S) as world:
            shown = bug is not None and recorder is None
            _Run(world, schedule, result, recorder, floors=floors, until_violation=shown).go()
            result.digest = world.trace.digest()
    except WatchdogExpired as error:
        result.stuck.append(f"spins: {error}")
    finally:
        logging.disable(level)
    return result


class _Seen(Exception):
    """A control has shown itself."""


class _Run:
    def __init__(
        self,
        world: World,
        schedule: Schedule,
        result: SeedResult,
        recorder: Recorder | None,
        *,
        floors: bool,
        until_violation: bool,
    ) -> None:
        self._has_floors = floors
        self._until_violation = until_violation
        self._world = world
        self._schedule = schedule
        self._result = result
        world.network.defaults.latency_s = schedule.network.get("latency_us", 100) / 1e6
        world.network.defaults.jitter_s = schedule.network.get("jitter_us", 100) / 1e6
        sync_s = schedule.disk.get("sync_us", 300) / 1e6
        cluster = Cluster(world, nodes=schedule.nodes, settings=schedule.settings)
        passing = [f"{churn.topic.name}-" for churn in schedule.churn]
        cached = [topic.name for topic in schedule.topics if not schedule.is_synced(topic)]
        compacted = [topic for topic in schedule.topics if schedule.is_compacted(topic)]
        retention = {topic.name: schedule.retention(topic) for topic in schedule.topics}
        self._ledger = Ledger(
            lambda: world.turns,
            lambda: world.now,
            passing=passing,
            cached=cached,
            compacted=[topic.name for topic in compacted],
            forgetful=[topic.name for topic in compacted if schedule.forgets_tombstones(topic)],
            retention={topic: kept for topic, kept in retention.items() if kept is not None},
        )
        for number, host in cluster.hosts.items():
            host.drive.sync_latency_s = sync_s
            self._ledger.disks[number] = NodeDisk(
                number,
                host.drive,
                self._ledger,
                compacted=[topic.name for topic in compacted],
            )
        self._watch = Watch(world, self._ledger)
        groups = [group.name for group in schedule.groups]
        self._stage = Stage(world, cluster, self._watch, groups)
        self._supervisor = Supervisor(self._stage, sync_s=sync_s, most_damaged=schedule.damageable)
        self._journal = Journal(lambda: int(world.now * 1e9), self._ledger)
        if recorder is not None:
            self._journal.history = WrittenHistory(recorder)
        self._ledger.on_partition = partial(observe_partition, self._journal)
        self._ledger.on_start = self._journal.outlived
        self._injector = Injector(self._stage, self._supervisor, self._journal, sync_s=sync_s)
        self._workload = Workload(schedule, cluster, self._journal)

    def go(self) -> None:
        result = self._result
        with self._watch.installed():
            try:
                self._hurt_and_settle()
            except _Seen:
                pass
            except NotReached as error:
                result.stuck.append(f"stuck: {str(error)[:300]}")
            except (HostFailed, SimEscape) as error:
                result.violations.append(f"failed: {str(error)[:300]}")
        self._workload.name_homes(self._stage.partitions(OFFSETS_TOPIC))
        result.acknowledged = self._journal.acknowledged
        result.faults = self._injector.coverage.strikes
        result.cells = self._injector.coverage.cells
        result.simulated_s = self._world.now
        result.violations += [*self._ledger.violations, *self._supervisor.unexplained]
        if not result.stuck:
            # Of a run that is broken already the checkers would only say it again.
            if not result.violations:
                given_up = tuple(self._ledger.given_up)
                result.violations += judge_history(self._journal.history, given_up)
            result.stuck += self._floors() if self._has_floors else []

    def _floors(self) -> list[str]:
        reached = (
            (self._world.now, LEAST_SIMULATED_S, "simulated seconds"),
            (self._journal.acknowledged, LEAST_ACKNOWLEDGED, "acknowledged records"),
            (self._injector.coverage.strikes, LEAST_STRIKES, "faults"),
            (len(self._injector.coverage.kinds), LEAST_KINDS, "kinds of faults"),
            (self._ledger.leader_changes, LEAST_LEADER_CHANGES, "leader changes"),
        )
        return [
            f"floor: {value:g} {what}, at least {floor:g} are needed"
            for value, floor, what in reached
            if value < floor
        ]

    def _hurt_and_settle(self) -> None:
        self._come_up()
        self._workload.start()
        healed_at = self._injector.schedule(self._schedule.faults)
        hurt_until = self._world.now + self._schedule.hurt_ms / 1000
        self._pass(max(healed_at, hurt_until) - self._world.now)
        progress = self._workload.progress()
        self._await(progress, "after the last heal some partition acknowledges nothing")
        self._await(self._whole, "not every replica is in sync again")
        if self._has_floors:
            self._world.run(max(0.0, LEAST_SIMULATED_S - self._world.now))
        self._workload.stop_producers()
        self._await(self._workload.producers_done, "a producer does not end", CLIENTS_END_S)
        self._workload.finish_groups()
        self._await(self._workload.groups_done, "a group does not catch up")
        self._await(self._settled, "the replicas do not settle")
        # Bytes that a disk has changed and nobody has read yet come to light now.
        self._workload.read_replicas(self._replica_ends())
        self._await(self._workload.replicas_read, "not every replica can be read")
        self._await(self._at_rest, "the replicas do not come to rest")
        self._await(lambda: not self._ledger.left_over(), "deleted partitions stay on disks")
        self._workload.read_everything(self._ends())
        self._await(self._workload.everything_read, "not everything can be read")
        self._observe_batches()
        self._ledger.check_everything()
        for divergence in replica_divergence(self._ledger, self._ends()):
            self._ledger.violation(divergence)

    def _observe_batches(self) -> None:
        """Where no loss is excused, idempotent producers leave neither hole nor repeat."""
        kept = [partition.key for partition in self._workload.kept_partitions()]
        for key, partition in self._ledger.partitions():
            is_whole = key not in self._ledger.given_up and not self._ledger.compacted.has(key)
            if key in kept and is_whole:
                start = self._ledger.start(key)
                batches = self._ledger.disks[partition.leader].batches(key)
                left = [batch for batch in batches if batch.base_offset >= start]
                observe_batches(self._journal, key, start, left)

    def _await(self, condition: Callable[[], bool], text: str, within_s: float = 0.0) -> None:
        end = self._world.now + (within_s or self._schedule.settle_ms / 1000)
        while not condition():
            if self._world.now > end:
                raise NotReached(f"{text}: {self._state()}")
            self._pass(LOOK_S)

    def _pass(self, seconds: float) -> None:
        """Let time pass. Raises _Seen."""
        if not self._until_violation:
            self._world.run(seconds)
            return
        end = self._world.now + seconds
        while self._world.now < end:
            self._world.run(min(LOOK_S, end - self._world.now))
            if self._ledger.violations:
                raise _Seen

    def _state(self) -> str:
        groups = [group.state() for group in self._workload.groups]
        return ", ".join([*self._partition_states(), *self._ledger.left_over(), *groups])

    def _partition_states(self) -> list[str]:
        return [
            f"{key} leader {partition.leader} epoch {partition.leader_epoch} isr "
            f"{partition.isr} elr {partition.elr}"
            for key, partition in self._ledger.partitions()
        ]

    def _come_up(self) -> None:
        self._stage.cluster.start()
        created = self._workload.create_topics(within_s=COMES_UP_S)
        self._await(created.done, "the topics are not created", COMES_UP_S + 1)
        try:
            created.result()
        except TimeoutError as error:
            raise NotReached(f"the topics are not created: {error}") from None
        self._await(self._whole, "the cluster does not come up", COMES_UP_S)

    def _whole(self) -> bool:
        """Every replica of every partition is in sync, and every voter's directory is pinned."""
        expected = sum(topic.partitions for topic in self._schedule.topics)
        partitions = [partition for _, partition in self._ledger.partitions()]
        return (
            len(partitions) >= expected
            and not self._supervisor.unpinned
            and all(len(p.isr) == len(p.replicas) and p.leader >= 0 for p in partitions)
        )

    def _ends(self) -> dict[Key, int]:
        """Each partition's high watermark on its leader; -1 where nobody leads."""
        return {
            key: self._watch.high_watermark(partition.leader, key)
            for key, partition in self._ledger.partitions()
        }

    def _replica_ends(self) -> dict[int, dict[TopicPartition, int]]:
        ends = self._ends()
        of_nodes: dict[int, dict[TopicPartition, int]] = {}
        for key, partition in self._ledger.partitions():
            topic, _, number = key.rpartition("-")
            for node_id in partition.replicas:
                of_nodes.setdefault(node_id, {})[TopicPartition(topic, int(number))] = ends[key]
        return of_nodes

    def _settled(self) -> bool:
        """Every replica is in sync and knows what its leader knows committed."""
        ends = self._ends()
        return self._whole() and all(
            self._watch.high_watermark(node_id, key) == ends[key]
            for key, partition in self._ledger.partitions()
            for node_id in partition.replicas
        )

    def _at_rest(self) -> bool:
        """And all logs end there, by the whole batches on their disks."""
        ends = self._ends()
        return self._settled() and all(
            self._ledger.disks[node_id].end(key) == ends[key]
            for key, partition in self._ledger.partitions()
            for node_id in partition.replicas
        )
