"""A schedule from a seed: what kind of cluster, what work, and which faults, one on top of another.

The faults come in strokes, most of them single, some as the pairs that have lost data elsewhere
(`_STROKES`), some to where other seeds have not been (`quests`); about a quarter of the time is
quiet, so that the cluster gets well in between and the next stroke meets one that has something to
lose.

What is drawn stays inside the guarantee of synced topics: at most min ISR - 1 disks are damaged,
always the same ones: whoever plays the role that a damage is meant for, until so many are, then one
of those (`cluster_scope.supervisor`). So any loss of theirs is a violation. Power is cut from
whomever: of topics that trust the page cache the ledger says which records were still promised.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from random import Random

from ..simulation.dice import stream
from .coverage import Cell, Phase
from .kinds import Option
from .options import (
    ALTER_PARTITION,
    CONTROLLER_APIS,
    FETCH,
    GROUP_APIS,
    OF_ONE_API,
    PRODUCE,
    draw_options,
)
from .quests import COORDINATOR, has_group, quests
from .schedule import (
    PROTOCOLS,
    RESENDS,
    Churn,
    Consumers,
    Fault,
    Group,
    Producers,
    Schedule,
    Target,
    Topic,
    Trims,
)

HURT_MS = 26_000
FIRST_FAULT_MS = 800
QUIET_MS = 1_800
"""Within this of the end nothing new begins."""

TOPIC = "orders"
CACHED_TOPIC = "clicks"
GROUP = "readers"
COORDINATOR_OF_GROUP = Target(COORDINATOR, group=GROUP)

EVENTS_TOPIC = "events"
"""Of which the oldest records go."""
STATES_TOPIC = "states"
"""Of which the last record of each key stays."""
RETENTIONS: Sequence[Mapping[str, str]] = (
    {"retention.bytes": "3000", "retention.ms": "-1"},
    {"retention.bytes": "12000", "retention.ms": "-1"},
    {"retention.ms": "1000"},
    {"retention.ms": "4000"},
)
LIFETIME_SETTINGS = {"log.retention.check.interval.ms": "300", "log.cleaner.backoff.ms": "200"}

PASSING_TOPIC = "passing"
"""Of the topics that come and go."""

WELL_AGAIN_MS = 2_500
"""After the last heal the cluster is probably whole."""


def generate(seed: int, *, nodes: int = 3) -> Schedule:
    """The schedule of `seed`. Needs three nodes or more."""
    drawn = _with_trims(_without_group(seed, nodes), stream(seed, "trims"))
    drawn = _with_pipelines(drawn, stream(seed, "pipelines"))
    drawn = _with_late_words(drawn, stream(seed, "late words"))
    drawn = _with_lifetimes(drawn, stream(seed, "lifetimes"))
    return _with_group(drawn, stream(seed, "groups")) if has_group(seed) else drawn


def _with_trims(schedule: Schedule, dice: Random) -> Schedule:
    """By dice of its own, as groups are."""
    if dice.random() < 0.7:
        return schedule
    interval_ms = dice.choice((300, 1_000))
    trims = Trims(TOPIC, keep_records=dice.choice((20, 60)), interval_ms=interval_ms)
    return replace(schedule, trims=(trims,))


def _with_pipelines(schedule: Schedule, dice: Random) -> Schedule:
    """In half of the seeds idempotent producers have several batches in flight, and added faults
    leave those unanswered, or refused one after the other. By dice of its own."""
    if dice.random() < 0.5:
        return schedule
    producers = tuple(
        replace(
            producers,
            batch_records=dice.choice((1, 2)),
            in_flight=dice.choice((2, 5, 5)),
            resend=dice.choice(RESENDS),
            patience_ms=dice.choice((400, 800, 2_000)),
        )
        if producers.idempotent
        else producers
        for producers in schedule.producers
    )
    topic = schedule.topics[0]
    added: list[Fault] = []
    for _ in range(2):
        at = FIRST_FAULT_MS + dice.randrange(HURT_MS - QUIET_MS - 5_000)
        stroke = dice.choice((_unanswered, _refused, _unheard))
        added += stroke(dice, at, Target("leader", topic.name, dice.randrange(topic.partitions)))
    faults = sorted([*schedule.faults, *added], key=lambda fault: fault.at_ms)
    return replace(schedule, producers=producers, faults=tuple(faults))


def _unanswered(dice: Random, at: int, leader: Target) -> list[Fault]:
    """What a leader has appended is sent again to whoever comes after it."""
    lost: dict[str, Option] = {"api": PRODUCE, "silently": dice.random() < 0.5}
    kind = dice.choice(("kill", "restart", "pause", "power-cut"))
    return [
        Fault(at, "lost-responses", leader, 700, lost),
        Fault(at + 200 + dice.randrange(500), kind, leader, 300 + dice.randrange(2_000)),
    ]


def _refused(dice: Random, at: int, leader: Target) -> list[Fault]:
    """Batches are refused, until a follower is back between one and the next."""
    followers = [replace(leader, role="follower", number=number) for number in range(2)]
    return [Fault(at, "restart", who, 500 + dice.randrange(700)) for who in followers]


def _unheard(dice: Random, at: int, leader: Target) -> list[Fault]:
    """Batches wait in the buffers of a leader that their producer has given up by then."""
    kind = dice.choice(("pause", "stall", "clients-cut"))
    return [
        Fault(at, kind, leader, 300 + dice.randrange(2_500)),
        Fault(at + 150 + dice.randrange(400), "reset", leader, 100),
    ]


def _with_late_words(schedule: Schedule, dice: Random) -> Schedule:
    """In a third of the seeds something that a node was asked or told arrives when it is no longer
    true. By dice of its own."""
    if dice.random() < 0.65:
        return schedule
    topic = dice.choice(schedule.topics)
    leader = Target("leader", topic.name, dice.randrange(topic.partitions))
    at = FIRST_FAULT_MS + dice.randrange(HURT_MS - QUIET_MS - 9_000)
    added = dice.choice((_let_in_twice, _copied_late, _copied_late))(dice, at, leader)
    faults = sorted([*schedule.faults, *added], key=lambda fault: fault.at_ms)
    return replace(schedule, faults=tuple(faults))


def _let_in_twice(dice: Random, at: int, leader: Target) -> list[Fault]:
    """A leader asks for a follower to be let in, and asks again; when the first request arrives
    the follower has left once more."""
    slow: dict[str, Option] = {"sync_ms": 700}
    late: dict[str, Option] = {"api": ALTER_PARTITION, "by_ms": 3_500 + dice.randrange(1_500)}
    follower = replace(leader, role="follower", number=dice.randrange(2))
    return [
        Fault(at, "slow-disk", follower, 1_700, slow),
        Fault(at + 1_600, "late-requests", Target("controller"), 1_500, late),
        Fault(at + 3_900, "slow-disk", follower, 3_000, slow),
    ]


def _copied_late(dice: Random, at: int, leader: Target) -> list[Fault]:
    """A leader that one follower does not hear is gone by the time at which its answer reaches the
    other one."""
    number = dice.randrange(2)
    follower = replace(leader, role="follower", number=number)
    late: dict[str, Option] = {"api": FETCH, "by_ms": 1_000 + dice.randrange(2_500)}
    far: dict[str, Option] = {"latency_ms": dice.choice((20, 100, 150)), "jitter_ms": 10}
    kind = dice.choice(("kill", "kill", "power-cut", "pause"))
    gone = at + 500 + dice.randrange(400)
    return [
        Fault(at, "bridge", follower, 3_500),
        Fault(at + 280, "late-responses", leader, 400, late),
        Fault(gone, kind, leader, 2_500 + dice.randrange(1_500)),
        Fault(gone, "delay", follower, 3_500, far),
    ]


def _with_lifetimes(schedule: Schedule, dice: Random) -> Schedule:
    """In a third of the seeds there is a topic that lets records go by itself: the oldest, or those
    that later ones of their key replace. Some faults strike it. By dice of its own."""
    if dice.random() < 0.65:
        return schedule
    base = schedule.topics[0]
    kept = {"min.insync.replicas": base.configs["min.insync.replicas"]}
    kept["segment.ms"] = dice.choice(("400", "1000"))
    if dice.random() < 0.5:
        topic = Topic(EVENTS_TOPIC, 1, base.replication_factor, {**kept, **dice.choice(RETENTIONS)})
        producers = Producers(topic.name, idempotent=dice.random() < 0.5, batch_records=3)
    else:
        compacted = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.1"}
        gone = dice.choice(({}, {"delete.retention.ms": "1500"}))
        topic = Topic(STATES_TOPIC, 1, base.replication_factor, {**kept, **compacted, **gone})
        producers = Producers(
            topic.name,
            idempotent=dice.random() < 0.5,
            batch_records=dice.choice((1, 3)),
            keys=dice.choice((4, 12)),
            tombstones=0.1,
        )
    faults = tuple(_perhaps_at(topic, fault, dice) for fault in schedule.faults)
    return replace(
        schedule,
        topics=(*schedule.topics, topic),
        producers=(*schedule.producers, replace(producers, interval_ms=120)),
        consumers=(*schedule.consumers, Consumers(topic.name)),
        faults=faults,
        settings={**schedule.settings, **LIFETIME_SETTINGS},
    )


def _perhaps_at(topic: Topic, fault: Fault, dice: Random) -> Fault:
    """Some of those that were meant for another topic's leader or followers."""
    if fault.target.role not in ("leader", "follower") or dice.random() < 0.6:
        return fault
    return replace(fault, target=replace(fault.target, topic=topic.name, partition=0))


