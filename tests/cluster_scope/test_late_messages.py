"""Messages that come too late: the right product drops them, and each shows a bug that does not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from logboat.jepsen_style.cluster_scope.late_controls import LATE_BUGS
from logboat.jepsen_style.cluster_scope.run import run_schedule
from logboat.jepsen_style.schedule import Consumers, Fault, Producers, Schedule, Target, Topic
from logboat.jepsen_style.schedule.schedule import RESEND_FIRST

TOPIC = Topic("orders", 1, 3, {"min.insync.replicas": "2"})
LEADER = Target("leader", TOPIC.name)
ONE, OTHER = (Target("follower", TOPIC.name, 0, number) for number in range(2))
FETCH, ALTER_PARTITION = 1, 56

FAULTS = {
    # A follower is let back in twice over: the second copy of the request is carried out, and it
    # has left again, behind everybody, when the first one arrives.
    "stale-isr-change": (
        Fault(600, "slow-disk", ONE, 1_400, {"sync_ms": 700}),
        Fault(
            1_950,
            "late-requests",
            Target("controller"),
            1_500,
            {"api": ALTER_PARTITION, "by_ms": 4_200},
        ),
        Fault(4_300, "slow-disk", ONE, 3_000, {"sync_ms": 700}),
    ),
    # One follower hears nothing of the leader; the other one copies what is never committed, and
    # the next answer to it is late. It is cut back then and filled by the first one, slowly, up to
    # where that answer would go on.
    "late-fetch-answer": (
        Fault(800, "bridge", OTHER, 4_700),
        Fault(1_080, "late-responses", LEADER, 400, {"api": FETCH, "by_ms": 3_000}),
        Fault(1_500, "kill", LEADER, 5_000),
        Fault(1_500, "delay", OTHER, 4_500, {"latency_ms": 150, "jitter_ms": 1}),
    ),
}
PRODUCERS = {
    "stale-isr-change": (
        Producers(TOPIC.name, batch_records=3, interval_ms=60),
        Producers(TOPIC.name, batch_records=3, interval_ms=60, idempotent=False),
    ),
    "late-fetch-answer": (
        Producers(TOPIC.name, batch_records=3, interval_ms=150, in_flight=5, resend=RESEND_FIRST),
    ),
}
LAG_MS = {"stale-isr-change": "500", "late-fetch-answer": "4000"}
SEEDS = {"stale-isr-change": 3, "late-fetch-answer": 6}
"""The first one tried: who leads and who is controller differs from one to the next."""
MOST_SEEDS = 12


def schedule(bug: str) -> Schedule:
    faults = FAULTS[bug]
    return Schedule(
        seed=SEEDS[bug],
        nodes=3,
        topics=(TOPIC,),
        producers=PRODUCERS[bug],
        consumers=(Consumers(TOPIC.name),),
        faults=faults,
        settings={"min.insync.replicas": "2", "replica.lag.time.max.ms": LAG_MS[bug]},
        hurt_ms=max(fault.at_ms + fault.for_ms for fault in faults) + 500,
    )


@pytest.mark.parametrize("bug", LATE_BUGS)
def test_what_comes_too_late_is_dropped(bug: str) -> None:
    result = run_schedule(schedule(bug), floors=False)
    assert result.violations == []
    assert result.stuck == []


@pytest.mark.parametrize("bug", LATE_BUGS)
def test_each_bug_is_seen_that_takes_it_all_the_same(bug: str) -> None:
    first = SEEDS[bug]
    wrong = (
        run_schedule(replace(schedule(bug), seed=seed), bug=bug, floors=False)
        for seed in range(first, first + MOST_SEEDS)
    )
    seen = next(result.violations for result in wrong if result.violations)
    assert not any("TypeError" in violation for violation in seen)
