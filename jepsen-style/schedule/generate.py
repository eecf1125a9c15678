"""A schedule from a seed: what kind of cluster, what work, and which faults, one on top of another.

The faults come in strokes, most of them single, some as the pairs that have lost data elsewhere
(`_STROKES`); about a quarter of the time is quiet, so that the cluster gets well in between and the
next stroke meets one that has something to lose.

What is drawn stays inside the guarantee: at most min ISR - 1 disks are damaged, always the same
ones, and nothing cuts power where a topic trusts the page cache. So any loss is a violation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random

from ..simulation.dice import stream
from .kinds import KEEPS, KINDS, Option
from .schedule import Consumers, Fault, Producers, Schedule, Target, Topic

HURT_MS = 26_000
FIRST_FAULT_MS = 800
QUIET_MS = 1_800
"""Within this of the end nothing new begins."""

TOPIC = "orders"
CACHED_TOPIC = "clicks"
GROUP = "readers"

DAMAGED_PLACES = ("log", "index", "checkpoint", "quorum")

APIS = (0, 1, 3, 22)
"""Whose answers may be lost: Produce, Fetch, Metadata, InitProducerId."""


def generate(seed: int, *, nodes: int = 3) -> Schedule:
    """The schedule of `seed`. Needs three nodes or more."""
    dice = stream(seed, "schedule")
    replication_factor = 3 if nodes < 5 else dice.choice((3, 5))
    min_isr = 2 if replication_factor == 3 else 3
    topics, cached = _topics(dice, replication_factor, min_isr)
    return Schedule(
        seed=seed,
        nodes=nodes,
        topics=topics,
        producers=_producers(dice, topics),
        consumers=tuple(Consumers(topic.name) for topic in topics),
        faults=_Faults(
            dice,
            topics,
            nodes=nodes,
            damageable=dice.sample(range(1, nodes + 1), min_isr - 1),
            cuts_power=not cached,
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


def _topics(dice: Random, replication_factor: int, min_isr: int) -> tuple[tuple[Topic, ...], bool]:
    """And whether one of them trusts the page cache."""
    configs = {"min.insync.replicas": str(min_isr)}
    # Rolls are where indexes, snapshots and directories change hands.
    roll = dice.choice(({"segment.ms": "700"}, {"segment.ms": "2500"}, {}))
    orders = Topic(TOPIC, 2, replication_factor, {**configs, **roll})
    if dice.random() < 0.8:
        return (orders,), False
    return (
        orders,
        Topic(CACHED_TOPIC, 1, replication_factor, {**configs, "flush.messages": "9"}),
    ), True


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
        cuts_power: bool,
    ) -> None:
        self._dice = dice
        self._topics = topics
        self._nodes = nodes
        self._damageable = damageable
        self._cuts_power = cuts_power
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
        if KINDS[kind].cuts_power and not self._cuts_power:
            kind, options = "kill", None
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

    def _short(self) -> int:
        """Shorter than a session."""
        return 100 + self._dice.randrange(600)

    def _duration(self) -> int:
        return self._short() if self._dice.random() < 0.5 else 1_000 + self._dice.randrange(2_000)

    # Strokes

    def _process(self, at: int) -> int:
        kind = self._dice.choice(("kill", "kill", "pause", "pause", "stall", "restart"))
        return self._add(at, kind, self._anybody(), self._duration())

    def _power(self, at: int) -> int:
        options = {"keep": self._dice.choice(KEEPS)}
        if self._dice.random() < 0.25:
            kind = self._dice.choice(("blackout", "blackout", "kill-all"))
            chosen = options if kind == "blackout" else None
            return self._add(at, kind, Target("all"), self._short(), chosen)
        return self._add(at, "power-cut", self._anybody(), self._duration(), options)

    def _network(self, at: int) -> int:
        dice = self._dice
        kind = dice.choice(("isolate", "isolate", "halves", "ring", "bridge", "clients-cut"))
        options: dict[str, Option] = {}
        if kind == "isolate":
            options["direction"] = dice.choice(("both", "both", "in", "out"))
        if kind in ("isolate", "halves"):
            options["clients"] = dice.random() < 0.3
        return self._add(at, kind, self._anybody(), self._duration() + 300, options)

    def _slowness(self, at: int) -> int:
        dice = self._dice
        kind = dice.choice(("delay", "reorder", "loss", "slow-disk", "reset"))
        options: dict[str, Option] = {}
        if kind == "delay":
            options = {"latency_ms": dice.randrange(200), "jitter_ms": dice.randrange(200)}
        elif kind == "reorder":
            options = {"jitter_ms": dice.choice((30, 300))}
        elif kind == "loss":
            options = {"chance": dice.choice((0.02, 0.1, 0.3))}
        elif kind == "slow-disk":
            options = {"sync_ms": dice.choice((30, 100, 400))}
        return self._add(at, kind, self._anybody(), self._duration(), options)

    def _lost_responses(self, at: int) -> int:
        options: dict[str, Option] = {
            "api": self._dice.choice(APIS),
            "silently": self._dice.random() < 0.5,
        }
        return self._add(at, "lost-responses", self._leader(), self._duration(), options)

    def _disk(self, at: int) -> int:
        dice = self._dice
        kind = dice.choice(("failed-sync", "full-disk", "write-error", "read-error"))
        options: dict[str, Option] = {}
        if kind == "full-disk":
            options["slack_bytes"] = dice.choice((0, 700, 20_000))
        elif kind == "write-error":
            options["after_writes"] = dice.randrange(20)
        elif kind == "read-error":
            options["after_reads"] = dice.randrange(20)
        elif kind == "failed-sync":
            options["after_syncs"] = dice.randrange(10)
        return self._add(at, kind, self._anybody(), self._duration(), options)

    def _damage(self, at: int) -> int:
        """Once in a run, on a disk that may be damaged."""
        if not self._damages_left:
            return self._disk(at)
        self._damages_left -= 1
        dice = self._dice
        kind = dice.choice(("bit-flip", "misdirected-write", "stale-block", "wiped-disk"))
        options: dict[str, Option] = {}
        if kind != "wiped-disk":
            options = {"place": dice.choice(DAMAGED_PLACES), "where": round(dice.random(), 3)}
        if kind == "bit-flip":
            options["bit"] = dice.randrange(8)
        target = Target("node", number=dice.choice(list(self._damageable)))
        return self._add(at, kind, target, self._duration(), options)

    def _clock(self, at: int) -> int:
        dice = self._dice
        if dice.random() < 0.5:
            options: dict[str, Option] = {"seconds": dice.choice((-3600.0, -5.0, 5.0, 3600.0))}
            return self._add(at, "clock-step", self._node(), self._duration(), options)
        options = {"rate": dice.choice((0.9, 0.99, 1.01, 1.1))}
        return self._add(at, "clock-skew", self._node(), self._duration(), options)

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


_STROKES: Mapping[Stroke, int] = {
    _Faults._process: 5,
    _Faults._power: 4,
    _Faults._network: 5,
    _Faults._slowness: 3,
    _Faults._lost_responses: 2,
    _Faults._disk: 3,
    _Faults._damage: 2,
    _Faults._clock: 1,
    _Faults._last_replica: 1,
    _Faults._deposed: 2,
    _Faults._quick_return: 2,
    _Faults._sync_then_power: 1,
    _Faults._two_leaders_one_after_the_other: 1,
}
"""With their weights."""
