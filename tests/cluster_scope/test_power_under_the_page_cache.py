"""Topics that trust the page cache, without power: what is excused then, and what is not."""

from __future__ import annotations

from io import BytesIO

import pytest

from logboat.jepsen_style.checkers.kafka import Guarantee
from logboat.jepsen_style.cluster_scope.run import run_schedule
from logboat.jepsen_style.history import Recorder
from logboat.jepsen_style.history.reading import parse_history
from logboat.jepsen_style.judge import Judgement, judge_run
from logboat.jepsen_style.schedule import (
    Consumers,
    Fault,
    Producers,
    Schedule,
    Target,
    Topic,
)
from logboat.jepsen_style.simulation.scope import SeedResult

LEAST = {"min.insync.replicas": "2"}
CACHED = Topic("clicks", 1, 3, {**LEAST, "flush.messages": "100000"})
SYNCED = Topic("orders", 1, 3, LEAST)
POWERLESS = {"keep": "none"}


def run(*faults: Fault, bug: str | None = None) -> tuple[SeedResult, Judgement]:
    """The verdict of the run, and of its history by itself."""
    topics = (CACHED, SYNCED)
    schedule = Schedule(
        seed=5,
        nodes=3,
        topics=topics,
        producers=tuple(Producers(topic.name, batch_records=3) for topic in topics),
        consumers=tuple(Consumers(topic.name) for topic in topics),
        faults=faults,
        settings=LEAST,
        hurt_ms=3_500,
    )
    written = BytesIO()
    result = run_schedule(schedule, bug=bug, floors=False, recorder=Recorder(written))
    return result, judge_run(parse_history(written.getvalue()))


@pytest.fixture(scope="module")
def blackout() -> tuple[SeedResult, Judgement]:
    return run(Fault(1_500, "blackout", Target("all"), 300, POWERLESS))


def test_when_all_lose_power_the_loss_is_outside_the_guarantee(
    blackout: tuple[SeedResult, Judgement],
) -> None:
    result, judgement = blackout
    assert result.violations == []
    assert result.stuck == []
    assert judgement.holds, judgement.verdict.reason
    assert judgement.kafka is not None
    assert judgement.kafka.guarantee is Guarantee.OUTSIDE


def test_no_synced_topic_loses_anything_beside_it(
    blackout: tuple[SeedResult, Judgement],
) -> None:
    _, judgement = blackout
    assert judgement.kafka is not None
    lost = {anomaly.details["key"] for anomaly, _ in judgement.kafka.rulings}
    assert lost == {"clicks-0"}


@pytest.mark.parametrize("role", ["leader", "follower"])
def test_while_one_who_holds_it_has_power_nothing_is_lost(role: str) -> None:
    result, judgement = run(Fault(1_500, "power-cut", Target(role, "clicks"), 300, POWERLESS))
    assert result.violations == []
    assert result.stuck == []
    assert judgement.kafka is not None
    assert judgement.kafka.guarantee is Guarantee.HELD


def test_a_loss_while_one_who_should_hold_it_has_power_is_a_violation() -> None:
    """Each leader answers for itself alone, and then loses its power."""
    faults = (
        Fault(at_ms, "power-cut", Target("leader", "clicks"), 300, POWERLESS)
        for at_ms in (800, 2_600)
    )
    result, _ = run(*faults, bug="ack-before-isr")
    assert any(violation.startswith("lost: clicks-0") for violation in result.violations)
