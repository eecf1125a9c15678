"""The server's assignors: everything assigned once, evenly, and with little movement."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from logboat.groups.consumer.assignors import Subscriber, assign_range, assign_uniform
from logboat.groups.consumer.partition_sets import NOTHING, PartitionSet, pairs

TOPICS = [UUID(int=number) for number in range(1, 5)]

counts_strategy = st.dictionaries(st.sampled_from(TOPICS), st.integers(1, 12), min_size=1)


@st.composite
def groups(
    draw: st.DrawFn, *, same_topics: bool
) -> tuple[dict[str, Subscriber], Mapping[UUID, int]]:
    counts = draw(counts_strategy)
    names = [f"m{number}" for number in range(draw(st.integers(1, 6)))]
    everything = tuple(counts)
    members = {}
    free = [(topic, number) for topic, count in counts.items() for number in range(count + 2)]
    for name in names:
        topics = everything
        if not same_topics:
            topics = tuple(draw(st.sets(st.sampled_from(everything))))
        held: dict[UUID, list[int]] = {}
        for topic, number in draw(st.lists(st.sampled_from(free), unique=True)) if free else []:
            free.remove((topic, number))
            held.setdefault(topic, []).append(number)
        current = {topic: tuple(sorted(numbers)) for topic, numbers in held.items()}
        members[name] = Subscriber(None, topics, current)
    return members, counts


def check_complete(
    given_to: Mapping[str, PartitionSet],
    members: Mapping[str, Subscriber],
    counts: Mapping[UUID, int],
) -> None:
    """Every partition that somebody reads has one reader, who subscribed to its topic."""
    handed_out = sorted(
        ((topic.int, number) for found in given_to.values() for topic, number in pairs(found))
    )
    read = {topic for member in members.values() for topic in member.topics}
    expected = sorted((topic.int, number) for topic in read for number in range(counts[topic]))
    assert handed_out == expected
    for name, found in given_to.items():
        assert set(found) <= set(members[name].topics)


@given(groups(same_topics=False))
def test_both_give_every_partition_to_one_subscriber(
    case: tuple[dict[str, Subscriber], Mapping[UUID, int]],
) -> None:
    members, counts = case
    check_complete(assign_uniform(members, counts), members, counts)
    check_complete(assign_range(members, counts), members, counts)


@given(groups(same_topics=True))
def test_uniform_gives_nobody_two_more_than_another(
    case: tuple[dict[str, Subscriber], Mapping[UUID, int]],
) -> None:
    members, counts = case
    sizes = [len(pairs(found)) for found in assign_uniform(members, counts).values()]
    assert max(sizes) - min(sizes) <= 1


@given(groups(same_topics=False))
def test_uniform_moves_nothing_when_nothing_changed(
    case: tuple[dict[str, Subscriber], Mapping[UUID, int]],
) -> None:
    members, counts = case
    first = assign_uniform(members, counts)
    again = {name: Subscriber(None, member.topics, first[name]) for name, member in members.items()}
    assert assign_uniform(again, counts) == first


def test_a_newcomer_gets_its_share_and_nobody_else_gains() -> None:
    topic = TOPICS[0]
    members = {f"m{n}": Subscriber(None, (topic,), NOTHING) for n in range(3)}
    before = assign_uniform(members, {topic: 12})
    members = {name: Subscriber(None, (topic,), before[name]) for name in members}
    after = assign_uniform({**members, "new": Subscriber(None, (topic,), NOTHING)}, {topic: 12})
    assert len(pairs(after["new"])) == 3
    for name in members:
        assert set(pairs(after[name])) < set(pairs(before[name]))


def test_range_puts_the_same_partitions_of_equal_topics_together() -> None:
    members = {f"m{n}": Subscriber(None, (TOPICS[0], TOPICS[1]), NOTHING) for n in range(2)}
    found = assign_range(members, {TOPICS[0]: 3, TOPICS[1]: 3})
    assert found["m0"] == {TOPICS[0]: (0, 1), TOPICS[1]: (0, 1)}
    assert found["m1"] == {TOPICS[0]: (2,), TOPICS[1]: (2,)}


def test_range_orders_static_members_by_instance_so_that_restarts_move_nothing() -> None:
    def assigned(first_id: str, second_id: str) -> list[PartitionSet]:
        members = {
            first_id: Subscriber("i0", (TOPICS[0],), NOTHING),
            second_id: Subscriber("i1", (TOPICS[0],), NOTHING),
        }
        found = assign_range(members, {TOPICS[0]: 3})
        return [found[first_id], found[second_id]]

    assert assigned("a", "b") == assigned("z", "b")
