"""A consumer group of the new protocol (KIP-848): one owner per partition at every moment.

The members here are honest clients: they own what they were last told, less what they have since
been told to give up, and report it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from unittest import mock
from uuid import UUID

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from logboat.groups.consumer import slices
from logboat.groups.consumer.group import Beat, ConsumerGroup, GroupPhase
from logboat.groups.consumer.member import MemberState
from logboat.groups.consumer.partition_sets import NOTHING, PartitionSet, pairs
from logboat.groups.consumer.records import ConsumerRecord, decode, encode
from logboat.groups.consumer.refusal import Refused
from logboat.groups.consumer.replay import replay
from logboat.groups.consumer.seen_topics import SeenTopics
from logboat.groups.consumer.settings import ConsumerGroupSettings
from logboat.metadata.image import ClusterImage, PartitionImage, TopicImage
from logboat.wire import ErrorCode

SETTINGS = ConsumerGroupSettings(session_timeout_ms=1_000, assignment_interval_ms=0)
REBALANCE_MS = 500


def seen(**counts: int) -> SeenTopics:
    """Topics by name, with their partition counts."""
    topics = {
        name: TopicImage(
            name,
            UUID(int=1 + ord(name[0])),
            tuple(PartitionImage(number, (1,), (1,), 1, 0, 0) for number in range(count)),
            1,
            1,
        )
        for name, count in counts.items()
    }
    names = {topic.topic_id: name for name, topic in topics.items()}
    return SeenTopics(ClusterImage(1, "c", 1, 1, 1, topics=topics, topic_names=names))


@dataclass
class Client:
    member_id: str
    topics: tuple[str, ...] = ("t",)
    instance_id: str | None = None
    epoch: int = 0
    owned: PartitionSet = field(default_factory=lambda: NOTHING)
    """What it reads from now."""
    says_all: bool = True
    """As it does when it joins and after an answer that did not come."""
    told: list[PartitionSet] = field(default_factory=list)
    """What it has yet to take up, in order: its process is busy."""
    terse: bool = False
    """As librdkafka: it says what it owns when that is news, and where an answer does not come it
    repeats what it said."""
    has_news: bool = False

    def beat(self) -> Beat:
        joins = self.epoch == 0
        return Beat(
            self.member_id,
            self.epoch,
            instance_id=self.instance_id,
            rebalance_timeout_ms=REBALANCE_MS if self.says_all or joins else -1,
            topics=self.topics if self.says_all or joins else None,
            owned=self.owned if self.has_news or joins or not self.terse else None,
        )

    def lost_answer(self) -> None:
        self.says_all = not self.terse

    def told_of(self, epoch: int, assignment: PartitionSet | None) -> None:
        self.epoch = epoch
        self.says_all = self.has_news = False
        if assignment is not None and assignment != (self.told[-1] if self.told else self.owned):
            self.told.append(assignment)

    def take_up(self) -> None:
        if self.told:
            self.take_up_next(last=True)

    def take_up_next(self, *, last: bool = False) -> None:
        self.owned = self.told[-1 if last else 0]
        del self.told[: len(self.told) if last else 1]
        self.has_news = True


class Coordinator:
    """The group, its log, and a clock."""

    def __init__(self, view: SeenTopics, settings: ConsumerGroupSettings = SETTINGS) -> None:
        self.group = ConsumerGroup("g", settings)
        self.settings = settings
        self.assigns_by_itself = True
        """As if there were no heartbeat between two slices of an assignment."""
        self.log: list[ConsumerRecord] = []
        self._follower: dict[str, ConsumerGroup] = {}
        self._followed = 0
        self.view = view
        self.now_ms = 0

    def beat(self, client: Client, *, answer_lost: bool = False, busy: bool = False) -> None:
        member, assignment, records = self.group.heartbeat(
            client.beat(), self.view, now_ms=self.now_ms, wall_ms=self.now_ms
        )
        self.log += records
        while self.assigns_by_itself and self.group.is_assigning:
            self.assign_on()
        if answer_lost:
            client.lost_answer()
            return
        client.told_of(member.epoch, assignment)
        # Who was told to own nothing reports the same before it takes up what it was told before
        # and after: here the coordinator takes it at its word, as Kafka does.
        if not busy or assignment == NOTHING:
            client.take_up()

    def assign_on(self) -> None:
        self.log += self.group.assign_on(now_ms=self.now_ms, wall_ms=self.now_ms)

    def settle(self, *clients: Client) -> None:
        for _ in range(4):
            for client in clients:
                self.beat(client)

    def replayed(self) -> ConsumerGroup:
        """By whoever reads the log while it grows."""
        for record in self.log[self._followed :]:
            replay(self._follower, decode(*encode(record)), self.settings)
        self._followed = len(self.log)
        return self._follower.get("g", ConsumerGroup("g", self.settings))

    def successor(self) -> ConsumerGroup:
        """Has read the log from its beginning."""
        groups: dict[str, ConsumerGroup] = {}
        for record in self.log:
            replay(groups, decode(*encode(record)), self.settings)
        return groups.get("g", ConsumerGroup("g", self.settings))


def owned(*clients: Client) -> list[tuple[str, int]]:
    return sorted((str(topic), number) for c in clients for topic, number in pairs(c.owned))


def test_the_only_member_gets_everything_in_its_first_answer() -> None:
    coordinator, client = Coordinator(seen(t=3)), Client("a")
    coordinator.beat(client)
    assert client.epoch == 1
    assert len(owned(client)) == 3
    assert coordinator.group.phase is GroupPhase.STABLE


def test_a_partition_is_given_on_only_when_its_owner_has_let_go_of_it() -> None:
    coordinator, a, b = Coordinator(seen(t=2)), Client("a"), Client("b")
    coordinator.beat(a)
    coordinator.beat(b)
    assert owned(b) == []
    assert coordinator.group.members["b"].state is MemberState.UNRELEASED_PARTITIONS
    coordinator.beat(a)  # is told to give one up
    assert len(owned(a)) == 1
    coordinator.beat(b)
    assert owned(b) == [], "a has not yet confirmed"
    coordinator.beat(a)  # reports that it did
    coordinator.beat(b)
    assert len(owned(b)) == 1
    assert coordinator.group.phase is GroupPhase.STABLE


def test_what_a_busy_member_has_not_taken_up_yet_is_not_given_up_either() -> None:
    """librdkafka sends the next heartbeats, with what it owned before, while its process has yet
    to take up an assignment; told to give up a part of that, it takes all and then gives up."""
    coordinator, a, b = Coordinator(seen(t=4)), Client("a"), Client("b")
    coordinator.beat(a, busy=True)
    coordinator.beat(b)
    coordinator.beat(a, busy=True)  # it reports nothing, and is told to keep two of the four
    coordinator.beat(b)
    assert owned(b) == []
    everything, half = a.told
    a.told.clear()
    a.owned = everything
    coordinator.beat(a, busy=True)
    coordinator.beat(b)
    assert owned(b) == []
    a.owned = half
    coordinator.settle(a, b)
    assert len(owned(b)) == 2


def test_who_never_takes_up_an_assignment_that_was_taken_back_holds_nobody_up() -> None:
    coordinator, a, b = Coordinator(seen(t=4)), Client("a"), Client("b")
    coordinator.beat(a, busy=True)
    coordinator.beat(b)
    coordinator.beat(a, busy=True)
    a.take_up()  # the last word only
    coordinator.beat(a)
    coordinator.beat(b)
    assert len(owned(b)) == 2


def test_a_lost_answer_is_given_again_to_the_epoch_before() -> None:
    coordinator, a, b = Coordinator(seen(t=2)), Client("a"), Client("b")
    coordinator.beat(a)
    coordinator.beat(b, answer_lost=True)
    coordinator.beat(b)
    coordinator.settle(a, b)
    coordinator.view = seen(t=4)
    coordinator.beat(a, answer_lost=True)
    coordinator.beat(a)
    coordinator.settle(a, b)
    assert len(owned(a, b)) == 4


def test_a_member_that_missed_to_give_up_a_partition_is_told_again() -> None:
    """Without this it would read on for ever, and the next owner would wait for ever."""
    coordinator, a, b = Coordinator(seen(t=2)), Client("a"), Client("b")
    coordinator.beat(a)
    coordinator.beat(b)
    coordinator.beat(a, answer_lost=True)
    a.says_all = False
    coordinator.beat(a)
    assert len(owned(a)) == 1


def test_a_heartbeat_sent_before_the_slow_answer_to_the_last_is_good() -> None:
    coordinator, a, b = Coordinator(seen(t=2)), Client("a"), Client("b")
    coordinator.settle(a, b)
    coordinator.view = seen(t=3)
    early = replace(a.beat(), owned=None)
    coordinator.beat(a)
    assert early.epoch < a.epoch
    coordinator.view = seen(t=1)
    member, assignment, records = coordinator.group.heartbeat(
        early, coordinator.view, now_ms=0, wall_ms=0
    )
    assert (member.epoch, assignment) == (a.epoch, a.owned)
    moves = [record for record in records if "CurrentMemberAssignment" in type(record.key).__name__]
    assert moves == [], "it must not give up what it does not know that it has"


def newcomer_with_a_lost_answer(partitions: int) -> tuple[Coordinator, Client, Client]:
    """The second of two members has its half, by an answer that it never got, in the epoch in which
    it already was."""
    coordinator = Coordinator(seen(t=partitions))
    a, b = Client("a", terse=True), Client("b", terse=True)
    coordinator.beat(a)
    coordinator.beat(a)
    coordinator.beat(b)
    coordinator.beat(a)
    coordinator.beat(a)
    coordinator.beat(b, answer_lost=True)
    assert len(pairs(coordinator.group.members["b"].assigned)) == partitions // 2
    assert owned(b) == []
    return coordinator, a, b


def test_a_member_is_told_what_it_shall_read_until_it_says_that_it_does() -> None:
    """Without this a partition had an owner that had never heard of it."""
    coordinator, _, b = newcomer_with_a_lost_answer(2)
    coordinator.beat(b, busy=True)
    assert len(b.told) == 1
    b.take_up()
    coordinator.beat(b)
    view = coordinator.view
    assert coordinator.group.heartbeat(b.beat(), view, now_ms=0, wall_ms=0)[1] is None


def test_what_a_member_may_not_have_heard_of_is_not_asked_back_before_it_reports() -> None:
    """It would have nothing to report, and the partition would wait for its rebalance timeout."""
    coordinator, a, b = newcomer_with_a_lost_answer(2)
    unsubscribed = replace(b.beat(), topics=("u",))
    coordinator.group.heartbeat(unsubscribed, coordinator.view, now_ms=0, wall_ms=0)
    coordinator.settle(a, b)
    assert (len(owned(a)), owned(b)) == (2, [])
    assert coordinator.group.phase is GroupPhase.STABLE


def test_a_new_coordinator_tells_a_member_what_it_has_before_it_asks_for_it() -> None:
    """The last answer of the one before may be lost; of what the member never had it would never
    say that it is gone, and its partition would wait for the rebalance timeout."""
    coordinator, a, b = newcomer_with_a_lost_answer(2)
    coordinator.group = coordinator.successor()
    coordinator.group.begin_sessions(0)
    unsubscribed = replace(b.beat(), topics=("u",))
    member, assignment, records = coordinator.group.heartbeat(
        unsubscribed, coordinator.view, now_ms=0, wall_ms=0
    )
    assert assignment == member.assigned != NOTHING
    coordinator.log += records
    b.told_of(member.epoch, assignment)
    b.take_up()
    coordinator.settle(a, b)
    assert (len(owned(a)), owned(b)) == (2, [])
    assert coordinator.group.phase is GroupPhase.STABLE


def test_a_member_that_never_reports_is_fenced_when_others_wait_for_what_it_was_told() -> None:
    coordinator, a, b = Coordinator(seen(t=2)), Client("a", terse=True), Client("b")
    coordinator.beat(a, busy=True)
    coordinator.beat(b)
    for _ in range(3):
        coordinator.beat(a, busy=True)
        coordinator.now_ms += REBALANCE_MS // 2
    assert coordinator.group.overdue(coordinator.now_ms) == ["a"]


def test_a_subscription_is_heard_although_the_last_answer_was_not() -> None:
    coordinator, a = Coordinator(seen(t=1, u=1)), Client("a", terse=True)
    coordinator.beat(a)
    coordinator.beat(a)
    coordinator.view = seen(t=2, u=1)
    coordinator.beat(a, answer_lost=True)
    changed = replace(a.beat(), topics=("t", "u"))
    coordinator.group.heartbeat(changed, coordinator.view, now_ms=0, wall_ms=0)
    coordinator.settle(a)
    assert len(owned(a)) == 3


def test_a_member_of_another_epoch_is_fenced() -> None:
    coordinator, a = Coordinator(seen(t=2)), Client("a")
    coordinator.beat(a)
    a.epoch = 7
    with pytest.raises(Refused) as refused:
        coordinator.beat(a)
    assert refused.value.error is ErrorCode.FENCED_MEMBER_EPOCH


def test_an_unknown_member_must_join_first() -> None:
    coordinator = Coordinator(seen(t=2))
    with pytest.raises(Refused) as refused:
        coordinator.beat(Client("a", epoch=3))
    assert refused.value.error is ErrorCode.UNKNOWN_MEMBER_ID


def test_new_partitions_reach_the_group_with_the_next_heartbeat() -> None:
    coordinator, a = Coordinator(seen(t=1)), Client("a", topics=("t", "u"))
    coordinator.beat(a)
    coordinator.view = seen(t=3, u=2)
    coordinator.beat(a)
    assert len(owned(a)) == 5
    assert a.epoch == 2


def test_a_member_that_keeps_what_it_should_give_up_is_fenced_in_time() -> None:
    coordinator, a, b = Coordinator(seen(t=2)), Client("a"), Client("b")
    coordinator.beat(a)
    coordinator.beat(b)
    coordinator.beat(a)
    assert coordinator.group.overdue(coordinator.now_ms + REBALANCE_MS - 1) == []
    assert coordinator.group.overdue(coordinator.now_ms + REBALANCE_MS) == ["a"]
    coordinator.log += coordinator.group.remove("a")
    coordinator.beat(b)
    assert len(owned(b)) == 2


def test_a_silent_member_is_fenced_after_its_session() -> None:
    coordinator, a = Coordinator(seen(t=1)), Client("a")
    coordinator.beat(a)
    assert coordinator.group.overdue(999) == []
    assert coordinator.group.overdue(1_000) == ["a"]
    assert coordinator.group.next_deadline_ms() == 1_000


def test_a_static_member_comes_back_to_what_it_had() -> None:
    coordinator = Coordinator(seen(t=4))
    a, b = Client("a", instance_id="i"), Client("b")
    coordinator.settle(a, b)
    had, epoch = owned(a), coordinator.group.epoch
    coordinator.log += coordinator.group.leave("a", "i", -2)
    coordinator.beat(b)
    assert len(owned(b)) == 2, "its partitions wait for it"
    again = Client("a2", instance_id="i")
    coordinator.beat(again)
    assert owned(again) == had
    assert coordinator.group.epoch == epoch
    with pytest.raises(Refused) as refused:
        coordinator.beat(Client("a", instance_id="i", epoch=a.epoch, owned=a.owned))
    assert refused.value.error is ErrorCode.FENCED_INSTANCE_ID


def test_the_place_of_a_living_static_member_is_not_given_away() -> None:
    coordinator, a = Coordinator(seen(t=1)), Client("a", instance_id="i")
    coordinator.beat(a)
    with pytest.raises(Refused) as refused:
        coordinator.beat(Client("b", instance_id="i"))
    assert refused.value.error is ErrorCode.UNRELEASED_INSTANCE_ID


@pytest.mark.parametrize(
    ("member_id", "epoch", "knows", "error"),
    [
        ("a", 1, True, ErrorCode.NONE),
        ("a", 0, True, ErrorCode.STALE_MEMBER_EPOCH),
        ("a", 2, True, ErrorCode.STALE_MEMBER_EPOCH),
        ("a", 1, False, ErrorCode.UNSUPPORTED_VERSION),
        ("x", 1, True, ErrorCode.UNKNOWN_MEMBER_ID),
        ("", -1, True, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_only_a_member_in_its_epoch_commits(
    member_id: str, epoch: int, knows: bool, error: ErrorCode
) -> None:
    coordinator = Coordinator(seen(t=1))
    coordinator.beat(Client("a"))
    assert coordinator.group.check_commit(member_id, epoch, knows_epochs=knows) is error


class Groups(RuleBasedStateMachine):
    """Clients come, go, fall silent and lose answers; coordinators come and go; topics grow."""

    def __init__(self, settings: ConsumerGroupSettings = SETTINGS) -> None:
        super().__init__()
        self.coordinator = Coordinator(seen(t=3, u=2), settings)
        self.clients: dict[str, Client] = {}
        self.made = 0
        self.sizes = {"t": 3, "u": 2}

    @precondition(lambda self: len(self.clients) < 5)
    @rule(
        topics=st.sampled_from([("t",), ("u",), ("t", "u")]),
        static=st.booleans(),
        terse=st.booleans(),
    )
    def join(self, topics: tuple[str, ...], static: bool, terse: bool) -> None:
        self.made += 1
        name = f"m{self.made}"
        instance_id = f"i-{name}" if static else None
        self.clients[name] = Client(name, topics, instance_id, terse=terse)
        self.beat(name, lost=False)

    @precondition(lambda self: self.clients)
    @rule(data=st.data(), lost=st.booleans(), busy=st.booleans())
    def heartbeat(self, data: st.DataObject, lost: bool, busy: bool) -> None:
        self.beat(data.draw(st.sampled_from(sorted(self.clients))), lost, busy)

    @precondition(lambda self: self.clients)
    @rule(data=st.data())
    def take_up_one(self, data: st.DataObject) -> None:
        """What a busy process was told first."""
        client = self.clients[data.draw(st.sampled_from(sorted(self.clients)))]
        if client.told:
            client.take_up_next()

    def beat(self, name: str, lost: bool, busy: bool = False) -> None:
        client = self.clients[name]
        try:
            self.coordinator.beat(client, answer_lost=lost, busy=busy)
        except Refused as refused:
            if refused.error not in (ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID):
                raise
            # As a client does: abandon everything and join again.
            client.epoch, client.owned, client.says_all = 0, NOTHING, True
            client.told.clear()

    @precondition(lambda self: self.clients)
    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        client = self.clients.pop(data.draw(st.sampled_from(sorted(self.clients))))
        group = self.coordinator.group
        if client.member_id in group.members:
            self.coordinator.log += group.leave(client.member_id, client.instance_id, -1)

    @precondition(lambda self: self.clients)
    @rule(data=st.data())
    def fenced(self, data: st.DataObject) -> None:
        """Its session ends; it stops reading, for its own clock runs too."""
        client = self.clients[data.draw(st.sampled_from(sorted(self.clients)))]
        if client.member_id in self.coordinator.group.members:
            self.coordinator.log += self.coordinator.group.remove(client.member_id)
        client.owned = NOTHING
        client.told.clear()

    @rule(topic=st.sampled_from(["t", "u"]))
    def grow(self, topic: str) -> None:
        self.sizes[topic] = min(self.sizes[topic] + 1, 8)
        self.coordinator.view = seen(**self.sizes)

    @rule()
    def another_coordinator(self) -> None:
        self.coordinator.group = self.coordinator.successor()
        self.coordinator.group.begin_sessions(0)

    @invariant()
    def no_partition_has_two_owners(self) -> None:
        held = owned(*self.clients.values())
        assert len(held) == len(set(held))

    @invariant()
    def the_log_says_all(self) -> None:
        live, replayed = self.coordinator.group, self.coordinator.replayed()
        assert replayed.members == live.members
        assert replayed.epoch == live.epoch
        assert replayed.assignment_epoch == live.assignment_epoch
        assert {n: t for n, t in replayed.targets.items() if t} == {
            n: t for n, t in live.targets.items() if t
        }

    def teardown(self) -> None:
        """Left alone, the group gives every partition that anybody reads to somebody."""
        self.coordinator.assigns_by_itself = True
        for client in self.clients.values():
            client.says_all = not client.terse
        clients = self.clients.values()
        for _ in range(6):
            for name in sorted(self.clients):
                self.beat(name, lost=False)
            self.coordinator.now_ms += self.coordinator.settings.assignment_interval_ms
        read = {topic for client in clients for topic in client.topics}
        assert len(owned(*clients)) == sum(self.sizes[topic] for topic in read)
        if self.clients:
            assert self.coordinator.group.phase is GroupPhase.STABLE


TestGroups = Groups.TestCase
TestGroups.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)


class SlowlyAssignedGroups(Groups):
    """As those of hundreds of members: joins share an assignment, heartbeats come between its
    slices, members leave, return and change their minds meanwhile."""

    def __init__(self) -> None:
        super().__init__(replace(SETTINGS, assignment_interval_ms=5))
        self.coordinator.assigns_by_itself = False
        self._smallest_slices = mock.patch.object(slices, "UNITS_PER_SLICE", 1)
        self._smallest_slices.start()

    @rule(ms=st.integers(1, 10))
    def time_passes(self, ms: int) -> None:
        self.coordinator.now_ms += ms

    @rule()
    def a_slice(self) -> None:
        self.coordinator.assign_on()

    @precondition(lambda self: self.clients)
    @rule(data=st.data(), topics=st.sampled_from([("t",), ("u",), ("t", "u")]))
    def subscribe(self, data: st.DataObject, topics: tuple[str, ...]) -> None:
        name = data.draw(st.sampled_from(sorted(self.clients)))
        self.clients[name].topics, self.clients[name].says_all = topics, True
        self.beat(name, lost=False)

    @precondition(lambda self: any(c.instance_id for c in self.clients.values()))
    @rule(data=st.data())
    def restart(self, data: st.DataObject) -> None:
        """A static member's process stops, and its successor comes at once."""
        static = [name for name in sorted(self.clients) if self.clients[name].instance_id]
        old = self.clients.pop(data.draw(st.sampled_from(static)))
        group = self.coordinator.group
        if old.member_id in group.members:
            self.coordinator.log += group.leave(old.member_id, old.instance_id, -2)
        self.made += 1
        name = f"m{self.made}"
        self.clients[name] = Client(name, old.topics, old.instance_id, terse=old.terse)
        self.beat(name, lost=False)

    def teardown(self) -> None:
        try:
            super().teardown()
        finally:
            self._smallest_slices.stop()


TestSlowlyAssignedGroups = SlowlyAssignedGroups.TestCase
TestSlowlyAssignedGroups.settings = settings(max_examples=50, stateful_step_count=40, deadline=None)
