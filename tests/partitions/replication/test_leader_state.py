"""RULES D1-D5 and C3 as the leader decides them; one sentence of the rules per test."""

from __future__ import annotations

from dataclasses import replace

import pytest

from logboat.partitions.isr_proposal import ProposalVerdict, verdict_on
from logboat.partitions.leader import REFUSED_JOIN_PAUSE_MS
from logboat.seam import Fatal
from logboat.wire import ErrorCode
from tests.partitions.replication.leader_scene import LAG_MS, LeaderScene, broker

# D1: the high watermark.


def test_d1_high_watermark_waits_for_slowest_isr_member() -> None:
    scene = LeaderScene()
    scene.write(10)
    scene.fetch(2, 10)
    assert scene.high_watermark == 0
    scene.fetch(3, 7)
    assert scene.high_watermark == 7
    scene.fetch(3, 10)
    assert scene.advances == [7, 10]


def test_c2_the_leaders_share_of_the_watermark_is_its_synced_end() -> None:
    scene = LeaderScene()
    scene.append(10)
    scene.fetch(2, 10)
    scene.fetch(3, 10)
    assert scene.high_watermark == 0
    scene.sync(6)
    assert scene.high_watermark == 6


def test_a_lone_replica_commits_what_it_synced() -> None:
    scene = LeaderScene(replicas=(1,), min_isr=1)
    scene.append(3)
    assert scene.high_watermark == 0
    scene.sync(3)
    assert scene.high_watermark == 3


def test_min_isr_asks_for_no_more_replicas_than_there_are() -> None:
    scene = LeaderScene(replicas=(1,), min_isr=2)
    scene.write(3)
    assert scene.high_watermark == 3
    assert not scene.leader.under_min_isr


def test_d1_watermark_stands_still_while_the_committed_isr_is_too_small() -> None:
    scene = LeaderScene(isr=(1,))
    scene.write(10)
    assert scene.high_watermark == 0
    scene.fetch(2, 10)
    assert scene.proposals[0].members == (1, 2)
    # Proposed is not committed: the controller may refuse, and then 2 holds nothing for sure.
    assert scene.high_watermark == 0
    scene.commit(1, 2)
    assert scene.high_watermark == 10


def test_d1_watermark_waits_for_a_replica_about_to_join() -> None:
    scene = LeaderScene(isr=(1, 2))
    scene.write(10)
    scene.fetch(3, 4)
    scene.pass_time(10)
    scene.fetch(3, 10)  # Caught up, but the proposal in flight will come too late for what follows.
    scene.answer(ProposalVerdict.REVERT)
    scene.write(20)
    scene.fetch(2, 20)
    assert scene.high_watermark == 10
    scene.fetch(3, 20)
    assert scene.high_watermark == 20


def test_watermark_does_not_wait_for_one_that_may_not_join() -> None:
    scene = LeaderScene(isr=(1, 2))
    scene.write(10)
    scene.fetch(3, 10)
    scene.answer(ProposalVerdict.REVERT)
    scene.set_broker(broker(3, 103, fenced=True))
    scene.write(20)
    scene.fetch(2, 20)
    assert scene.high_watermark == 20


def test_watermark_no_longer_waits_for_a_joiner_that_fell_silent() -> None:
    scene = LeaderScene(isr=(1, 2))
    scene.write(10)
    scene.fetch(3, 10)
    scene.answer(ProposalVerdict.REVERT)
    scene.write(20)
    scene.fetch(2, 20)
    assert scene.high_watermark == 10
    scene.pass_time(LAG_MS + 1)
    scene.fetch(2, 20)
    scene.tick()
    assert scene.high_watermark == 20


def test_a_new_leader_commits_nothing_before_its_isr_has_fetched_in_its_epoch() -> None:
    scene = LeaderScene(end=50, high_watermark=40)
    scene.sync(50)
    assert scene.high_watermark == 40
    scene.fetch(2, 50)
    scene.fetch(3, 45)
    assert scene.high_watermark == 45


# D2: one change in flight, settled by the image alone.


def test_d2_an_expansion_in_flight_counts_for_the_watermark() -> None:
    scene = LeaderScene(isr=(1, 2))
    scene.write(10)
    scene.fetch(2, 10)
    scene.fetch(3, 10)
    assert scene.leader.maximal_isr == (1, 2, 3)
    scene.write(20)
    scene.fetch(2, 20)
    # Even long after 3 fell silent: the controller may have it in the ISR by now.
    scene.pass_time(10 * LAG_MS)
    scene.fetch(2, 20)
    scene.tick()
    assert scene.high_watermark == 10


