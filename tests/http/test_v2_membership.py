"""A consumer instance as a member of its group: what it says, and what it makes of the answers."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

import pytest

from logboat.node.http.confluent_v2.membership import Membership, Place, Standing
from logboat.node.http.confluent_v2.positions import Positions
from logboat.wire import ErrorCode
from logboat.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse

T = UUID(int=1)
A, B, C = (T, 0), (T, 1), (T, 2)


def told(
    epoch: int, *places: Place, error: ErrorCode = ErrorCode.NONE
) -> ConsumerGroupHeartbeatResponse:
    topics = [
        ConsumerGroupHeartbeatResponse.TopicPartitions(
            topic_id=T, partitions=[partition for _, partition in places]
        )
    ]
    assignment = ConsumerGroupHeartbeatResponse.Assignment(topic_partitions=topics)
    return ConsumerGroupHeartbeatResponse(
        error_code=error,
        member_epoch=epoch,
        heartbeat_interval_ms=5_000,
        assignment=None if error else assignment,
    )


def said(membership: Membership) -> set[Place]:
    """What its next beat says to own."""
    topics = membership.beat().topic_partitions
    assert topics is not None
    return {(topic.topic_id, partition) for topic in topics for partition in topic.partitions}


@pytest.fixture
def member() -> Membership:
    made = Membership("g", "m")
    made.subscribe(["b", "a", "b"], None)
    return made


def test_the_first_beat_joins_and_owns_nothing(member: Membership) -> None:
    beat = member.beat()
    assert (beat.group_id, beat.member_id, beat.member_epoch) == ("g", "m", 0)
    assert beat.subscribed_topic_names == ["a", "b"]
    assert beat.topic_partitions == []
    assert beat.rebalance_timeout_ms > 0
    assert member.standing is Standing.JOINING


def test_what_is_given_is_owned_and_said_at_once(member: Membership) -> None:
    heard = member.heard(told(1, A, B))
    assert heard.added == {A, B}
    assert heard.beat_again
    assert said(member) == {A, B}
    assert member.beat().member_epoch == 1
    assert not member.heard(told(1, A, B)).beat_again


def test_what_is_taken_away_is_given_up_before_the_next_beat_says_so(member: Membership) -> None:
    member.heard(told(1, A, B))
    heard = member.heard(told(1, B))
    assert heard.revoked == {A}
    assert heard.beat_again
    assert said(member) == {B}


@pytest.mark.parametrize("error", [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH])
def test_a_fenced_member_gives_everything_up_and_joins_anew(
    member: Membership, error: ErrorCode
) -> None:
    member.heard(told(3, A))
    heard = member.heard(told(0, error=error))
    assert heard.revoked == {A}
    assert heard.beat_again
    assert member.beat().member_epoch == 0
    assert said(member) == set()


def test_a_coordinator_that_is_busy_changes_nothing(member: Membership) -> None:
    member.heard(told(3, A))
    for error in (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR):
        heard = member.heard(told(0, error=error))
        assert (heard.revoked, heard.beat_again) == (frozenset(), False)
    assert said(member) == {A}


def test_a_refused_member_tries_again_only_when_it_subscribes(member: Membership) -> None:
    member.heard(told(0, error=ErrorCode.GROUP_MAX_SIZE_REACHED))
    assert member.standing is Standing.REFUSED
    assert member.refusal is not None
    assert member.refusal[0] is ErrorCode.GROUP_MAX_SIZE_REACHED
    member.subscribe(["a"], None)
    assert member.refusal is None
    assert member.heard(told(1, A)).added == {A}


def test_a_group_that_vanished_is_joined_anew_but_one_of_another_kind_refuses(
    member: Membership,
) -> None:
    missing = told(0, error=ErrorCode.GROUP_ID_NOT_FOUND)
    member.heard(told(2, A))
    assert member.heard(missing).beat_again
    member.heard(missing)
    assert member.standing is Standing.REFUSED


def test_another_subscription_replaces_the_one_before_without_a_new_join(
    member: Membership,
) -> None:
    member.heard(told(2, A))
    member.subscribe([], "x.*")
    beat = member.beat()
    assert beat.member_epoch == 2
    assert (beat.subscribed_topic_names, beat.subscribed_topic_regex) == ([], "x.*")
    member.subscribe(["a"], None)
    assert member.beat().subscribed_topic_regex == ""


def test_who_was_never_heard_of_leaves_without_a_word_others_say_so(member: Membership) -> None:
    assert Membership("g", "n").leave() is None
    # Its answer may be lost: the coordinator may know it.
    member.beat()
    leaving = member.leave()
    assert leaving is not None
    assert leaving.member_epoch == -1
    assert member.leave() is None
    # An answer that comes late brings nothing back.
    assert member.heard(told(1, A)).added == frozenset()
    assert said(member) == set()


# Positions


def positions(*places: Place, at: int = 0) -> Positions:
    made = Positions()
    made.own(places)
    for place in places:
        made.begin(place, at)
    return made


def test_a_delivery_moves_what_it_gave_out_and_that_is_to_be_committed() -> None:
    made = positions(A, B)
    assert made.to_commit() == {}
    made.deliver({A: 5})
    assert (made.at(A), made.at(B)) == (5, 0)
    assert made.to_commit() == {A: 5}
    made.note_committed({A: 5})
    assert made.to_commit() == {}


def test_a_delivery_that_nobody_got_is_taken_back_once_and_only_the_newest() -> None:
    made = positions(A, B)
    first = made.deliver({A: 5})
    second = made.deliver({A: 7, B: 2})
    made.take_back(first.number)
    assert (made.at(A), made.at(B)) == (7, 2)
    made.take_back(second.number)
    assert (made.at(A), made.at(B)) == (5, 0)
    assert made.to_commit() == {A: 5}
    made.deliver({A: 6})
    made.take_back(second.number)
    assert made.at(A) == 6


def test_what_was_sought_or_lost_since_is_not_taken_back() -> None:
    made = positions(A, B)
    delivery = made.deliver({A: 5, B: 5})
    made.give_up([B])
    made.seek(A, 1)
    made.take_back(delivery.number)
    assert made.at(A) == 1
    assert made.at(B) is None


def test_a_partition_that_was_given_up_begins_anew() -> None:
    made = positions(A)
    made.deliver({A: 5})
    made.give_up([A])
    assert made.to_commit() == {}
    made.own([A])
    assert made.unknown() == [A]


def test_what_is_found_out_does_not_undo_a_seek() -> None:
    made = Positions()
    made.own([A])
    made.seek(A, 9)
    made.begin(A, 3)
    assert made.at(A) == 9
    made.skip(A, 3, 4)
    assert made.at(A) == 9


def test_each_partition_comes_first_in_its_turn() -> None:
    made = positions(A, B, C)
    firsts: Iterable[Place] = [made.in_turn()[0] for _ in range(6)]
    assert sorted(firsts) == sorted([A, B, C] * 2)
