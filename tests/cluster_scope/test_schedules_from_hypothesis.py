"""Schedules from Hypothesis: legal ones, and a failing one is made small."""

from __future__ import annotations

from hypothesis import HealthCheck, Phase, find, given, settings

from logboat.jepsen_style.cluster_scope.run import run_schedule
from logboat.jepsen_style.schedule import KINDS, Schedule
from logboat.jepsen_style.schedule.strategies import schedules

SEARCH = settings(
    max_examples=8,
    database=None,
    deadline=None,
    derandomize=True,
    phases=(Phase.generate, Phase.shrink),
    suppress_health_check=list(HealthCheck),
)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(schedules())
def test_what_is_drawn_is_a_schedule_inside_the_guarantee(schedule: Schedule) -> None:
    schedule.check()
    assert Schedule.from_json(schedule.to_json()) == schedule
    damaged = [fault.target for fault in schedule.faults if KINDS[fault.kind].damages]
    assert len(set(damaged)) <= 1
    assert all(fault.at_ms + fault.for_ms <= schedule.hurt_ms for fault in schedule.faults)


def test_the_schedule_that_shows_a_bug_shrinks_to_the_one_fault_it_needs() -> None:
    bug = "same-epoch-after-restart"

    seen: dict[bytes, bool] = {}

    def shows_it(schedule: Schedule) -> bool:
        key = schedule.to_json()
        if key not in seen:
            violations = run_schedule(schedule, bug=bug, floors=False).violations
            assert not any("TypeError" in one for one in violations), "the bug fits no longer"
            seen[key] = bool(violations)
        return seen[key]

    drawn = schedules(("pause", "kill"), most=2, hurt_ms=1_200)
    smallest = find(drawn, shows_it, settings=SEARCH)
    (fault,) = smallest.faults
    assert fault.kind == "kill"
    assert run_schedule(smallest, floors=False).good
