"""The judge of the churn finds what is wrong, on traces that are."""

from __future__ import annotations

import pytest

from tests.foreign.churn.judge import Event, Position, Verdict, What, judge


def taken(seconds: float, name: str, *partitions: int, generation: int = 1, id: str = "") -> Event:
    return Event(seconds, name, What.TAKEN, partitions, generation, id or name)


def given_up(seconds: float, name: str, *partitions: int) -> Event:
    return Event(seconds, name, What.GIVEN_UP, partitions)


def lost(seconds: float, name: str, *partitions: int) -> Event:
    return Event(seconds, name, What.LOST, partitions)


def dead(seconds: float, name: str) -> Event:
    return Event(seconds, name, What.DEAD)


def processed(seconds: float, name: str, *offsets: int) -> Event:
    positions = tuple(Position(0, offset) for offset in offsets)
    return Event(seconds, name, What.PROCESSED, positions=positions)


def committed(seconds: float, name: str, offset: int) -> Event:
    return Event(seconds, name, What.COMMITTED, positions=(Position(0, offset),))


def test_a_partition_goes_from_one_to_the_next() -> None:
    verdict = judge(
        [
            # As they come from several processes: not in order.
            taken(5, "b", 0, generation=2),
            processed(6, "b", 1, 2),
            taken(1, "a", 0),
            processed(2, "a", 0, 1),
            committed(3, "a", 1),
            given_up(4, "a", 0),
        ]
    )
    assert verdict == Verdict(ends={0: 3})
    assert verdict.complaints == {}


@pytest.mark.parametrize("gone", [given_up(2, "a", 0), lost(2, "a", 0), dead(2, "a")])
def test_who_gave_it_up_lost_it_or_died_owns_it_no_longer(gone: Event) -> None:
    handed_on = [taken(1, "a", 0), gone, taken(3, "b", 0, generation=2)]
    alive = [processed(4, "a"), committed(5, "a", 0)]
    assert judge([*handed_on, *alive]).complaints == {}


TWO_OWNERS = [taken(1, "a", 0), taken(3, "b", 0, generation=2)]


@pytest.mark.parametrize(
    "later",
    [
        [processed(4, "a", 0), committed(5, "a", 1)],
        [given_up(4, "a", 0), taken(5, "a", 1, generation=3)],
    ],
)
def test_two_owners_at_a_time_are_seen_where_the_group_knew_both(later: list[Event]) -> None:
    verdict = judge([*TWO_OWNERS, *later])
    assert verdict.clashes == {("a", 0): "b"}
    assert verdict.complaints == {"two owners at a time": {("a", 0): "b"}}


@pytest.mark.parametrize(
    "later",
    [
        [lost(4, "a", 0), taken(5, "a", 1, generation=3)],
        [given_up(4, "a", 0), taken(5, "a", 1, generation=3, id="another")],
        [processed(4, "a", 0), dead(5, "a")],
        [committed(4, "a", 1)],  # It was asked for before.
    ],
)
def test_who_was_thrown_out_may_learn_so_later(later: list[Event]) -> None:
    assert judge([*TWO_OWNERS, *later]).complaints == {}


def test_two_owners_in_one_generation_are_seen_even_one_after_the_other() -> None:
    verdict = judge([taken(1, "a", 0), lost(2, "a", 0), taken(3, "b", 0)])
    assert verdict.shared == ["0 in 1: a and b"]


def test_what_a_member_keeps_counts_in_its_next_generation() -> None:
    kept = [taken(1, "a", 0), taken(2, "a", 1, generation=2)]
    verdict = judge([*kept, lost(3, "a", 0, 1), taken(4, "b", 0, generation=2)])
    assert verdict.shared == ["0 in 2: a and b"]


def test_a_record_processed_by_two_in_one_generation_is_seen() -> None:
    verdict = judge(
        [
            *(taken(1, "a", 0), processed(2, "a", 0), given_up(3, "a", 0)),
            *(taken(4, "b", 1), processed(5, "b", 0)),
        ]
    )
    assert verdict.shared == ["0:0 by b in 1 and by a"]
    assert verdict.strays == ["0:0 by b in 1"]


def test_a_skipped_record_is_seen_although_somebody_processes_it_later() -> None:
    verdict = judge([taken(1, "a", 0), processed(2, "a", 0, 2), processed(3, "a", 1)])
    assert verdict.skipped == ["0:2 by a in 1, after 1"]
    assert verdict.ends == {0: 3}


def test_an_owner_that_begins_before_the_last_commit_is_seen() -> None:
    trace = [
        *(taken(1, "a", 0), processed(2, "a", 0, 1), committed(3, "a", 2), given_up(4, "a", 0)),
        *(taken(5, "b", 0, generation=2), processed(6, "b", 1)),
    ]
    assert judge(trace).steps_back == ["0:1 by b in 2, although 2 was committed"]
    without_commit = [each for each in trace if each.what is not What.COMMITTED]
    assert judge(without_commit).complaints == {}


def test_a_takeover_is_measured_from_the_death() -> None:
    verdict = judge([taken(1, "a", 0), dead(2, "a"), taken(8.25, "b", 0, generation=2)])
    assert verdict.takeovers == [6.25]


def test_a_client_that_gave_up_is_no_quiet_member() -> None:
    failed = Event.of('{"seconds": 1, "name": "a", "what": "failed", "member_id": "why"}')
    assert judge([failed]).complaints == {"failed": ["a: why"]}
