"""One schedule from start to verdict, on real processes."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

from ...client.failure import Failure
from ...seam import SystemClock
from ...testing import LocalCluster, NotInTime
from ..clients import OBSERVER, Journal, TopicPartition
from ..cluster_scope.workload import Workload
from ..history import History, Recorder, read_history
from ..history.written import WrittenHistory
from ..judge import Judgement
from ..schedule import Schedule, Topic
from ..schedule.schedule import OFFSETS_TOPIC
from ..simulation.dice import stream
from .caretaker import Caretaker
from .coverage import Coverage
from .disk_faults import DiskFaults
from .draw import drawable
from .judging import judge_history
from .keeper import Keeper
from .means import STRACE, Means, find_means
from .network_faults import NetworkFaults
from .outcome import Floors, Tally, Word, unavailable
from .process_faults import Do, ProcessFaults
from .replicas import divergences, ends_by_node, replicas
from .stand import CLOCKS, VOLUMES, Stand
from .strikes import Strikes, refuse_unknown
from .view import RunView

SCHEDULE, HISTORY, REPORT, COVERAGE = (
    "schedule.json",
    "history.jsonl",
    "report.html",
    "coverage.txt",
)
CLUSTER = "cluster"
"""The nodes' folders; kept unless the run held."""

LOOK_S = 0.1
TOPICS_S = 120.0
CLIENTS_END_S = 120.0
"""The batch on its way is decided within this once a producer is told to stop, and the life of a
topic that comes and goes is over."""


Sabotage = Callable[[LocalCluster, History], None]


class Stuck(Exception):
    """After the last heal something did not come in time."""


@dataclass(slots=True)
class Outcome:
    word: Word
    tally: Tally
    folder: Path
    coverage: Coverage
    reasons: list[str] = field(default_factory=list)
    means: list[str] = field(default_factory=list)
    """What hurt the nodes, and what was skipped."""

    @property
    def line(self) -> str:
        return self.tally.line(self.word)


class _Promises:
    """`clients.Witness`: when each partition acknowledged, and what may never be seen."""

    def __init__(self) -> None:
        self.answers: dict[str, list[float]] = {}
        self.deleted: dict[str, int] = {}
        """Up to which offset deletion was asked for."""
        self.violations: list[str] = []

    def acknowledged(self, partition: TopicPartition, offset: int, value: bytes) -> None:
        del offset, value
        self.answers.setdefault(partition.key, []).append(time.monotonic())

    def consumed(self, partition: TopicPartition, offset: int, value: bytes) -> None:
        pass

    def deleting(self, partition: TopicPartition, before: int) -> None:
        self.deleted[partition.key] = before

    def may_begin_at(self, partition: TopicPartition) -> int:
        return self.deleted.get(partition.key, 0)

    def may_end_before(self, partition: TopicPartition) -> bool:
        """Nothing here is outside the guarantee (`strikes.refuse_unknown`)."""
        return False

    def leads_in(self, partition: TopicPartition, node_id: int) -> int | None:
        """Who leads is asked for now and then only."""
        return None

    def violation(self, text: str) -> None:
        self.violations.append(text)


def run_schedule(
    schedule: Schedule,
    folder: Path,
    *,
    means: Means | None = None,
    sabotage: Sabotage | None = None,
) -> Outcome:
    """Everything of the run goes into the new `folder`. Raises NotBuilt before anything starts.

    `means`: without, those that are found and need no root. `sabotage`: a control; called when the
    replicas are at rest, to take something from them.
    """
    refuse_unknown(schedule)
    folder.mkdir(parents=True)
    (folder / SCHEDULE).write_bytes(schedule.to_json())
    means = means or find_means(root=False)
    cluster = LocalCluster(
        schedule.nodes, directory=str(folder / CLUSTER), settings=schedule.settings
    )
    with (folder / HISTORY).open("wb", buffering=0) as file:
        try:
            with cluster:
                run = _Run(schedule, cluster, Recorder(file), means, sabotage)
                asyncio.run(run.go(folder))
        except (Failure, NotInTime) as error:
            reasons = [f"the cluster does not come up: {error}"]
            return Outcome(Word.UNDECIDED, Tally(), folder, Coverage([]), reasons, means.lines())
    outcome = _judged(run, folder)
    for name in (VOLUMES, CLOCKS, *([CLUSTER] if outcome.word is Word.HELD else [])):
        shutil.rmtree(folder / name, ignore_errors=True)
    return outcome


