"""The classic group protocol, step by step, without sockets or clocks."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logboat.groups.member import Member
from logboat.groups.protocol_choice import Offers
from logboat.groups.settings import GroupSettings
from logboat.groups.states import GroupState
from logboat.wire import ErrorCode
from tests.groups.group_script import Script


def test_a_lone_member_leads_and_gets_its_assignment_only_when_it_is_replicated() -> None:
    script = Script()
    answer = script.joined(script.join())
    assert (answer.error, answer.generation_id) == (ErrorCode.NONE, 1)
    assert answer.leader == answer.member_id
    assert [m.metadata for m in answer.members] == [b"topics"]
    token = script.sync(answer.member_id, 1, ((answer.member_id, b"p0"),))
    assert token not in script.answers
    script.persisted()
    assert script.synced(token).assignment == b"p0"
    assert script.group.state is GroupState.STABLE


def test_only_the_leader_learns_the_members() -> None:
    script = Script()
    first = script.joined(script.join()).member_id
    second_join = script.join()
    assert second_join not in script.answers  # waits for the first to join again
    first_join = script.join(first)
    assert len(script.joined(first_join).members) == 2
    assert script.joined(second_join).members == ()
    assert script.joined(second_join).generation_id == 2


def test_a_failed_assignment_write_is_told_to_everybody_and_rebalances() -> None:
    script = Script()
    answer = script.joined(script.join())
    token = script.sync(answer.member_id, 1, ((answer.member_id, b"p0"),))
    script.persisted(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    assert script.synced(token).error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert script.group.state is GroupState.PREPARING_REBALANCE


def test_a_dynamic_member_first_learns_its_id() -> None:
    script = Script()
    refused = script.joined(script.join(known_id_required=True))
    assert refused.error is ErrorCode.MEMBER_ID_REQUIRED
    accepted = script.joined(script.join(refused.member_id, known_id_required=True))
    assert accepted.error is ErrorCode.NONE
    assert accepted.member_id == refused.member_id


def test_a_handed_out_id_is_forgotten_after_a_session() -> None:
    script = Script()
    refused = script.joined(script.join(known_id_required=True))
    script.wait(10_001)
    again = script.joined(script.join(refused.member_id, known_id_required=True))
    assert again.error is ErrorCode.UNKNOWN_MEMBER_ID


def test_the_first_rebalance_waits_for_more_members_but_not_for_ever() -> None:
    script = Script(GroupSettings(initial_rebalance_delay_ms=3_000))
    first = script.join(rebalance_ms=5_000)
    script.wait(2_900)
    second = script.join(rebalance_ms=5_000)
    script.wait(200)
    assert first not in script.answers  # somebody came: the window was extended
    script.wait(2_000)
    assert script.joined(first).generation_id == 1
    assert script.joined(second).generation_id == 1


def test_heartbeats_tell_of_a_rebalance() -> None:
    script = Script()
    first, second = script.stable_pair()
    assert script.group.heartbeat(first, None, 2, script.now_ms) is ErrorCode.NONE
    script.join()
    for member in (first, second):
        told = script.group.heartbeat(member, None, 2, script.now_ms)
        assert told is ErrorCode.REBALANCE_IN_PROGRESS


@pytest.mark.parametrize(
    ("member", "generation", "error"),
    [
        ("nobody", 2, ErrorCode.UNKNOWN_MEMBER_ID),
        (None, 1, ErrorCode.ILLEGAL_GENERATION),
        (None, 3, ErrorCode.ILLEGAL_GENERATION),
    ],
)
def test_heartbeat_and_commit_fence_by_member_and_generation(
    member: str | None, generation: int, error: ErrorCode
) -> None:
    script = Script()
    first, _ = script.stable_pair()
    who = member or first
    assert script.group.heartbeat(who, None, generation, script.now_ms) is error
    assert script.group.may_commit(who, None, generation, script.now_ms) is error


def test_a_silent_member_loses_its_place_and_the_rest_rebalance() -> None:
    script = Script()
    first, second = script.stable_pair()
    for _ in range(4):
        script.wait(3_000)
        script.group.heartbeat(first, None, 2, script.now_ms)
    assert second not in script.group.members
    assert script.group.state is GroupState.PREPARING_REBALANCE
    again = script.joined(script.join(first))
    assert again.generation_id == 3


def test_sessions_that_end_with_the_rebalance_take_each_member_out_once() -> None:
    script = Script()
    pair = script.stable_pair()
    third = script.join(session_ms=100_000)
    for _ in range(10):  # they beat until a session before the rebalance's end, and never join
        script.wait(5_000)
        for member_id in pair:
            told = script.group.heartbeat(
                member_id, None, script.group.generation_id, script.now_ms
            )
            assert told is ErrorCode.REBALANCE_IN_PROGRESS
    assert third not in script.answers
    script.wait(10_000)
    member_id = script.joined(third).member_id
    assert list(script.group.members) == [member_id]


def test_a_member_of_a_large_group_expires_in_time_whoever_beats_meanwhile() -> None:
    """When the group must look is kept apart from its members' own deadlines."""
    script = Script()
    first, _ = script.stable_pair()
    for _ in range(3):
        script.wait(4_000)
        script.group.heartbeat(first, None, 2, script.now_ms)
    assert list(script.group.members) == [first]
    script.join(first)
    script.wait(100_000)
    assert script.group.state is GroupState.EMPTY
    assert script.group.next_deadline_ms() is None