def test_d2_a_shrink_in_flight_still_waits_for_the_one_who_leaves() -> None:
    scene = LeaderScene()
    scene.write(10)
    scene.fetch(2, 10)
    scene.pass_time(LAG_MS + 1)
    scene.fetch(2, 10)
    scene.tick()
    assert scene.proposals[0].members == (1, 2)
    assert scene.high_watermark == 0
    scene.commit(1, 2)
    assert scene.high_watermark == 10


def test_only_one_change_is_in_flight() -> None:
    scene = LeaderScene(isr=(1,))
    scene.fetch(2, 0)
    scene.fetch(3, 0)
    scene.pass_time(10 * LAG_MS)
    scene.tick()
    assert len(scene.proposals) == 1


def test_who_came_while_a_change_was_in_flight_is_proposed_when_it_is_settled() -> None:
    scene = LeaderScene(isr=(1,))
    scene.fetch(2, 0)
    scene.fetch(3, 0)
    scene.commit(1, 2)
    assert scene.proposals[-1].members == (1, 2, 3)
    assert scene.proposals[-1].partition_epoch == 41


def test_d2_success_alone_settles_nothing() -> None:
    scene = LeaderScene(isr=(1, 2))
    scene.fetch(3, 0)
    scene.answer(ProposalVerdict.AWAIT_IMAGE)
    assert list(scene.leader.isr) == [1, 2]
    assert list(scene.leader.maximal_isr) == [1, 2, 3]
    scene.commit(1, 2, 3)
    assert list(scene.leader.isr) == [1, 2, 3]
    assert scene.leader.in_flight is None


def test_another_change_of_the_partition_settles_the_proposal_too() -> None:
    scene = LeaderScene(isr=(1, 2))
    scene.fetch(3, 0)
    scene.set_broker(broker(3, 103, fenced=True))
    assert scene.leader.in_flight is not None
    scene.commit(1, 2)  # Whatever it was, compare-and-set can no longer succeed.
    assert scene.leader.in_flight is None


@pytest.mark.parametrize("error", [ErrorCode.INELIGIBLE_REPLICA, ErrorCode.OPERATION_NOT_ATTEMPTED])
def test_d2_these_answers_revert_a_proposal(error: ErrorCode) -> None:
    assert verdict_on(error) is ProposalVerdict.REVERT


@pytest.mark.parametrize(
    "error", set(ErrorCode) - {ErrorCode.INELIGIBLE_REPLICA, ErrorCode.OPERATION_NOT_ATTEMPTED}
)
def test_d2_no_other_answer_reverts_a_proposal(error: ErrorCode) -> None:
    assert verdict_on(error) is not ProposalVerdict.REVERT


@pytest.mark.parametrize(
    "error",
    [
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.STALE_BROKER_EPOCH,
    ],
)
def test_unknown_and_not_controller_are_retried(error: ErrorCode) -> None:
    assert verdict_on(error) is ProposalVerdict.RETRY


def test_a_refused_joiner_is_proposed_again_after_a_pause() -> None:
    scene = LeaderScene(isr=(1, 2))
    scene.fetch(3, 0)
    scene.answer(ProposalVerdict.REVERT)
    scene.fetch(3, 0)
    assert len(scene.proposals) == 1
    scene.pass_time(REFUSED_JOIN_PAUSE_MS)
    scene.fetch(3, 0)
    assert len(scene.proposals) == 2


def test_after_a_lost_copy_a_reverted_joiner_keeps_counting_for_one_lag_time() -> None:
    scene = LeaderScene(isr=(1, 2))
    scene.write(10)
    scene.fetch(2, 10)
    scene.fetch(3, 10)
    scene.pass_time(LAG_MS)
    scene.answer(ProposalVerdict.REVERT, uncertain=True)
    scene.pass_time(LAG_MS - 1)
    scene.write(20)
    scene.fetch(2, 20)
    assert scene.high_watermark == 10
    scene.pass_time(2)
    scene.tick()
    assert scene.high_watermark == 20


def test_the_answer_to_an_older_proposal_changes_nothing() -> None:
    scene = LeaderScene(isr=(1,))
    scene.fetch(2, 0)
    old = scene.proposals[0]
    scene.commit(1, 2)
    scene.fetch(3, 0)
    before = scene.leader.in_flight
    scene.leader.on_proposal_answered(
        old, ProposalVerdict.REVERT, uncertain=False, now_ms=scene.now
    )
    assert scene.leader.in_flight is before