class _Clients:
    """Their tasks, all of which end with the run."""

    clock = SystemClock()

    def __init__(self, background: asyncio.TaskGroup) -> None:
        self._background = background
        self._tasks: list[asyncio.Task[Any]] = []

    def spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        self._tasks.append(self._background.create_task(work))
        return self._tasks[-1]

    def cancel(self) -> None:
        for task in self._tasks:
            task.cancel()


class _ClientSide(NamedTuple):
    """`cluster_scope.workload.ClientSide`: the workload is the simulation's."""

    addresses: Mapping[int, tuple[str, int]]
    client_host: _Clients


class _Run:
    def __init__(
        self,
        schedule: Schedule,
        cluster: LocalCluster,
        recorder: Recorder,
        means: Means,
        sabotage: Sabotage | None,
    ) -> None:
        self.schedule = schedule
        self.means = means
        self.skipped: Counter[str] = Counter()
        self.outside: Counter[str] = Counter()
        self.lives = 0
        """Topics that came and went."""
        synced = all(map(schedule.is_synced, schedule.topics))
        self.coverage = Coverage(
            (kind, role) for kind, role in drawable(synced=synced) if means.of(kind) is not None
        )
        self.tally = Tally()
        self.promises = _Promises()
        self.violations: list[str] = []
        self._cluster = cluster
        self._sabotage = sabotage
        self._journal = Journal(time.monotonic_ns, self.promises)
        self._journal.history = WrittenHistory(recorder)
        topics = [topic.name for topic in schedule.topics]
        if schedule.groups:
            topics.append(OFFSETS_TOPIC)
        self._view = RunView(cluster, topics, self._journal)

    async def go(self, folder: Path) -> None:
        async with (
            Stand(self._cluster, self.schedule.seed, self.means, folder) as stand,
            asyncio.TaskGroup() as background,
        ):
            clients = _Clients(background)
            side = _ClientSide(stand.addresses, clients)
            workload = Workload(self.schedule, side, self._journal)
            try:
                await self._hurt_and_settle(stand, workload, clients)
            except Stuck as stuck:
                self.violations.append(f"stuck: {stuck}")
            clients.cancel()
        workload.name_homes(self._view.partitions(OFFSETS_TOPIC))
        self.tally.operations = len(self._journal.history)
        self.tally.acknowledged = self._journal.acknowledged
        self.tally.strikes = self.coverage.strikes
        self.tally.kinds = len(self.coverage.kinds)

    async def _hurt_and_settle(
        self,
        stand: Stand,
        workload: Workload,
        clients: _Clients,
    ) -> None:
        try:
            await workload.create_topics(within_s=TOPICS_S)
        except TimeoutError as error:
            raise Stuck(str(error)) from None
        clients.spawn(self._view.watch())
        await self._until(self._view.is_whole, "the cluster does not come up")
        keeper = Keeper(self._cluster)
        kinds = self._kinds(stand, keeper, clients)
        strikes = Strikes(self._view, self._journal, self.coverage, kinds, self.schedule)
        began = time.monotonic()
        workload.start()
        await asyncio.gather(
            strikes.carry_out(self.schedule.faults),
            asyncio.sleep(self.schedule.hurt_ms / 1000),
        )
        partitions = [
            TopicPartition(topic.name, number).key
            for topic in self.schedule.topics
            for number in range(topic.partitions)
        ]
        answers = [self.promises.answers.get(key, []) for key in partitions]
        self.tally.unavailable_s = unavailable(answers, began, time.monotonic())
        self.skipped, self.outside = strikes.skipped, strikes.outside
        self.tally.leaders_killed = keeper.leaders_killed
        self.violations += [*keeper.failures, *keeper.dead()]
        await self._settle(workload)

    def _kinds(self, stand: Stand, keeper: Keeper, clients: _Clients) -> dict[str, Do]:
        caretaker = Caretaker(self._cluster, keeper)
        clients.spawn(caretaker.mind())
        dice = stream(self.schedule.seed, "damage")
        disks = DiskFaults(
            self._cluster, keeper, stand.volumes, caretaker, dice, traces=self.means.has(STRACE)
        )
        network = NetworkFaults(stand.links, self._cluster.node_ids, stand.reset, stand.walls)
        return {
            **ProcessFaults(self._cluster, keeper).kinds,
            **network.kinds,
            **disks.kinds,
            **({} if stand.clocks is None else stand.clocks.kinds),
        }

    async def _settle(self, workload: Workload) -> None:
        progress = workload.progress()
        await self._until(progress, "after the last heal some partition acknowledges nothing")
        try:
            # Also of nodes that hold no replica: they are asked at the end, too.
            await asyncio.to_thread(self._cluster.wait_ready, self.schedule.settle_ms / 1000)
        except NotInTime as error:
            raise Stuck(str(error)) from None
        await self._until(self._view.is_whole, "not every replica is in sync again")
        workload.stop_producers()
        await self._until(workload.producers_done, "a producer does not end", CLIENTS_END_S)
        workload.finish_groups()
        await self._until(workload.groups_done, "a group does not catch up")
        self.lives = sum(churned.lives for churned in workload.churned)
        if self._sabotage is not None:
            await asyncio.to_thread(self._sabotage, self._cluster, self._journal.history)
        # Bytes that a disk has changed and nobody has read yet come to light now.
        topics = self.schedule.topics
        workload.read_replicas(await asyncio.to_thread(ends_by_node, self._cluster, topics))
        await self._until(workload.replicas_read, "not every replica can be read")
        await self._until(self._view.is_whole, "not every replica is in sync after all was read")
        ends: dict[str, int] = {}
        for topic in topics:
            self.violations += await self._divergences(topic)
            for replica in await asyncio.to_thread(replicas, self._cluster, topic):
                self._journal.observe(OBSERVER, "replica", replica)
                ends[replica["key"]] = replica["high_watermark"]
        workload.read_everything(ends)
        await self._until(workload.everything_read, "not everything can be read")
        self.tally.read_everything = True

    async def _divergences(self, topic: Topic) -> list[str]:
        """A replica that has just found damage needs a while to be cut and filled again."""
        end = time.monotonic() + self.schedule.settle_ms / 1000
        while True:
            try:
                found = await asyncio.to_thread(divergences, self._cluster, topic)
            except NotInTime as error:
                raise Stuck(str(error)) from None
            if not found or time.monotonic() > end:
                return found
            await asyncio.sleep(LOOK_S)

    async def _until(self, condition: Callable[[], bool], text: str, within_s: float = 0) -> None:
        end = time.monotonic() + (within_s or self.schedule.settle_ms / 1000)
        while not condition():
            if time.monotonic() > end:
                raise Stuck(f"{text}: {self._view.state()}")
            await asyncio.sleep(LOOK_S)


