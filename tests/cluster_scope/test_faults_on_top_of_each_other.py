"""Strokes of several faults: the right product stands them, and each shows a bug of its own."""

from __future__ import annotations

import pytest

from logboat.jepsen_style.cluster_scope.replication_controls import REPLICATION_BUGS
from logboat.jepsen_style.cluster_scope.run import run_schedule
from logboat.jepsen_style.schedule import (
    Consumers,
    Fault,
    Producers,
    Schedule,
    Target,
    Topic,
)

TOPIC = Topic("orders", 1, 3, {"min.insync.replicas": "2"})
LEADER = Target("leader", TOPIC.name)
ONE, OTHER = (Target("follower", TOPIC.name, 0, number) for number in range(2))
LATE = {"latency_ms": 100, "jitter_ms": 150}

STROKES: dict[str, tuple[Fault, ...]] = {
    # Deposed with records that nobody copied, and leading again before clients reach another.
    "producers-survive-a-cut": (
        Fault(800, "isolate", LEADER, 1_700, {"clients": False}),
        Fault(2_100, "clients-cut", LEADER, 2_400),
        Fault(3_600, "kill", LEADER, 1_500),
    ),
    # Power is lost with what a slow disk has yet to write.
    "follower-confirms-unsynced": (
        Fault(800, "slow-disk", ONE, 2_000, {"sync_ms": 400}),
        Fault(1_500, "power-cut", ONE, 300, {"keep": "none"}),
    ),
    # The lead is handed over in order while followers are slow to copy.
    "deposed-leader-acks": (
        Fault(800, "delay", ONE, 1_500, LATE),
        Fault(800, "delay", OTHER, 1_500, LATE),
        Fault(1_500, "restart", LEADER, 1_500),
    ),
    # Whoever sends again meets a leader that reaches nobody.
    "duplicate-acked-at-once": (
        Fault(800, "isolate", LEADER, 900, {"clients": False}),
        Fault(1_000, "reset", LEADER, 100),
        Fault(1_300, "reset", LEADER, 100),
    ),
    "elr-not-cleared": (
        Fault(800, "kill", ONE, 1_500),
        Fault(1_000, "kill", OTHER, 900),
    ),
    # A consumer asks the next leader whether its log is the one that was read.
    "lineage-forgotten": (Fault(800, "kill", LEADER, 900),),
    # Both copies go at once, with batches on their way to them; the quorum stays.
    "watermark-below-min-isr": (
        Fault(800, "kill", ONE, 900),
        Fault(800, "kill", OTHER, 900),
    ),
}
"""By the bug that each shows."""

NODES = {"watermark-below-min-isr": 5}
"""Three of other schedules."""


def schedule(faults: tuple[Fault, ...], nodes: int) -> Schedule:
    producers = (
        Producers(TOPIC.name, idempotent=idempotent, batch_records=3, interval_ms=60)
        for idempotent in (True, False)
    )
    return Schedule(
        seed=1,
        nodes=nodes,
        topics=(TOPIC,),
        producers=tuple(producers),
        consumers=(Consumers(TOPIC.name),),
        faults=faults,
        settings={"min.insync.replicas": "2", "replica.lag.time.max.ms": "1500"},
        hurt_ms=max(fault.at_ms + fault.for_ms for fault in faults) + 500,
    )


@pytest.mark.parametrize("bug", REPLICATION_BUGS)
def test_each_bug_of_replication_is_seen_where_its_faults_meet(bug: str) -> None:
    hurt = schedule(STROKES[bug], NODES.get(bug, 3))
    right = run_schedule(hurt, floors=False)
    assert right.violations == []
    assert right.stuck == []
    wrong = run_schedule(hurt, bug=bug, floors=False)
    assert wrong.violations != []
    # A bug that no longer fits the product ends its nodes, and shows nothing.
    assert not any("TypeError" in violation for violation in wrong.violations)


def test_a_failed_sync_that_is_tried_again_and_believed_is_seen() -> None:
    """What it has dropped is still in the page cache, until power is cut (RULES C4)."""
    wrong = run_schedule(
        schedule(
            (
                Fault(800, "failed-sync", LEADER, 300),
                Fault(1_500, "power-cut", LEADER, 400, {"keep": "all"}),
            ),
            3,
        ),
        bug="failed-sync-retried",
        floors=False,
    )
    assert any(violation.startswith("lost: ") for violation in wrong.violations)
