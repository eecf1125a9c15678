"""Consumer groups as a workload: clean where the coordinator is right, and each bug is seen."""

from __future__ import annotations

from dataclasses import replace

import pytest

from logboat.jepsen_style.cluster_scope.group_controls import GROUP_BUGS
from logboat.jepsen_style.cluster_scope.run import run_schedule
from logboat.jepsen_style.schedule import (
    Fault,
    Group,
    Producers,
    Schedule,
    ScheduleError,
    Target,
    Topic,
    generate,
)
from logboat.jepsen_style.schedule.generate import AT_COORDINATOR


def fault(at_ms: int, kind: str, for_ms: int) -> Fault:
    return Fault(at_ms, kind, Target("coordinator", group="g"), for_ms)


SCHEDULE = Schedule(
    seed=1,
    nodes=3,
    topics=(Topic("t", 3),),
    producers=(Producers("t", count=2),),
    consumers=(),
    groups=(Group("g", "t", members=3, session_timeout_ms=1_000, life_ms=3_000),),
    faults=(fault(2_500, "kill", 1_200), fault(5_500, "pause", 2_000)),
    settings={"group.min.session.timeout.ms": "500"},
    hurt_ms=9_000,
)


def test_a_group_reads_everything_although_its_coordinators_die_and_stall() -> None:
    result = run_schedule(SCHEDULE, floors=False)
    assert not result.violations
    assert not result.stuck
    assert result.acknowledged > 100


def test_seeds_have_groups_and_their_coordinators_are_hit_without_hurting_disks() -> None:
    schedules = [generate(seed) for seed in range(60)]
    with_groups = [schedule for schedule in schedules if schedule.groups]
    assert 10 < len(with_groups) < 40
    hit = [
        (schedule, fault.kind)
        for schedule in schedules
        for fault in schedule.faults
        if fault.target.role == "coordinator"
    ]
    assert hit
    assert all(schedule.groups and kind in AT_COORDINATOR for schedule, kind in hit)
    for schedule in with_groups:
        schedule.check()


def test_a_group_of_a_topic_that_is_not_made_is_refused() -> None:
    lost = replace(SCHEDULE, groups=(Group("g", "nowhere"),))
    with pytest.raises(ScheduleError, match="nowhere"):
        lost.check()


def test_a_schedule_with_groups_reads_back_as_it_was() -> None:
    assert Schedule.from_json(SCHEDULE.to_json()) == SCHEDULE


QUIET = replace(SCHEDULE, seed=4, faults=(), hurt_ms=6_000)
ALONE = replace(QUIET, groups=(replace(SCHEDULE.groups[0], members=1),), hurt_ms=8_000)
"""Between two lives of its only member the group falls behind, so that it can skip something."""

SEEN: dict[str, tuple[Schedule, str]] = {
    "two-owners": (QUIET, "two-owners"),
    "take-over-forgets-commits": (SCHEDULE, "lost-commit"),
    "any-generation-commits": (QUIET, "stale-commit"),
    "committed-offsets-jump": (ALONE, "skipped-by-group"),
}


@pytest.mark.parametrize("bug", GROUP_BUGS)
def test_each_bug_of_a_coordinator_is_seen(bug: str) -> None:
    schedule, kind = SEEN[bug]
    result = run_schedule(schedule, bug=bug, floors=False)
    assert any(f" {kind}: " in violation for violation in result.violations), result