def _judged(run: _Run, folder: Path) -> Outcome:
    """By what is on disk, not by what this process remembers."""
    history = read_history(folder / HISTORY)
    seen = [*run.violations, *run.promises.violations]
    floors = Floors.of(run.schedule.hurt_ms / 60_000)
    judgement, word, reasons = judge_history(history, run.tally, floors, seen)
    means = [
        *run.means.lines(),
        *(f"skipped {count} times: {kind}" for kind, count in sorted(run.skipped.items())),
        *(
            f"left out {count} times, the guarantee would not have been in force: {kind}"
            for kind, count in sorted(run.outside.items())
        ),
        f"topics that came and went: {run.lives}",
    ]
    outcome = Outcome(word, run.tally, folder, run.coverage, reasons, means)
    _write_report(outcome, judgement, history)
    return outcome


def _write_report(outcome: Outcome, judgement: Judgement, history: History) -> None:
    path = outcome.folder / REPORT
    judgement.write_report(path, history, title=outcome.line)
    page = path.read_text(encoding="utf-8")
    means = "".join(f"<li>{escape(line)}</li>" for line in outcome.means)
    page += f"{outcome.coverage.html()}<h2>Means</h2><ul>{means}</ul>"
    path.write_text(page, encoding="utf-8")
    text = "\n".join([outcome.coverage.text(), *outcome.means, ""])
    (outcome.folder / COVERAGE).write_text(text, encoding="utf-8")