def _with_group(schedule: Schedule, dice: Random) -> Schedule:
    """Some faults meant for leaders strike its coordinator. By dice of its own."""
    group = Group(
        GROUP,
        schedule.topics[0].name,
        members=dice.choice((2, 3)),
        session_timeout_ms=dice.choice((800, 2_000)),
        life_ms=dice.choice((3_000, 8_000)),
        protocol=dice.choice(PROTOCOLS),
    )
    faults = tuple(_perhaps_at_coordinator(fault, group, dice) for fault in schedule.faults)
    settings = {**schedule.settings, **group.settings}
    return replace(schedule, groups=(group,), faults=faults, settings=settings)


def _perhaps_at_coordinator(fault: Fault, group: Group, dice: Random) -> Fault:
    """What is lost there is what members ask of it."""
    if fault.target.role == "leader" and dice.random() < 0.4:
        fault = replace(fault, target=COORDINATOR_OF_GROUP)
    if fault.target.role == COORDINATOR and fault.kind in OF_ONE_API:
        api = dice.choice(GROUP_APIS[group.protocol])
        fault = replace(fault, options={**fault.options, "api": api})
    return fault


def _without_group(seed: int, nodes: int) -> Schedule:
    """All else; quests of seeds that have a group are aimed at its coordinator already."""
    dice = stream(seed, "schedule")
    replication_factor = 3 if nodes < 5 else dice.choice((3, 5))
    min_isr = 2 if replication_factor == 3 else 3
    topics = _topics(dice, replication_factor, min_isr)
    return Schedule(
        seed=seed,
        nodes=nodes,
        topics=topics,
        producers=_producers(dice, topics),
        consumers=tuple(Consumers(topic.name) for topic in topics),
        churn=_churn(dice, replication_factor, min_isr),
        faults=_Faults(
            dice,
            topics,
            nodes=nodes,
            damageable=dice.sample(range(1, nodes + 1), min_isr - 1),
            cells=quests(seed),
        ).draw(),
        settings={
            "default.replication.factor": str(replication_factor),
            "min.insync.replicas": str(min_isr),
            "replica.lag.time.max.ms": dice.choice(("800", "1500", "4000")),
            "replica.fetch.wait.max.ms": dice.choice(("100", "500")),
            "replica.high.watermark.checkpoint.interval.ms": dice.choice(("400", "5000")),
        },
        network=dict(zip(("latency_us", "jitter_us"), _latency(dice), strict=True)),
        disk={"sync_us": dice.choice((300, 300, 3_000, 20_000))},
        hurt_ms=HURT_MS,
    )