def test_a_member_that_does_not_join_again_is_dropped_at_the_rebalance_timeout() -> None:
    script = Script()
    first, second = script.stable_pair()
    token = script.join(first, rebalance_ms=20_000, protocols=(("range", b"other"),))
    for _ in range(30):
        script.group.heartbeat(second, None, 2, script.now_ms)
        script.wait(2_000)
    assert script.joined(token).generation_id == 3
    assert list(script.group.members) == [first]


def test_a_member_that_never_syncs_is_dropped() -> None:
    script = Script()
    first = script.joined(script.join()).member_id
    second_join = script.join()
    first_join = script.join(first)
    second = script.joined(second_join).member_id
    script.sync(first, script.joined(first_join).generation_id, ((first, b"x"),))
    for _ in range(31):
        script.group.heartbeat(second, None, 2, script.now_ms)
        script.wait(2_000)
    assert second not in script.group.members


def test_the_last_member_leaves_an_empty_group_that_anybody_may_commit_to() -> None:
    script = Script()
    first, second = script.stable_pair()
    assert script.group.may_commit("", None, -1, script.now_ms) is ErrorCode.UNKNOWN_MEMBER_ID
    for member in (first, second):
        error, effects = script.group.leave(member, None, script.now_ms)
        script.take(effects)
        assert error is ErrorCode.NONE
    assert script.group.state is GroupState.EMPTY
    assert script.group.may_commit("", None, -1, script.now_ms) is ErrorCode.NONE
    assert script.persists[-1].assignments == ()


def test_a_follower_that_lost_its_answer_gets_the_same_generation_again() -> None:
    script = Script()
    _, second = script.stable_pair()
    again = script.joined(script.join(second))
    assert (again.error, again.generation_id) == (ErrorCode.NONE, 2)
    assert script.group.state is GroupState.STABLE


def test_members_without_a_common_protocol_are_refused() -> None:
    script = Script()
    script.stable_pair()
    refused = script.joined(script.join(protocols=(("sticky", b""),)))
    assert refused.error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_most_votes_choose_the_protocol_among_those_all_know() -> None:
    script = Script()
    both = (("a", b"1"), ("b", b"2"))
    first = script.joined(script.join(protocols=both)).member_id
    second_join = script.join(protocols=(("b", b"2"), ("a", b"1")))
    third_join = script.join(protocols=(("c", b""), ("b", b"2")))
    first_join = script.join(first, protocols=both)
    assert {script.joined(t).protocol for t in (first_join, second_join, third_join)} == {"b"}


def test_a_restarted_static_member_takes_its_place_without_a_rebalance() -> None:
    script = Script()
    first = script.joined(script.join(instance_id="i1"))
    script.sync(first.member_id, 1, ((first.member_id, b"p0"),), instance_id="i1")
    script.persisted()
    token = script.join(instance_id="i1")
    assert token not in script.answers  # until the new id is replicated
    script.persisted()
    again = script.joined(token)
    assert (again.generation_id, again.skip_assignment) == (1, True)
    assert again.member_id != first.member_id
    assert script.group.state is GroupState.STABLE
    synced = script.synced(script.sync(again.member_id, 1, instance_id="i1"))
    assert synced.assignment == b"p0"
    fenced = script.group.heartbeat(first.member_id, "i1", 1, script.now_ms)
    assert fenced is ErrorCode.FENCED_INSTANCE_ID


def test_a_full_group_refuses_more() -> None:
    script = Script(GroupSettings(initial_rebalance_delay_ms=0, max_size=1))
    script.join()
    assert script.joined(script.join()).error is ErrorCode.GROUP_MAX_SIZE_REACHED


def test_a_newcomer_whose_connection_ends_while_its_join_waits_is_forgotten() -> None:
    script = Script()
    first, second = script.stable_pair()
    newcomer = script.join()
    rejoins = [script.join(first)]
    script.gone(newcomer)
    rejoins.append(script.join(second))
    assert [script.joined(token).generation_id for token in rejoins] == [3, 3]
    assert list(script.group.members) == [first, second]
    again = script.joined(script.join(script.joined(newcomer).member_id))
    assert again.error is ErrorCode.UNKNOWN_MEMBER_ID, "and begins anew"


def test_a_new_static_member_keeps_its_place_when_its_connection_ends() -> None:
    script = Script()
    first, _ = script.stable_pair()
    script.gone(script.join(instance_id="i1"))
    script.join(first)
    assert len(script.group.members) == 3


def test_who_is_cut_off_while_its_join_waits_has_a_session_to_come_back() -> None:
    script = Script()
    first, second = script.stable_pair()
    newcomer = script.join()
    script.gone(script.join(second))
    script.wait(9_000)
    script.group.heartbeat(first, None, 2, script.now_ms)
    back = script.join(second)
    script.wait(9_000)
    assert second in script.group.members, "a join that waits is a sign of life again"
    first_join = script.join(first)
    joined = [script.joined(token) for token in (first_join, back, newcomer)]
    assert {answer.generation_id for answer in joined} == {3}


