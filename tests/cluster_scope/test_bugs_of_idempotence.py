"""Bugs in what a log remembers of producers: the right product stands these faults, each bug falls.

The producers have five batches in flight. What a fault leaves unanswered they send again.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from logboat.jepsen_style.cluster_scope.producer_controls import PRODUCER_BUGS
from logboat.jepsen_style.cluster_scope.run import run_schedule
from logboat.jepsen_style.schedule import Consumers, Fault, Producers, Schedule, Target, Topic
from logboat.jepsen_style.schedule.schedule import RESENDS

TOPIC = Topic("orders", 1, 3, {"min.insync.replicas": "2", "segment.ms": "50"})
LEADER = Target("leader", TOPIC.name)
ONE, OTHER = (Target("follower", TOPIC.name, 0, number) for number in range(2))
NODES = tuple(Target("node", number=number) for number in (1, 2, 3))

ALL_RESTART = (
    *(Fault(500, "lost-responses", node, 2_400, {"api": 0}) for node in NODES),
    *(Fault(900 + 600 * number, "restart", node, 100) for number, node in enumerate(NODES)),
)
"""In order, one after the other, before any of them has answered."""
ANSWERS_ARE_LOST = (
    Fault(600, "lost-responses", LEADER, 700, {"api": 0, "silently": False}),
    Fault(1_000, "kill", LEADER, 800),
)
NONE_IN_SYNC_AT_FIRST = (
    Fault(300, "restart", ONE, 900),
    Fault(300, "restart", OTHER, 700),
)
"""Batches are refused, until a follower is back between one and the next; many are the first that
their producers have for a partition."""

FAULTS = {
    "windows-not-refilled": ALL_RESTART,
    "followers-forget-producers": ANSWERS_ARE_LOST,
    "duplicate-gets-the-newest-offset": ANSWERS_ARE_LOST,
    "window-of-one": ANSWERS_ARE_LOST,
    "sequences-not-checked": NONE_IN_SYNC_AT_FIRST,
    "refused-batches-are-passed": NONE_IN_SYNC_AT_FIRST,
}


SEEDS = 4
"""A bug is seen by one of so many, nearly always by the first."""


def schedule(faults: tuple[Fault, ...], *, seed: int = 1) -> Schedule:
    # Each partition gets a chance of its own.
    at_first = faults is NONE_IN_SYNC_AT_FIRST
    topic = replace(TOPIC, partitions=12 if at_first else 1)
    return Schedule(
        seed=seed,
        nodes=3,
        topics=(topic,),
        producers=tuple(
            Producers(
                TOPIC.name,
                count=2,
                interval_ms=100 if at_first else 20,
                in_flight=5,
                resend=resend,
                patience_ms=500,
            )
            for resend in RESENDS
        ),
        consumers=(Consumers(TOPIC.name),),
        faults=faults,
        settings={"min.insync.replicas": "2", "replica.lag.time.max.ms": "600"},
        network={"latency_us": 5_000, "jitter_us": 1_000},
        disk={"sync_us": 8_000},
        hurt_ms=max(fault.at_ms + fault.for_ms for fault in faults) + 300,
    )


@pytest.mark.parametrize("faults", [ALL_RESTART, ANSWERS_ARE_LOST, NONE_IN_SYNC_AT_FIRST])
def test_the_right_product_writes_each_record_once_and_in_order(faults: tuple[Fault, ...]) -> None:
    right = run_schedule(schedule(faults), floors=False)
    assert right.violations == []
    assert right.stuck == []


@pytest.mark.parametrize("bug", PRODUCER_BUGS)
def test_each_bug_of_idempotence_is_seen(bug: str) -> None:
    wrong = (
        run_schedule(schedule(FAULTS[bug], seed=seed), bug=bug, floors=False)
        for seed in range(1, 1 + SEEDS)
    )
    seen = next(result.violations for result in wrong if result.violations)
    assert not any("TypeError" in violation for violation in seen)
