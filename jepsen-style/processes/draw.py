"""A schedule for real processes from a seed: only kinds that this executor has means for.

Strokes come from a bag that is refilled when empty, so a minute sees nearly every kind; each bag
begins with the death of a leader. Only where every promise was synced is power cut, and are disks
damaged, no more than a partition can spare (always the same one), so any loss is a violation. What
the machine has no means for is skipped; the schedule of a seed is the same everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from random import Random

from ..schedule import Churn, Consumers, Fault, Group, Producers, Schedule, Target, Topic
from ..schedule.kinds import Option
from ..schedule.options import draw_options
from ..schedule.quests import ONE_NODE
from ..schedule.schedule import PROTOCOLS, RESENDS
from ..simulation.dice import stream

TOPIC = "orders"
PASSING = "passing"
"""Topics that come and go while records are appended elsewhere."""
PARTITIONS = 2
GROUPS = tuple(
    Group(f"{protocol}-readers", TOPIC, session_timeout_ms=2_000, life_ms=5_000, protocol=protocol)
    for protocol in PROTOCOLS
)
MODES = ("synced", "page-cache")

FIRST_FAULT_MS = 500
QUIET_END_MS = 1_500
"""Within this of the end nothing new begins."""
STROKES_BETWEEN_QUIET = 4
REJOIN_MS = 2_500
"""After a stop in page-cache mode, and after some kinds in either: a replica that ended in disorder
has left ISR and ELR (C1), and were the others to follow before it is back, nobody could be
elected."""

PRODUCE, FETCH, OFFSET_COMMIT = 0, 1, 8
ALTER_PARTITION, BROKER_HEARTBEAT, CONSUMER_GROUP_HEARTBEAT = 56, 63, 68

Stroke = tuple[str, str, Mapping[str, Option]]
"""Kind, role, options."""

BAG: Sequence[Stroke] = (
    ("kill", "follower", {}),
    ("kill", "controller", {}),
    ("kill", "coordinator", {}),
    ("pause", "coordinator", {}),
    ("isolate", "coordinator", {"clients": False}),
    ("pause", "leader", {}),
    ("pause", "follower", {}),
    ("pause", "controller", {}),
    ("restart", "leader", {}),
    ("restart", "follower", {}),
    ("lost-responses", "leader", {"api": PRODUCE, "silently": True}),
    ("lost-responses", "leader", {"api": PRODUCE, "silently": False}),
    ("lost-responses", "leader", {"api": FETCH, "silently": True}),
    ("lost-requests", "leader", {"api": PRODUCE, "silently": True}),
    ("lost-responses", "controller", {"api": ALTER_PARTITION, "silently": True}),
    ("lost-responses", "controller", {"api": BROKER_HEARTBEAT, "silently": False}),
    ("lost-responses", "coordinator", {"api": OFFSET_COMMIT, "silently": True}),
    ("lost-responses", "coordinator", {"api": CONSUMER_GROUP_HEARTBEAT, "silently": False}),
    ("clients-cut", "leader", {}),
    ("isolate", "leader", {"clients": False}),
    ("isolate", "leader", {"direction": "in", "clients": True}),
    ("isolate", "leader", {"direction": "out", "clients": False}),
    ("isolate", "follower", {"clients": True}),
    ("isolate", "controller", {"clients": False}),
    ("halves", "leader", {"clients": True}),
    ("bridge", "controller", {}),
    ("ring", "all", {}),
    ("reset", "leader", {}),
    ("reset", "all", {}),
    ("delay", "follower", {"latency_ms": 100, "jitter_ms": 100}),
    ("delay", "leader", {"latency_ms": 50, "jitter_ms": 200}),
    ("loss", "leader", {"chance": 0.1}),
    ("loss", "follower", {"chance": 0.2}),
    ("failed-sync", "follower", {"after_syncs": 5}),
    ("failed-sync", "leader", {"after_syncs": 1}),
    ("kill-at-sync", "leader", {"number": 2}),
    ("kill-at-sync", "controller", {"number": 1}),
    ("slow-disk", "leader", {"sync_ms": 100}),
    ("slow-disk", "follower", {"sync_ms": 300}),
    ("clock-step", "leader", {"seconds": 1800.0}),
    ("clock-step", "controller", {"seconds": -1800.0}),
    ("clock-skew", "follower", {"rate": 1.1}),
)
DAMAGEABLE = "damageable"
"""In a stroke: the one node whose disk may be damaged, named by its number."""
DAMAGES: Sequence[Stroke] = (
    ("bit-flip", DAMAGEABLE, {"place": "log"}),
    ("stale-block", DAMAGEABLE, {"place": "log"}),
    ("misdirected-write", DAMAGEABLE, {"place": "index"}),
    ("bit-flip", DAMAGEABLE, {"place": "checkpoint"}),
    ("bit-flip", DAMAGEABLE, {"place": "quorum"}),
    ("wiped-disk", DAMAGEABLE, {}),
)
LEADER_DIES: Stroke = ("kill", "leader", {})
AS_ROOT: Sequence[Stroke] = (
    ("full-disk", "leader", {"slack_bytes": 0}),
    ("full-disk", "follower", {"slack_bytes": 20_000}),
)
ONLY_SYNCED: Sequence[Stroke] = (("kill-all", "all", {}),)
ONLY_SYNCED_AS_ROOT: Sequence[Stroke] = (
    ("power-cut", "leader", {}),
    ("power-cut", "leader", {}),
    ("power-cut", "follower", {}),
    ("power-cut", "controller", {}),
    ("blackout", "all", {}),
)
STOPS = frozenset({"kill", "kill-all", "restart", "full-disk", "kill-at-sync"})
DAMAGE = frozenset(kind for kind, _, _ in DAMAGES)
NEEDS_TIME = frozenset({"failed-sync", "kill-all", "blackout"}) | DAMAGE
"""In either mode: out of ISR and ELR (C1), or nobody is left to be elected."""


def bag_of(*, synced: bool, root: bool) -> list[Stroke]:
    return [
        *BAG,
        *(DAMAGES if synced else ()),
        *(AS_ROOT if root else ()),
        *(ONLY_SYNCED if synced else ()),
        *(ONLY_SYNCED_AS_ROOT if synced and root else ()),
    ]


def drawable(*, synced: bool) -> set[tuple[str, str]]:
    """Kinds and roles of schedules from seeds; a node plays any role when its disk is damaged."""
    return {
        (kind, one)
        for kind, role, _ in (*bag_of(synced=synced, root=True), LEADER_DIES)
        for one in (ONE_NODE if role == DAMAGEABLE else (role,))
    }


def draw(seed: int, *, nodes: int, minutes: float, mode: str, root: bool = False) -> Schedule:
    """`mode`: one of MODES. Needs three nodes or more."""
    dice = stream(seed, "processes")
    configs = {"min.insync.replicas": "2"}
    if mode == "page-cache":
        configs["flush.messages"] = "1000"
    hurt_ms = int(minutes * 60_000)
    return Schedule(
        seed=seed,
        nodes=nodes,
        topics=(Topic(TOPIC, PARTITIONS, 3, configs),),
        producers=(
            Producers(TOPIC, batch_records=4, interval_ms=100),
            *_pipelined(stream(seed, "pipelines")),
            Producers(TOPIC, count=2, idempotent=False, batch_records=4, interval_ms=100),
        ),
        consumers=(Consumers(TOPIC),),
        churn=(
            Churn(Topic(PASSING, 1, 3, configs), idempotent=True, alter=TOPIC),
            Churn(Topic(f"plain-{PASSING}", 2, 3, configs), idempotent=False),
        ),
        groups=GROUPS,
        faults=_faults(dice, hurt_ms, nodes=nodes, synced=mode == "synced", root=root),
        settings={
            "min.insync.replicas": "2",
            "replica.lag.time.max.ms": "1500",
            **{name: value for group in GROUPS for name, value in group.settings.items()},
            "offsets.topic.num.partitions": "4",
        },
        hurt_ms=hurt_ms,
    )


def _pipelined(dice: Random) -> Iterator[Producers]:
    """Several batches in flight, sent again in either way. By dice of its own."""
    for resend in RESENDS:
        yield Producers(
            TOPIC,
            batch_records=2,
            interval_ms=100,
            in_flight=dice.choice((2, 5, 5)),
            resend=resend,
            patience_ms=dice.choice((400, 800, 2_000)),
        )


def _faults(
    dice: Random, hurt_ms: int, *, nodes: int, synced: bool, root: bool
) -> tuple[Fault, ...]:
    damageable = Target("node", number=1 + dice.randrange(nodes))
    faults: list[Fault] = []
    bag: list[Stroke] = []
    at_ms = FIRST_FAULT_MS
    while at_ms < hurt_ms - QUIET_END_MS:
        if not bag:
            bag = bag_of(synced=synced, root=root)
            dice.shuffle(bag)
            # The middle one, too: a minute is about one bag.
            bag = [LEADER_DIES, *bag[: len(bag) // 3], LEADER_DIES, *bag[len(bag) // 3 :]]
        kind, role, options = bag.pop(0)
        target = damageable if role == DAMAGEABLE else _target(dice, role)
        if kind in DAMAGE:
            options = {**draw_options(dice, kind), **options}
        # Shorter than a session of a local cluster (one second), or longer.
        for_ms = 200 + dice.randrange(500) if dice.random() < 0.4 else 1_200 + dice.randrange(1_300)
        for_ms = min(for_ms, hurt_ms - at_ms)
        faults.append(Fault(at_ms, kind, target, for_ms, options))
        if kind in NEEDS_TIME or (kind in STOPS and not synced):
            at_ms += for_ms + REJOIN_MS
        elif len(faults) % STROKES_BETWEEN_QUIET == 0:
            at_ms += for_ms + 1_500 + dice.randrange(1_000)
        else:
            # Some strike while another one lasts.
            at_ms += max(200, for_ms - 300 + dice.randrange(900))
    return tuple(faults)


def _target(dice: Random, role: str) -> Target:
    if role in ("controller", "all"):
        return Target(role)
    if role == "coordinator":
        return Target(role, group=dice.choice(GROUPS).name)
    number = dice.randrange(2) if role == "follower" else 0
    return Target(role, TOPIC, dice.randrange(PARTITIONS), number)
