"""Groups of hundreds: joins share an assignment (KIP-1263), and no turn of the loop is long (F1).

Work is counted in calls, which a busy machine does not change; ten thousand take a few
milliseconds.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from types import FrameType
from typing import Any, TypeVar

import pytest

from logboat.groups import GroupSettings
from logboat.groups.classic_group import ClassicGroup, Join, Sync
from logboat.groups.consumer import slices
from logboat.groups.consumer.deadlines import OUTDATED_AT_LEAST, Deadlines, Wait
from logboat.groups.consumer.group import GroupPhase
from logboat.groups.consumer.pace import SOON_MS_PER_MEMBER, assignment_wait_ms
from logboat.groups.consumer.partition_sets import pairs, size
from logboat.groups.consumer.settings import ConsumerGroupSettings
from logboat.groups.effects import Effect, Persist
from logboat.groups.log_records import GroupRecord, encode, group_value
from logboat.wire import ErrorCode
from tests.groups.test_consumer_group import Client, Coordinator, owned, seen

MEMBERS = 500
CALLS_PER_TURN = 10_000
MANY_MS = 100_000

SETTINGS = ConsumerGroupSettings(session_timeout_ms=MANY_MS * 10)

Result = TypeVar("Result")


class Work:
    """The longest turn so far, in calls."""

    def __init__(self) -> None:
        self.longest = 0

    def of(self, turn: Callable[[], Result]) -> Result:
        calls = 0

        def count(frame: FrameType, event: str, argument: Any) -> None:
            nonlocal calls
            calls += event in ("call", "c_call")

        before = sys.getprofile()
        sys.setprofile(count)
        try:
            return turn()
        finally:
            sys.setprofile(before)
            self.longest = max(self.longest, calls)


def joined(coordinator: Coordinator, clients: list[Client], work: Work | None = None) -> None:
    """One every two milliseconds; each answer, and each slice behind it, is a turn."""
    counted = Work() if work is None else work
    coordinator.assigns_by_itself = False
    for client in clients:
        counted.of(partial(coordinator.beat, client))
        while coordinator.group.is_assigning:
            counted.of(coordinator.assign_on)
        coordinator.now_ms += 2


def settled(coordinator: Coordinator, clients: list[Client]) -> None:
    for _ in range(5):
        coordinator.now_ms += MANY_MS
        joined(coordinator, clients)


def targets_written(coordinator: Coordinator) -> int:
    return sum("TargetAssignmentMember" in type(r.key).__name__ for r in coordinator.log)


@pytest.mark.parametrize("assignor", ["uniform", "range"])
def test_what_500_joins_cost_grows_with_their_number_and_not_with_its_square(
    assignor: str,
) -> None:
    settings = ConsumerGroupSettings(session_timeout_ms=MANY_MS * 10, assignors=(assignor,))
    coordinator, work = Coordinator(seen(t=MEMBERS), settings), Work()
    clients = [Client(f"m{number}") for number in range(MEMBERS)]
    joined(coordinator, clients, work)
    coordinator.now_ms += MANY_MS
    joined(coordinator, clients[:1], work)
    assert targets_written(coordinator) < 5 * MEMBERS
    assert sum(size(found) for found in coordinator.group.targets.values()) == MEMBERS
    assert max(size(found) for found in coordinator.group.targets.values()) == 1
    assert work.longest < CALLS_PER_TURN


def test_no_turn_is_long_when_one_more_joins_500_or_all_but_one_come_at_once() -> None:
    coordinator, work = Coordinator(seen(t=MEMBERS), SETTINGS), Work()
    clients = [Client(f"m{number}") for number in range(MEMBERS)]
    joined(coordinator, clients, work)
    settled(coordinator, clients)
    coordinator.now_ms += MANY_MS
    joined(coordinator, [Client("one-more"), clients[0]], work)
    one, others = Coordinator(seen(t=MEMBERS), SETTINGS), [Client(f"m{n}") for n in range(MEMBERS)]
    joined(one, others[:1])
    for client in others[1:]:
        one.beat(client)
    one.now_ms += MANY_MS
    joined(one, others[:1], work)
    assert size(one.group.targets["m0"]) == 1
    assert work.longest < CALLS_PER_TURN


def test_no_turn_is_long_when_one_member_reads_ten_thousand_partitions() -> None:
    """What it gets, takes up, gives half of to another, and reports, each time all of it."""
    coordinator, work = Coordinator(seen(t=10_000), SETTINGS), Work()
    one, other = Client("one"), Client("other")
    # The first answer compiles what encodes it.
    joined(Coordinator(seen(t=1), SETTINGS), [Client("before")])
    joined(coordinator, [one, one], work)
    assert size(coordinator.group.members["one"].assigned) == 10_000
    for _ in range(5):
        coordinator.now_ms += MANY_MS
        joined(coordinator, [other, one], work)
        for client in (one, other):
            client.take_up()
    assert [size(member.assigned) for member in coordinator.group.members.values()] == [5_000] * 2
    # One for each partition is an append to a list, where it was four and more.
    assert work.longest < 2 * CALLS_PER_TURN


def test_no_turn_is_long_when_500_classic_members_begin_a_generation() -> None:
    group, work = ClassicGroup("g", GroupSettings()), Work()
    for number in range(MEMBERS):
        join = a_join(token=number, member_id="", fresh_member_id=f"m{number}")
        work.of(partial(group.join, join, 0))
    answers: list[Effect] = []
    while not answers:
        now_ms = group.next_deadline_ms()
        assert now_ms is not None
        answers = work.of(partial(group.on_time, now_ms))
    assert len(answers) == MEMBERS
    assert group.leader == "m0"
    effects: list[Effect] = []
    for number in (*range(1, MEMBERS), 0):
        given = tuple((name, b"a") for name in group.members) if number == 0 else ()
        sync = Sync(MEMBERS + number, f"m{number}", None, 1, "consumer", "range", given)
        effects += work.of(partial(group.sync, sync, 1))
    (persist,) = effects
    assert isinstance(persist, Persist)
    value = work.of(lambda: group_value(group, persist.assignments, wall_ms=0))
    work.of(lambda: encode(GroupRecord("g", value), 0))
    assert len(work.of(lambda: group.on_persisted(persist, ErrorCode.NONE, 2))) == MEMBERS
    assert work.longest < CALLS_PER_TURN


def a_join(*, token: int, member_id: str, fresh_member_id: str) -> Join:
    return Join(
        token=token,
        member_id=member_id,
        fresh_member_id=fresh_member_id,
        instance_id=None,
        client_id="c",
        client_host="h",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=60_000,
        protocol_type="consumer",
        protocols=(("range", b"subscription"),),
        requires_known_member_id=False,
        knows_skip_assignment=True,
    )


def test_a_heartbeat_that_changes_nothing_costs_the_same_in_a_group_of_any_size() -> None:
    def cost(members: int) -> int:
        coordinator, work = Coordinator(seen(t=members), SETTINGS), Work()
        clients = [Client(f"m{number}") for number in range(members)]
        settled(coordinator, clients)
        coordinator.now_ms += 1
        coordinator.group.next_deadline_ms()  # deadlines that were put off are forgotten
        work.of(lambda: coordinator.beat(clients[0]))
        work.of(lambda: coordinator.group.next_interval_ms(coordinator.group.members["m0"], 1))
        return work.longest

    assert cost(200) <= cost(3) + 20


def test_members_that_come_within_the_interval_share_an_assignment() -> None:
    coordinator = Coordinator(seen(t=4), SETTINGS)
    a, b, c, d = (Client(name) for name in "abcd")
    coordinator.beat(a)
    for client in (b, c, d):
        coordinator.beat(client)
        assert (client.epoch, owned(client)) == (1, [])
    assert coordinator.group.phase is GroupPhase.ASSIGNING
    coordinator.now_ms += 4 * SOON_MS_PER_MEMBER
    coordinator.beat(b)
    assert coordinator.group.assignment_epoch == coordinator.group.epoch == 4
    assert [size(coordinator.group.targets[name]) for name in "abcd"] == [1, 1, 1, 1]
    coordinator.settle(a, b, c, d)
    assert len(owned(a, b, c, d)) == 4


def test_two_members_need_not_wait_for_each_other() -> None:
    assert assignment_wait_ms(interval_ms=1_000, members=2) < 10
    assert assignment_wait_ms(interval_ms=1_000, members=MEMBERS) == 1_000
    assert assignment_wait_ms(interval_ms=0, members=MEMBERS) == 0


def test_a_changed_subscription_does_not_wait_for_the_interval() -> None:
    """Its target is of topics that it no longer reads."""
    coordinator, a, b = Coordinator(seen(t=2, u=2), SETTINGS), Client("a"), Client("b")
    coordinator.beat(a)
    coordinator.beat(b)
    a.topics, a.says_all = ("u",), True
    coordinator.beat(a)
    coordinator.settle(a, b)
    assert [len(owned(a)), len(owned(b))] == [2, 2]


@pytest.fixture
def smallest_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slices, "UNITS_PER_SLICE", 1)


def under_way() -> tuple[Coordinator, Client, Client, Client]:
    """Three members; the assignment for the third is under way."""
    coordinator = Coordinator(seen(t=6), SETTINGS)
    a, b, c = Client("a"), Client("b", instance_id="i"), Client("c")
    settled(coordinator, [a, b])
    coordinator.now_ms += MANY_MS
    coordinator.beat(c)
    assert coordinator.group.is_assigning
    return coordinator, a, b, c


@pytest.mark.usefixtures("smallest_slices")
def test_who_leaves_while_the_assignment_is_made_gets_nothing_in_it() -> None:
    coordinator, _, b, c = under_way()
    coordinator.log += coordinator.group.leave("a", None, -1)
    while coordinator.group.is_assigning:
        coordinator.assign_on()
    assert set(coordinator.group.targets) == {"b", "c"}
    assert coordinator.replayed().targets == coordinator.group.targets
    settled(coordinator, [b, c])
    assert [len(owned(b)), len(owned(c))] == [3, 3]


@pytest.mark.usefixtures("smallest_slices")
def test_a_static_members_successor_gets_what_the_assignment_under_way_gives_its_place() -> None:
    coordinator, a, _, c = under_way()
    coordinator.log += coordinator.group.leave("b", "i", -2)
    again = Client("b2", instance_id="i")
    coordinator.beat(again)
    while coordinator.group.is_assigning:
        coordinator.assign_on()
    assert size(coordinator.group.targets["b2"]) == 2
    assert coordinator.replayed().targets == coordinator.group.targets
    settled(coordinator, [a, again, c])
    assert [len(owned(client)) for client in (a, again, c)] == [2, 2, 2]


@pytest.mark.usefixtures("smallest_slices")
def test_the_first_assignment_takes_several_turns_too_and_its_member_beats_again_then() -> None:
    """An answer with epoch 0 would tell it to join again: it has none before."""
    coordinator, work = Coordinator(seen(t=5 * MEMBERS), SETTINGS), Work()
    group, a = coordinator.group, Client("a")
    coordinator.assigns_by_itself = False
    turns = 0
    work.of(partial(group.heartbeat, a.beat(), coordinator.view, now_ms=0, wall_ms=0))
    while group.is_assigning:
        assert group.has_no_assignment_yet
        work.of(coordinator.assign_on)
        turns += 1
    assert turns > 5
    assert work.longest < CALLS_PER_TURN
    coordinator.beat(a)
    assert (a.epoch, len(owned(a))) == (1, 5 * MEMBERS)


def test_the_next_deadline_is_known_though_hundreds_are_put_off_again_and_again() -> None:
    deadlines = Deadlines()
    for round_ms in range(20):
        for number in range(MEMBERS):
            deadlines.set((f"m{number}", Wait.SESSION), 1_000 * round_ms + number)
    assert deadlines.next_ms() == 19_000
    deadlines.drop(("m0", Wait.SESSION))
    assert deadlines.next_ms() == 19_001
    assert deadlines.overdue(19_002) == ["m1", "m2"]
    assert len(deadlines._queue) <= OUTDATED_AT_LEAST + 2 * MEMBERS
    deadlines.set(("m1", Wait.JOIN), 5)
    assert deadlines.next_ms() == 5


def test_every_partition_is_somebodys_whatever_the_members_hold() -> None:
    coordinator = Coordinator(seen(t=MEMBERS), SETTINGS)
    clients = [Client(f"m{number}") for number in range(40)]
    settled(coordinator, clients)
    assert sum(len(pairs(client.owned)) for client in clients) == MEMBERS
