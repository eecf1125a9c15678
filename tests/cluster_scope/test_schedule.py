"""Schedules: drawn from seeds, written as plain JSON, read back, inside the guarantee."""

from __future__ import annotations

import orjson
import pytest

from logboat.jepsen_style.schedule import (
    KINDS,
    Fault,
    Phase,
    Schedule,
    ScheduleError,
    Target,
    generate,
    nodes_of,
)
from logboat.jepsen_style.schedule.quests import (
    COORDINATOR,
    GROUPS_EVERY,
    QUESTS,
    quests,
    reachable,
)
from logboat.jepsen_style.schedule.targets import partition_of


@pytest.mark.parametrize("nodes", [3, 5])
def test_a_schedule_survives_being_written_and_read(nodes: int) -> None:
    for seed in range(30):
        schedule = generate(seed, nodes=nodes)
        assert Schedule.from_json(schedule.to_json()) == schedule


def test_a_seed_gives_the_same_schedule_again_and_another_seed_another() -> None:
    assert generate(7) == generate(7)
    assert generate(7) != generate(8)


@pytest.mark.parametrize("nodes", [3, 5])
def test_fewer_disks_than_the_smallest_isr_may_be_damaged(nodes: int) -> None:
    for seed in range(200):
        schedule = generate(seed, nodes=nodes)
        assert schedule.damageable == int(schedule.settings["min.insync.replicas"]) - 1


def test_a_damage_meets_the_role_that_it_was_sent_to() -> None:
    """Those without a role are no quests: they strike the same node."""
    sent = {
        (fault.kind, fault.target.role)
        for seed in range(200)
        for fault in generate(seed).faults
        if KINDS[fault.kind].damages
    }
    kinds = {kind for kind, _ in sent}
    roles = {"leader", "follower", "controller", COORDINATOR, "node"}
    assert sent == {(kind, role) for kind in kinds for role in roles}


def test_power_is_cut_also_where_a_topic_trusts_the_page_cache() -> None:
    cached = [
        schedule
        for schedule in map(generate, range(100))
        if not all(map(schedule.is_synced, schedule.topics))
    ]
    assert cached
    faults = [fault for schedule in cached for fault in schedule.faults]
    assert {"power-cut", "blackout", "failed-sync"} <= {fault.kind for fault in faults}


def test_every_kind_of_fault_is_drawn_some_time() -> None:
    drawn = {fault.kind for seed in range(400) for fault in generate(seed).faults}
    assert drawn == {name for name, kind in KINDS.items() if kind.simulated}


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"format": 9}, "format"),
        ({"weather": "fine"}, "weather"),
        ({"faults": [{"at_ms": 1, "kind": "flood", "target": {"role": "all"}, "for_ms": 1}]}, "fl"),
        ({"faults": [{"at_ms": 1, "kind": "kill", "target": {"role": "king"}, "for_ms": 1}]}, "ki"),
        ({"faults": [{"at_ms": 1, "kind": "kill", "target": None, "for_ms": 1}]}, "target"),
        ({"producers": [{"topic": "nowhere"}]}, "nowhere"),
    ],
)
def test_a_document_that_is_no_schedule_is_refused(
    change: dict[str, object], complaint: str
) -> None:
    document = orjson.loads(generate(1).to_json())
    with pytest.raises(ScheduleError, match=complaint):
        Schedule.from_json(orjson.dumps({**document, **change}))


def test_an_option_that_the_kind_does_not_have_is_refused() -> None:
    document = orjson.loads(generate(1).to_json())
    document["faults"] = [
        {
            "at_ms": 1,
            "kind": "kill",
            "target": {"role": "all"},
            "for_ms": 1,
            "options": {"softly": True},
        }
    ]
    with pytest.raises(ScheduleError, match="softly"):
        Schedule.from_json(orjson.dumps(document))


def test_what_is_not_said_of_a_fault_is_its_kinds_default() -> None:
    fault = Fault(0, "isolate", Target("all"), 1, {"clients": True})
    assert fault.option("clients") is True
    assert fault.option("direction") == "both"


class Three:
    """Nodes 1 to 3; node 2 leads, nobody is controller."""

    node_ids = (1, 2, 3)

    def replicas(self, topic: str, partition: int) -> tuple[int, ...]:
        return (3, 2, 1)

    def leader(self, topic: str, partition: int) -> int | None:
        return 2

    def controller(self) -> int | None:
        return None

    def partitions(self, topic: str) -> int:
        return 4


@pytest.mark.parametrize(
    ("target", "hit"),
    [
        (Target("all"), (1, 2, 3)),
        (Target("node", number=3), (3,)),
        (Target("leader", "t"), (2,)),
        (Target("follower", "t", number=0), (3,)),
        (Target("follower", "t", number=1), (1,)),
        (Target("controller"), ()),
        (Target("coordinator", group="g"), (2,)),
    ],
)
def test_a_target_is_who_plays_the_role_now(target: Target, hit: tuple[int, ...]) -> None:
    assert nodes_of(target, Three()) == hit


def test_a_groups_partition_is_counted_as_java_does() -> None:
    # "polygenelubricants".hashCode() is the smallest int, whose absolute value Kafka takes for 0.
    assert partition_of("polygenelubricants", 50) == 0
    # "abc".hashCode() is 96354.
    assert partition_of("abc", 50) == 96354 % 50


def test_a_range_of_seeds_is_sent_to_every_reachable_cell() -> None:
    cells = {(kind, role, phase) for kind, role in reachable() for phase in Phase}
    # Two of three seeds go through the cells of all roles but the coordinator.
    rest = sum(role != COORDINATOR for _, role, _ in cells)
    once_round = -(-rest // QUESTS) * GROUPS_EVERY // (GROUPS_EVERY - 1) + 1
    assert {cell for seed in range(50, 50 + once_round) for cell in quests(seed)} == cells


def test_what_a_seed_is_sent_to_depends_on_nothing_but_its_number() -> None:
    alone = quests(123)
    for seed in range(10):
        quests(seed)
    assert quests(123) == alone


def test_a_quest_stands_in_the_schedule_of_its_seed() -> None:
    for seed in range(60):
        schedule = generate(seed)
        drawn = {fault.kind for fault in schedule.faults}
        wanted = [kind for kind, _, _ in quests(seed)]
        # The last one may find no time any more.
        assert set(wanted[:1]) <= drawn
