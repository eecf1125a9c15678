"""The server's assignors: everything assigned once, evenly, and with little movement."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from logboat.groups.consumer.assignors import (
    Counts,
    Members,
    Subscriber,
    Targets,
    assign_range,
    assign_uniform,
)
from logboat.groups.consumer.partition_sets import PartitionSet, pairs, partition_set, size
from logboat.groups.consumer.slices import Effort
from logboat.seam import all_at_once, frozen

TOPICS = [UUID(int=number) for number in range(1, 5)]

counts_strategy = st.dictionaries(st.sampled_from(TOPICS), st.integers(1, 12), min_size=1)


@frozen
class Case:
    members: Members
    counts: Counts
    current: Targets

    def uniform(self) -> Targets:
        return all_at_once(assign_uniform(self.members, self.counts, self.current, Effort()))

    def range(self) -> Targets:
        return all_at_once(assign_range(self.members, self.counts, self.current, Effort()))


def reading(*topics: UUID, instance_id: str | None = None) -> Subscriber:
    return Subscriber(instance_id, frozenset(topics))


@st.composite
def groups(draw: st.DrawFn, *, same_topics: bool) -> Case:
    counts = draw(counts_strategy)
    names = [f"m{number}" for number in range(draw(st.integers(1, 6)))]
    members, current = {}, {}
    free = [(topic, number) for topic, count in counts.items() for number in range(count + 2)]
    for name in names:
        topics = list(counts)
        if not same_topics:
            topics = draw(st.lists(st.sampled_from(list(counts)), unique=True))
        held = draw(st.lists(st.sampled_from(free), unique=True)) if free else []
        for pair in held:
            free.remove(pair)
        members[name] = reading(*topics)
        current[name] = partition_set(held)
    return Case(members, counts, current)


def check_complete(given_to: Targets, case: Case) -> None:
    """Every partition that somebody reads has one reader, who subscribed to its topic."""
    handed_out = sorted(
        ((topic.int, number) for found in given_to.values() for topic, number in pairs(found))
    )
    read = {topic for member in case.members.values() for topic in member.topics}
    expected = sorted((topic.int, number) for topic in read for number in range(case.counts[topic]))
    assert handed_out == expected
    for name, found in given_to.items():
        assert set(found) <= case.members[name].topics


@given(groups(same_topics=False))
def test_both_give_every_partition_to_one_subscriber(case: Case) -> None:
    check_complete(case.uniform(), case)
    check_complete(case.range(), case)


@given(groups(same_topics=True))
def test_uniform_gives_nobody_two_more_than_another(case: Case) -> None:
    sizes = [size(found) for found in case.uniform().values()]
    assert max(sizes) - min(sizes) <= 1


@given(groups(same_topics=False))
def test_uniform_leaves_nothing_that_would_make_a_mixed_group_more_even(case: Case) -> None:
    given_to = case.uniform()
    for giver, has in given_to.items():
        for taker, member in case.members.items():
            if size(has) >= size(given_to[taker]) + 2:
                assert member.topics.isdisjoint(has), (giver, taker)


@given(groups(same_topics=False))
def test_uniform_moves_nothing_when_nothing_changed(case: Case) -> None:
    first = case.uniform()
    assert replace(case, current=first).uniform() == first


def test_a_newcomer_gets_its_share_and_nobody_else_gains() -> None:
    topic = TOPICS[0]
    old = Case({f"m{n}": reading(topic) for n in range(3)}, {topic: 12}, {})
    before = old.uniform()
    after = Case({**old.members, "new": reading(topic)}, {topic: 12}, before).uniform()
    assert size(after["new"]) == 3
    for name in old.members:
        assert set(pairs(after[name])) < set(pairs(before[name]))


def test_range_puts_the_same_partitions_of_equal_topics_together() -> None:
    members = {f"m{n}": reading(*TOPICS[:2]) for n in range(2)}
    found = Case(members, {TOPICS[0]: 3, TOPICS[1]: 3}, {}).range()
    assert found["m0"] == {TOPICS[0]: (0, 1), TOPICS[1]: (0, 1)}
    assert found["m1"] == {TOPICS[0]: (2,), TOPICS[1]: (2,)}


def test_range_orders_static_members_by_instance_so_that_restarts_move_nothing() -> None:
    def assigned(first_id: str, second_id: str) -> list[PartitionSet]:
        members = {
            first_id: reading(TOPICS[0], instance_id="i0"),
            second_id: reading(TOPICS[0], instance_id="i1"),
        }
        found = Case(members, {TOPICS[0]: 3}, {}).range()
        return [found[first_id], found[second_id]]

    assert assigned("a", "b") == assigned("z", "b")