def test_proposals_name_the_broker_epoch_of_every_member() -> None:
    scene = LeaderScene(isr=(1, 2))
    scene.fetch(3, 0)
    assert scene.proposals[0].isr == ((1, 101), (2, 102), (3, 103))


def test_an_image_that_goes_back_is_fatal() -> None:
    scene = LeaderScene()
    old = scene.image
    scene.commit(1, 2)
    scene.image = old
    with pytest.raises(Fatal):
        scene.hear()


# D3: joining.


def test_d3_joining_needs_the_watermark() -> None:
    scene = LeaderScene(isr=(1, 2))
    scene.write(10)
    scene.fetch(2, 8)
    assert scene.high_watermark == 8
    scene.fetch(3, 7)
    assert scene.proposals == []
    scene.fetch(3, 8)
    assert scene.proposals[0].members == (1, 2, 3)


def test_d3_joining_needs_the_start_of_this_epoch() -> None:
    scene = LeaderScene(isr=(1, 2), end=50, high_watermark=10)
    scene.fetch(3, 49)
    assert scene.proposals == []
    scene.fetch(3, 50)
    assert len(scene.proposals) == 1


@pytest.mark.parametrize(
    "why",
    [
        broker(3, 103, fenced=True),
        broker(3, 103, leaving=True),
        broker(3, 999),
    ],
    ids=["fenced", "shutting down", "another incarnation"],
)
def test_d3_joining_needs_a_living_broker_of_the_epoch_that_fetches(why: object) -> None:
    scene = LeaderScene(isr=(1, 2))
    scene.brokers = {**scene.brokers, 3: why}  # type: ignore[dict-item]
    scene.hear()
    scene.fetch(3, 0)
    assert scene.proposals == []


def test_a_follower_without_a_broker_epoch_never_joins() -> None:
    scene = LeaderScene(isr=(1, 2))
    scene.fetch(3, 0, epoch=-1)
    assert scene.proposals == []


def test_a_stale_incarnation_is_refused() -> None:
    scene = LeaderScene()
    scene.set_broker(broker(3, 200))
    assert scene.leader.check_fetcher(3, 103) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert scene.leader.check_fetcher(3, 200) is ErrorCode.NONE


def test_an_incarnation_newer_than_the_image_ends_its_predecessor() -> None:
    scene = LeaderScene()
    scene.fetch(3, 0, epoch=200)
    assert scene.leader.check_fetcher(3, 103) is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_stranger_is_refused() -> None:
    scene = LeaderScene()
    assert scene.leader.check_fetcher(4, 104) is ErrorCode.NOT_LEADER_OR_FOLLOWER


# Shrinking.


def test_a_silent_member_leaves_after_the_lag_time() -> None:
    scene = LeaderScene()
    scene.write(10)
    scene.pass_time(LAG_MS)
    scene.fetch(2, 10)
    scene.tick()
    assert scene.proposals == []
    scene.pass_time(1)
    scene.tick()
    assert scene.proposals[0].members == (1, 2)


def test_a_member_that_holds_everything_stays_however_long_it_is_silent() -> None:
    scene = LeaderScene()
    scene.write(10)
    scene.fetch(2, 10)
    scene.fetch(3, 10)
    scene.pass_time(100 * LAG_MS)
    scene.tick()
    assert scene.proposals == []