def _topics(dice: Random, replication_factor: int, min_isr: int) -> tuple[Topic, ...]:
    configs = {"min.insync.replicas": str(min_isr)}
    # Rolls are where indexes, snapshots and directories change hands.
    roll = dice.choice(({"segment.ms": "700"}, {"segment.ms": "2500"}, {}))
    # Each partition is a key of the history.
    partitions = dice.choice((2, 2, 2, 6))
    orders = Topic(TOPIC, partitions, replication_factor, {**configs, **roll})
    if dice.random() < 0.8:
        return (orders,)
    return (
        orders,
        Topic(CACHED_TOPIC, 1, replication_factor, {**configs, "flush.messages": "9"}),
    )


def _producers(dice: Random, topics: Sequence[Topic]) -> tuple[Producers, ...]:
    found = []
    for topic in topics:
        for idempotent in (True, False):
            found.append(
                Producers(
                    topic.name,
                    idempotent=idempotent,
                    batch_records=dice.choice((3, 4, 6)),
                    record_bytes=dice.choice((40, 40, 800)),
                    interval_ms=dice.choice((120, 180)),
                )
            )
    return tuple(found)


def _churn(dice: Random, replication_factor: int, min_isr: int) -> tuple[Churn, ...]:
    if dice.random() < 0.6:
        return ()
    configs = {"min.insync.replicas": str(min_isr)}
    passing = Topic(PASSING_TOPIC, dice.choice((1, 3)), replication_factor, configs)
    altered = TOPIC if dice.random() < 0.5 else ""
    idempotent = dice.random() < 0.5
    return (Churn(passing, dice.choice((1, 2)), idempotent, altered, interval_ms=400),)