def test_the_session_of_who_is_cut_off_goes_on_in_the_next_generation() -> None:
    """Otherwise each generation would wait anew for members that left in the one before."""
    script = Script()
    first, second = script.stable_pair()
    script.join()
    script.gone(script.join(second))
    script.wait(9_000)
    joined = script.joined(script.join(first))
    assert second in [m.member_id for m in joined.members]
    script.wait(1_000)
    assert second not in script.group.members


def test_who_is_cut_off_leads_only_where_all_are() -> None:
    script = Script()
    first, second = script.stable_pair()
    newcomer = script.join()
    cut_off = script.join(first)
    script.gone(cut_off)
    token = script.join(second)
    assert script.joined(token).leader == second
    assert script.joined(newcomer).leader == second

    script = Script()
    first, second = script.stable_pair()
    script.join(first, protocols=(("range", b"other"),))
    script.gone(script.tokens)
    script.take(script.group.leave(second, None, script.now_ms)[1])
    assert script.group.state is GroupState.COMPLETING_REBALANCE
    assert script.group.leader == first


def test_a_dying_group_answers_everybody() -> None:
    script = Script()
    first, _ = script.stable_pair()
    waiting = script.join()
    script.take(script.group.die(ErrorCode.NOT_COORDINATOR))
    assert script.joined(waiting).error is ErrorCode.NOT_COORDINATOR
    late = script.joined(script.join(first))
    assert late.error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert script.group.next_deadline_ms() is None


protocol_names = st.lists(st.sampled_from(["range", "sticky", "own"]), min_size=1, max_size=4)


@given(st.lists(protocol_names, min_size=1, max_size=5), st.integers(0, 4))
def test_what_a_newcomer_must_offer_is_counted_as_if_all_were_asked(
    offered: list[list[str]], place: int
) -> None:
    members = [member_offering(names) for names in offered]
    offers = Offers()
    for member in members:
        offers.add(member)
    gone = member_offering(["own", "range"])
    offers.add(gone)
    offers.remove(gone)
    left_out = members[place] if place < len(members) else None
    others = [member for member in members if member is not left_out]
    for name in ("range", "sticky", "own"):
        everybody = all(member.supports(name) for member in others)
        assert offers.common_to_all_but(left_out, name) == everybody


@given(st.lists(protocol_names, min_size=1, max_size=5))
def test_the_common_protocol_with_most_votes_is_chosen(offered: list[list[str]]) -> None:
    offered = [[*names, "all"] for names in offered]  # who joined had one in common with the others
    members, offers = [member_offering(names) for names in offered], Offers()
    for member in members:
        offers.add(member)
    common = [n for n in dict.fromkeys(offered[0]) if all(n in names for names in offered)]
    votes = [next(name for name in names if name in common) for names in offered]
    assert offers.chosen(members[0]) == max(common, key=votes.count)


def member_offering(names: list[str]) -> Member:
    return Member(
        member_id="m",
        instance_id=None,
        client_id="",
        client_host="",
        session_timeout_ms=1,
        rebalance_timeout_ms=1,
        protocols=tuple((name, b"") for name in names),
    )


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["join", "rejoin", "sync", "beat", "leave", "gone", "wait", "persist"]),
            st.integers(0, 3),
        ),
        max_size=40,
    )
)
def test_nothing_is_answered_twice_and_generations_only_grow(steps: list[tuple[str, int]]) -> None:
    script = Script()
    last_generation = 0
    for action, choice in steps:
        members = list(script.group.members)
        member = members[choice % len(members)] if members else "nobody"
        generation = script.group.generation_id
        if action == "join":
            script.join(known_id_required=choice == 3)
        elif action == "rejoin":
            script.join(member, protocols=(("range", bytes([choice])),))
        elif action == "sync":
            script.sync(member, generation, tuple((m, b"x") for m in members))
        elif action == "beat":
            script.group.heartbeat(member, None, generation, script.now_ms)
        elif action == "leave":
            script.take(script.group.leave(member, None, script.now_ms)[1])
        elif action == "gone":
            script.gone(script.tokens - choice)
        elif action == "wait":
            script.wait(choice * 4_000)
        elif script.persists:
            script.persisted(ErrorCode.NONE if choice else ErrorCode.COORDINATOR_NOT_AVAILABLE)
        assert script.group.generation_id >= last_generation
        looks_ms = script.group.next_deadline_ms()
        for each in script.group.members.values():
            if each.is_new or not each.waiting:
                assert looks_ms is not None
                assert looks_ms <= each.session_deadline_ms
        last_generation = script.group.generation_id
        if script.group.state is GroupState.STABLE:
            assert script.group.leader in script.group.members
    # Whatever waits is released: nobody hangs when all time has passed or the group dies.
    script.take(script.group.die(ErrorCode.NOT_COORDINATOR))
    assert set(script.answers) | {0} >= set(range(1, script.tokens + 1))