def test_a_follower_of_a_busy_leader_counts_as_caught_up() -> None:
    scene = LeaderScene()
    for step in range(10):
        scene.write(10 * (step + 1))
        scene.pass_time(LAG_MS // 2)
        # Always one write behind, never further.
        scene.fetch(2, 10 * step)
        scene.fetch(3, 10 * step)
    scene.tick()
    assert scene.proposals == []


def test_a_follower_that_falls_further_behind_leaves() -> None:
    scene = LeaderScene()
    for step in range(10):
        scene.write(10 * (step + 1))
        scene.pass_time(LAG_MS // 2)
        scene.fetch(2, 10 * step)
        scene.fetch(3, step)
    scene.tick()
    assert scene.proposals[0].members == (1, 2)


def test_isr_members_of_a_new_leader_get_one_lag_time_to_show_up() -> None:
    scene = LeaderScene(end=10)
    scene.pass_time(LAG_MS)
    scene.tick()
    assert scene.proposals == []
    scene.pass_time(1)
    scene.tick()
    assert scene.proposals[0].members == (1,)


def test_a_member_on_its_way_out_is_left_out_of_any_proposal() -> None:
    scene = LeaderScene(isr=(1, 2))
    scene.set_broker(broker(2, 102, leaving=True))
    scene.fetch(3, 0)
    assert scene.proposals[0].members == (1, 3)


# C3: lost data.


def test_c3_a_member_that_asks_for_less_than_it_confirmed_is_out_at_once() -> None:
    scene = LeaderScene()
    scene.write(10)
    scene.fetch(3, 10)
    scene.fetch(3, 9)
    assert scene.losses[0].confirmed_offset == 10
    assert scene.losses[0].asked_offset == 9
    assert scene.proposals[0].members == (1, 2)


def test_a_member_that_lost_data_is_out_as_soon_as_the_change_in_flight_is_settled() -> None:
    scene = LeaderScene(isr=(1, 2))
    scene.write(10)
    scene.fetch(2, 10)
    scene.fetch(3, 10)
    scene.fetch(2, 5)
    assert len(scene.proposals) == 1
    scene.commit(1, 2, 3)
    assert scene.proposals[-1].members == (1, 3)


def test_asking_for_less_under_a_new_broker_epoch_is_no_loss() -> None:
    scene = LeaderScene()
    scene.write(10)
    scene.fetch(3, 10)
    scene.fetch(3, 0, epoch=200)
    assert scene.losses == []
    assert scene.proposals == []


def test_what_an_older_incarnation_confirmed_no_longer_counts() -> None:
    scene = LeaderScene()
    scene.write(10)
    scene.fetch(3, 10)
    scene.fetch(3, 4, epoch=200)
    scene.fetch(2, 10)
    assert scene.high_watermark == 4


def test_a_replica_that_lost_data_may_fetch_its_way_back() -> None:
    scene = LeaderScene()
    scene.write(10)
    scene.fetch(2, 10)
    scene.fetch(3, 10)
    scene.fetch(3, 5)
    scene.commit(1, 2)
    scene.fetch(3, 9)
    assert len(scene.proposals) == 1
    scene.fetch(3, 10)
    assert scene.proposals[-1].members == (1, 2, 3)


# D4, D5.


def test_d4_the_watermark_never_goes_back() -> None:
    scene = LeaderScene(end=10, high_watermark=10)
    scene.fetch(2, 3, epoch=200)
    scene.sync(10)
    assert scene.high_watermark == 10


def test_the_watermark_of_a_new_leader_lags_until_its_epoch_begins_to_commit() -> None:
    scene = LeaderScene(end=50, high_watermark=40)
    assert scene.leader.watermark_lags_epoch
    scene.fetch(2, 50)
    scene.fetch(3, 50)
    assert not scene.leader.watermark_lags_epoch


def test_produce_waits_for_the_watermark() -> None:
    scene = LeaderScene()
    scene.write(10)
    assert scene.leader.produce_answer(10) is None
    scene.fetch(2, 10)
    scene.fetch(3, 10)
    assert scene.leader.produce_answer(10) is ErrorCode.NONE


def test_d5_produce_says_not_enough_replicas_after_append_only_for_what_is_committed() -> None:
    scene = LeaderScene()
    scene.write(10)
    scene.fetch(2, 10)
    scene.fetch(3, 10)
    scene.commit(1)
    assert scene.leader.produce_answer(10) is ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
    scene.write(11)
    assert scene.leader.produce_answer(11) is None


def test_taking_back_committed_records_is_fatal() -> None:
    scene = LeaderScene(replicas=(1,), min_isr=1)
    scene.write(10)
    with pytest.raises(Fatal):
        scene.leader.on_rolled_back(9)


def test_a_fetch_beyond_the_end_is_a_mistake_of_the_caller() -> None:
    with pytest.raises(ValueError, match="end 0"):
        LeaderScene().fetch(2, 1)


# Nearest replica (KIP-392).


def test_a_consumer_is_sent_to_the_in_sync_follower_in_its_rack_that_has_most() -> None:
    scene = LeaderScene(replicas=(1, 2, 3, 4), isr=(1, 2, 3))
    for node_id, rack in ((1, "a"), (2, "b"), (3, "b"), (4, "c")):
        scene.brokers = {
            **scene.brokers,
            node_id: replace(broker(node_id, 100 + node_id), rack=rack),
        }
    scene.hear()
    scene.write(10)
    scene.fetch(2, 5)
    scene.fetch(3, 7)
    scene.fetch(4, 10)
    assert scene.leader.reader_in_rack("b", 4) == 3
    assert scene.leader.reader_in_rack("b", 8) is None
    assert scene.leader.reader_in_rack("a", 4) is None
    assert scene.leader.reader_in_rack("c", 4) is None  # not in sync
    assert scene.leader.reader_in_rack("d", 4) is None
