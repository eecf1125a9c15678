"""What went wrong in other coordinators, by the number of the case."""

from __future__ import annotations

import time

import pytest

from logboat.groups.settings import GroupSettings
from logboat.groups.states import GroupState
from logboat.wire import ErrorCode
from tests.groups.group_script import Script


@pytest.mark.parametrize("how", ["leaves", "expires"])
def test_p28_a_rebalance_does_not_wait_for_who_is_gone(how: str) -> None:
    script = Script()
    first, second = script.stable_pair()
    newcomer = script.join()
    again = script.join(first)
    assert again not in script.answers
    if how == "leaves":
        _, effects = script.group.leave(second, None, script.now_ms)
        script.take(effects)
    else:
        script.wait(10_000)
    answers = [script.joined(again), script.joined(newcomer)]
    assert {answer.generation_id for answer in answers} == {3}
    assert len({answer.leader for answer in answers}) == 1
    assert set(script.group.members) == {answer.member_id for answer in answers}


def test_p30_a_static_member_replaces_itself_in_the_middle_of_a_rebalance() -> None:
    script = Script()
    parked = script.join(instance_id="i1")
    old = script.joined(parked).member_id
    script.sync(old, 1, ((old, b"p0"),), instance_id="i1")
    script.persisted()
    other = script.join()
    waiting = script.join(old, instance_id="i1")
    # The second member is here too, so the rebalance is over; begin another that waits.
    assert script.joined(other).generation_id == script.joined(waiting).generation_id == 2
    third = script.join()
    waiting = script.join(old, instance_id="i1")
    replacement = script.join(instance_id="i1")
    assert script.joined(waiting).error is ErrorCode.FENCED_INSTANCE_ID
    beat = script.group.heartbeat(old, "i1", 2, script.now_ms)
    assert beat is ErrorCode.FENCED_INSTANCE_ID
    commit = script.group.may_commit(old, "i1", 2, script.now_ms)
    assert commit is ErrorCode.FENCED_INSTANCE_ID
    synced = script.synced(script.sync(old, 2, instance_id="i1"))
    assert synced.error is ErrorCode.FENCED_INSTANCE_ID
    script.join(script.joined(other).member_id)
    names = [m.instance_id for m in script.group.members.values()]
    assert names.count("i1") == 1
    assert script.joined(replacement).generation_id == script.joined(third).generation_id == 3


@pytest.mark.parametrize(
    ("state", "generation", "member", "error"),
    [
        (GroupState.STABLE, 0, "first", ErrorCode.NONE),
        (GroupState.STABLE, -1, "first", ErrorCode.ILLEGAL_GENERATION),
        (GroupState.STABLE, 0, "nobody", ErrorCode.UNKNOWN_MEMBER_ID),
        (GroupState.STABLE, None, "", ErrorCode.UNKNOWN_MEMBER_ID),
        (GroupState.PREPARING_REBALANCE, 0, "first", ErrorCode.NONE),
        (GroupState.PREPARING_REBALANCE, -1, "first", ErrorCode.ILLEGAL_GENERATION),
        (GroupState.COMPLETING_REBALANCE, 0, "first", ErrorCode.REBALANCE_IN_PROGRESS),
        (GroupState.COMPLETING_REBALANCE, -1, "first", ErrorCode.ILLEGAL_GENERATION),
    ],
)
def test_p32_a_commit_that_crosses_a_rebalance_gets_the_error_that_tells_what_to_do(
    state: GroupState, generation: int | None, member: str, error: ErrorCode
) -> None:
    """`generation` counts from the one in force; None: an administrator's commit."""
    script = Script()
    first, second = script.stable_pair()
    if state is not GroupState.STABLE:
        script.join()
    if state is GroupState.COMPLETING_REBALANCE:
        script.join(first)
        script.join(second)
    assert script.group.state is state
    member_id = first if member == "first" else member
    number = -1 if generation is None else script.group.generation_id + generation
    assert script.group.may_commit(member_id, None, number, script.now_ms) is error


def test_o07_half_joined_members_cost_little_and_are_forgotten() -> None:
    script = Script()
    first, second = script.stable_pair()
    began = time.process_time()
    for _ in range(20_000):
        token = script.join(known_id_required=True)
        script.group.next_deadline_ms()
    # A cost that grew with those before would take minutes.
    assert time.process_time() - began < 20
    assert script.joined(token).error is ErrorCode.MEMBER_ID_REQUIRED
    assert script.group.state is GroupState.STABLE
    for _ in range(3):
        script.wait(4_000)
        for member in (first, second):
            beat = script.group.heartbeat(member, None, 2, script.now_ms)
            assert beat is ErrorCode.NONE
    late = script.join(script.joined(token).member_id)
    assert script.joined(late).error is ErrorCode.UNKNOWN_MEMBER_ID


def test_o07_handed_out_ids_count_for_the_size_of_the_group() -> None:
    script = Script(GroupSettings(initial_rebalance_delay_ms=0, max_size=2))
    for _ in range(2):
        script.join(known_id_required=True)
    refused = script.join(known_id_required=True)
    assert script.joined(refused).error is ErrorCode.GROUP_MAX_SIZE_REACHED