def _latency(dice: Random) -> tuple[int, int]:
    return dice.choice(((100, 100), (1_000, 1_000), (500, 6_000)))


Stroke = Callable[["_Faults", int], int]
"""Adds faults from a time on; returns the time at which the last of them is over."""


class _Faults:
    def __init__(
        self,
        dice: Random,
        topics: Sequence[Topic],
        *,
        nodes: int,
        damageable: Sequence[int],
        cells: Sequence[Cell],
    ) -> None:
        self._dice = dice
        self._topics = topics
        self._nodes = nodes
        self._damageable = damageable
        self._quests = list(cells)
        self._damages_left = 1 if dice.random() < 0.5 else 0
        self._faults: list[Fault] = []

    def draw(self) -> tuple[Fault, ...]:
        dice = self._dice
        at = FIRST_FAULT_MS + dice.randrange(400)
        # Whatever else happens: a leader goes for longer than its session.
        forced = dice.randrange(4)
        number = 0
        while at < HURT_MS - QUIET_MS:
            if number == forced:
                over = self._add(at, "kill", self._leader(), 1_500 + dice.randrange(1_000))
            elif self._quests and number > forced and number % 2:
                over = self._quest(at, self._quests.pop(0))
            else:
                strokes = [stroke for stroke, weight in _STROKES.items() for _ in range(weight)]
                over = dice.choice(strokes)(self, at)
            number += 1
            if number % 4 == 0:
                at = over + 1_500 + dice.randrange(1_000)
            elif dice.random() < 0.3:
                at += 100 + dice.randrange(600)
            else:
                at = over + dice.randrange(900)
        return tuple(sorted(self._faults, key=lambda fault: fault.at_ms))

    def _add(
        self,
        at_ms: int,
        kind: str,
        target: Target,
        for_ms: int,
        options: Mapping[str, Option] | None = None,
    ) -> int:
        self._faults.append(Fault(at_ms, kind, target, for_ms, options or {}))
        return at_ms + for_ms

    # Whom

    def _leader(self) -> Target:
        topic = self._dice.choice(self._topics)
        return Target("leader", topic.name, self._dice.randrange(topic.partitions))

    def _follower(self) -> Target:
        topic = self._dice.choice(self._topics)
        partition = self._dice.randrange(topic.partitions)
        return Target("follower", topic.name, partition, self._dice.randrange(2))

    def _node(self) -> Target:
        return Target("node", number=1 + self._dice.randrange(self._nodes))

    def _anybody(self) -> Target:
        draw = self._dice.choice(
            (self._leader, self._leader, self._follower, self._follower, self._node)
        )
        return self._dice.choice((draw(), draw(), Target("controller")))

    def _damageable_node(self) -> Target:
        return Target("node", number=self._dice.choice(list(self._damageable)))

    def _short(self) -> int:
        """Shorter than a session."""
        return 100 + self._dice.randrange(600)

    def _duration(self) -> int:
        return self._short() if self._dice.random() < 0.5 else 1_000 + self._dice.randrange(2_000)

    # Strokes

    def _one(self, at: int, kinds: Sequence[str], *, least_ms: int = 0) -> int:
        kind = self._dice.choice(kinds)
        options = draw_options(self._dice, kind)
        return self._add(at, kind, self._anybody(), self._duration() + least_ms, options)

    def _process(self, at: int) -> int:
        return self._one(at, ("kill", "kill", "pause", "pause", "stall", "restart"))

    def _power(self, at: int) -> int:
        if self._dice.random() < 0.25:
            kind = self._dice.choice(("blackout", "blackout", "kill-all"))
            options = draw_options(self._dice, kind)
            return self._add(at, kind, Target("all"), self._short(), options)
        return self._one(at, ("power-cut",))

    def _network(self, at: int) -> int:
        kinds = ("isolate", "isolate", "halves", "ring", "bridge", "clients-cut")
        return self._one(at, kinds, least_ms=300)

    def _slowness(self, at: int) -> int:
        return self._one(at, ("delay", "reorder", "loss", "slow-disk", "reset"))

    def _lost(self, at: int) -> int:
        kind = self._dice.choice(("lost-responses", "lost-responses", "lost-requests"))
        options = draw_options(self._dice, kind)
        at_controller = options["api"] in CONTROLLER_APIS
        target = Target("controller") if at_controller else self._leader()
        return self._add(at, kind, target, self._duration(), options)

    def _disk(self, at: int) -> int:
        return self._one(at, ("failed-sync", "full-disk", "write-error", "read-error"))

    def _damage(self, at: int) -> int:
        """Once in a run, on a disk that may be damaged."""
        if not self._damages_left:
            return self._disk(at)
        self._damages_left -= 1
        kind = self._dice.choice(("bit-flip", "misdirected-write", "stale-block", "wiped-disk"))
        options = draw_options(self._dice, kind)
        return self._add(at, kind, self._damageable_node(), self._duration(), options)

    def _clock(self, at: int) -> int:
        return self._one(at, ("clock-step", "clock-skew"))

    def _last_replica(self, at: int) -> int:
        """One after the other until one is left, which loses what it had not synced (KIP-966)."""
        first = self._add(at, "kill", self._follower(), 2_500)
        self._add(at + 400, "kill", self._follower(), 2_000)
        self._add(at + 1_300, "power-cut", self._leader(), self._short(), {"keep": "none"})
        return first

    def _deposed(self, at: int) -> int:
        """A leader that does not know that it was deposed goes on serving clients."""
        over = self._add(at, "isolate", self._leader(), 2_500, {"clients": False})
        self._add(at + 1_700, "power-cut", self._follower(), self._short(), {"keep": "none"})
        return over

    def _quick_return(self, at: int) -> int:
        """A leader is back before anybody has missed it, without what it had not synced."""
        options: dict[str, Option] = {"keep": self._dice.choice(("none", "prefix"))}
        return self._add(at, "power-cut", self._leader(), 100 + self._dice.randrange(300), options)

    def _sync_then_power(self, at: int) -> int:
        """What a failed sync dropped, the page cache still shows: until power is cut."""
        target = self._node()
        self._add(at, "failed-sync", target, 300)
        return self._add(at + 700, "power-cut", target, self._short(), {"keep": "all"})

    def _two_leaders_one_after_the_other(self, at: int) -> int:
        target = self._leader()
        self._add(at, "kill", target, 2_200)
        return self._add(at + 1_400, "power-cut", target, self._duration(), {"keep": "none"})

    def _slow_then_power(self, at: int) -> int:
        """What a node confirms before its slow disk has it is gone with the power."""
        target = self._node()
        slow = {"sync_ms": self._dice.choice((100, 400))}
        over = self._add(at, "slow-disk", target, 2_000, slow)
        lost = at + 500 + self._dice.randrange(1_000)
        return max(over, self._add(lost, "power-cut", target, self._short(), {"keep": "none"}))

    def _there_and_back(self, at: int) -> int:
        """A leader that cannot copy what it appends is deposed, cut back, and leads again before
        its clients have reached anybody else: what was cut must be forgotten altogether."""
        old = self._leader()
        self._add(at, "isolate", old, 1_700, {"clients": False})
        # By then another one leads, out of the clients' reach and not for long.
        self._add(at + 1_300, "clients-cut", old, 2_400)
        return self._add(at + 2_700 + self._dice.randrange(400), "kill", old, 1_500)

    def _while_it_recovers(self, at: int) -> int:
        """A node goes down again while it is still reading its logs, or cutting them."""
        target = self._node()
        keep = {"keep": self._dice.choice(("none", "prefix", "any"))}
        over = self._add(at, "power-cut", target, 600 + self._dice.randrange(1_500), keep)
        again = over + 10 + self._dice.randrange(self._dice.choice((60, 600)))
        kind = self._dice.choice(("power-cut", "power-cut", "kill"))
        return self._add(again, kind, target, self._short(), keep if kind == "power-cut" else {})

    def _while_a_replica_joins(self, at: int) -> int:
        """A follower is back and about to join; who decides upon that goes, or who asks for it."""
        over = self._add(at, "kill", self._follower(), 1_500)
        who = self._dice.choice((Target("controller"), self._leader()))
        kind = self._dice.choice(("kill", "pause", "isolate"))
        return self._add(over + 200 + self._dice.randrange(900), kind, who, self._duration())

    def _before_it_is_copied(self, at: int) -> int:
        """The leader goes with records that its followers are slow to fetch."""
        topic = self._dice.choice(self._topics)
        partition = self._dice.randrange(topic.partitions)
        late = {"latency_ms": 100, "jitter_ms": 150}
        for number in range(2):
            follower = Target("follower", topic.name, partition, number)
            self._add(at, "delay", follower, 1_500, late)
        leader = Target("leader", topic.name, partition)
        kind = self._dice.choice(("kill", "power-cut", "isolate", "restart"))
        options = draw_options(self._dice, kind)
        return self._add(at + 700, kind, leader, self._duration() + 900, options)

    # Quests

    def _quest(self, at: int, cell: Cell) -> int:
        """One fault of this kind, on who plays this role, in this phase of the cluster."""
        kind, role, phase = cell
        over = max((fault.at_ms + fault.for_ms for fault in self._faults), default=0)
        at = max(at, over + WELL_AGAIN_MS)
        topic = self._dice.choice(self._topics)
        partition = self._dice.randrange(topic.partitions)
        strikes_at = at
        if phase is Phase.CATCHING_UP:
            # A dead follower leaves the ISR, and has something to fetch when it is back.
            follower = Target("follower", topic.name, partition, 0)
            self._add(at, "kill", follower, 1_500 + self._dice.randrange(1_500))
            strikes_at += 500 + self._dice.randrange(2_000)
        elif phase is Phase.LEADERLESS:
            # The leader is gone, and that has not been noticed or not been decided upon.
            leader = Target("leader", topic.name, partition)
            self._add(at, "power-cut", leader, 1_500, {"keep": "any"})
            strikes_at += 5 + self._dice.randrange(60)
        target = self._on_quest(role, topic, partition)
        options = draw_options(self._dice, kind)
        return self._add(strikes_at, kind, target, self._duration(), options)

    def _on_quest(self, role: str, topic: Topic, partition: int) -> Target:
        if role == "leader":
            # Not of the partition that has just lost its own.
            return Target("leader", topic.name, (partition + 1) % topic.partitions)
        if role == "follower":
            return Target("follower", topic.name, partition, 1)
        return COORDINATOR_OF_GROUP if role == COORDINATOR else Target(role)


_STROKES: Mapping[Stroke, int] = {
    _Faults._process: 5,
    _Faults._power: 4,
    _Faults._network: 5,
    _Faults._slowness: 3,
    _Faults._lost: 2,
    _Faults._disk: 3,
    _Faults._damage: 2,
    _Faults._clock: 1,
    _Faults._last_replica: 1,
    _Faults._deposed: 2,
    _Faults._quick_return: 2,
    _Faults._sync_then_power: 1,
    _Faults._two_leaders_one_after_the_other: 1,
    _Faults._slow_then_power: 2,
    _Faults._there_and_back: 2,
    _Faults._while_it_recovers: 2,
    _Faults._while_a_replica_joins: 1,
    _Faults._before_it_is_copied: 1,
}
"""With their weights."""
