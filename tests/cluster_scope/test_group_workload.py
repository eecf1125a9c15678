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
from logboat.jepsen_style.schedule.options import GROUP_APIS, OF_ONE_API
from logboat.jepsen_style.schedule.quests import GROUPS_EVERY
from logboat.jepsen_style.schedule.schedule import CLASSIC, CONSUMER, PROTOCOLS


def fault(at_ms: int, kind: str, for_ms: int) -> Fault:
    return Fault(at_ms, kind, Target("coordinator", group="g"), for_ms)


def group(protocol: str, *, members: int = 3) -> Group:
    return Group(
        "g", "t", members=members, session_timeout_ms=1_000, life_ms=3_000, protocol=protocol
    )


SCHEDULE = Schedule(
    seed=1,
    nodes=3,
    topics=(Topic("t", 3),),
    producers=(Producers("t", count=2),),
    consumers=(),
    groups=(group(CLASSIC),),
    faults=(fault(2_500, "kill", 1_200), fault(5_500, "pause", 2_000)),
    settings={**group(CLASSIC).settings, **group(CONSUMER).settings},
    hurt_ms=9_000,
)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_group_reads_everything_although_its_coordinators_die_and_stall(protocol: str) -> None:
    result = run_schedule(replace(SCHEDULE, groups=(group(protocol),)), floors=False)
    assert not result.violations
    assert not result.stuck
    assert result.acknowledged > 100


def test_a_third_of_the_seeds_has_groups_whose_coordinators_are_hit() -> None:
    schedules = [generate(seed) for seed in range(60)]
    with_groups = [schedule for schedule in schedules if schedule.groups]
    assert len(with_groups) == 20
    assert {schedule.groups[0].protocol for schedule in with_groups} == set(PROTOCOLS)
    for schedule in with_groups:
        schedule.check()
        assert any(fault.target.role == "coordinator" for fault in schedule.faults)


def test_what_a_coordinator_loses_is_what_members_ask_of_it() -> None:
    lost = [
        (schedule.groups[0].protocol, fault.option("api"))
        for schedule in (generate(seed) for seed in range(0, 600, GROUPS_EVERY))
        for fault in schedule.faults
        if fault.target.role == "coordinator" and fault.kind in OF_ONE_API
    ]
    assert {protocol for protocol, _ in lost} == set(PROTOCOLS)
    assert all(api in GROUP_APIS[protocol] for protocol, api in lost)


def test_a_coordinator_of_no_group_is_refused() -> None:
    with pytest.raises(ScheduleError, match="coordinator"):
        replace(SCHEDULE, groups=()).check()


def test_a_protocol_that_groups_do_not_speak_is_refused() -> None:
    with pytest.raises(ScheduleError, match="sneakernet"):
        replace(SCHEDULE, groups=(group("sneakernet"),)).check()


def test_a_group_of_a_topic_that_is_not_made_is_refused() -> None:
    lost = replace(SCHEDULE, groups=(Group("g", "nowhere"),))
    with pytest.raises(ScheduleError, match="nowhere"):
        lost.check()


def test_a_schedule_with_groups_reads_back_as_it_was() -> None:
    assert Schedule.from_json(SCHEDULE.to_json()) == SCHEDULE


QUIET = replace(SCHEDULE, seed=4, faults=(), hurt_ms=6_000)
ALONE = replace(QUIET, groups=(group(CLASSIC, members=1),), hurt_ms=8_000)
"""Between two lives of its only member the group falls behind, so that it can skip something."""

BY_CONSUMER_PROTOCOL = replace(QUIET, groups=(group(CONSUMER),))

SEEN: dict[str, tuple[Schedule, str]] = {
    "two-owners": (QUIET, "two-owners"),
    "take-over-forgets-commits": (SCHEDULE, "lost-commit"),
    "any-generation-commits": (QUIET, "stale-commit"),
    "committed-offsets-jump": (ALONE, "skipped-by-group"),
    "given-before-it-is-free": (BY_CONSUMER_PROTOCOL, "stale-commit"),
    "any-epoch-commits": (BY_CONSUMER_PROTOCOL, "stale-commit"),
}


@pytest.mark.parametrize("bug", GROUP_BUGS)
def test_each_bug_of_a_coordinator_is_seen(bug: str) -> None:
    schedule, kind = SEEN[bug]
    result = run_schedule(schedule, bug=bug, floors=False)
    assert any(f" {kind}: " in violation for violation in result.violations), result
