"""RULES D6 and C2 as the follower decides them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logboat.partitions.follower import FollowerState
from logboat.partitions.storage import EpochCache, EpochEntry
from logboat.seam import Fatal


def follower(high_watermark: int = 0) -> FollowerState:
    return FollowerState("t-0", leader_id=1, leader_epoch=9, high_watermark=high_watermark)


def lineage(*entries: tuple[int, int]) -> EpochCache:
    return EpochCache([EpochEntry(epoch, start) for epoch, start in entries])


def cut(
    own: EpochCache, end: int, *, epoch: int, end_offset: int, state: FollowerState | None = None
) -> int:
    return (state or follower()).truncation_offset(
        epoch=epoch, end_offset=end_offset, lineage=own, log_end_offset=end
    )


def test_a_common_epoch_is_cut_where_the_leader_ended_it() -> None:
    assert cut(lineage((1, 0), (2, 20)), 40, epoch=2, end_offset=30) == 30


def test_a_common_epoch_is_cut_where_it_ends_here_if_that_is_earlier() -> None:
    assert cut(lineage((1, 0), (2, 20)), 40, epoch=1, end_offset=25) == 20


def test_an_epoch_unknown_here_cuts_to_the_end_of_the_largest_smaller_one() -> None:
    """KIP-279: and the next fetch, in that epoch, finds the rest of the difference."""
    assert cut(lineage((1, 0), (3, 20), (5, 30)), 40, epoch=4, end_offset=25) == 30
    assert cut(lineage((1, 0), (5, 30)), 40, epoch=4, end_offset=25) == 30


def test_without_any_epoch_here_the_leaders_end_is_taken() -> None:
    assert cut(lineage(), 40, epoch=4, end_offset=25) == 25


def test_an_epoch_without_records_cuts_at_the_very_end() -> None:
    assert cut(lineage((1, 0), (2, 40)), 40, epoch=1, end_offset=60) == 40


def test_d6_truncation_below_the_watermark_of_this_epoch_is_fatal() -> None:
    state = follower()
    state.on_leader_watermark(30, synced_offset=40)
    with pytest.raises(Fatal):
        cut(lineage((1, 0), (2, 20)), 40, epoch=1, end_offset=25, state=state)
    assert cut(lineage((1, 0), (2, 30)), 40, epoch=1, end_offset=35, state=state) == 30


def test_truncation_below_a_watermark_of_an_older_epoch_is_an_unclean_leaders_right() -> None:
    state = follower(high_watermark=30)
    assert cut(lineage((1, 0), (2, 20)), 40, epoch=1, end_offset=25, state=state) == 20
    assert state.on_truncated(20)
    assert state.high_watermark == 20


def test_an_ordinary_truncation_leaves_the_watermark() -> None:
    state = follower(high_watermark=20)
    assert not state.on_truncated(20)
    assert state.high_watermark == 20


def test_the_watermark_is_the_smaller_of_the_leaders_and_what_is_synced_here() -> None:
    state = follower()
    assert state.on_leader_watermark(30, synced_offset=10)
    assert state.high_watermark == 10
    assert state.on_synced(40)
    assert state.high_watermark == 30


def test_the_watermark_never_goes_back_by_an_answer() -> None:
    state = follower(high_watermark=20)
    assert not state.on_leader_watermark(10, synced_offset=40)
    assert state.high_watermark == 20


def test_c2_a_follower_asks_on_only_when_what_it_appended_is_synced() -> None:
    state = follower()
    own = lineage((1, 0))
    assert state.position(own, log_start_offset=0, log_end_offset=9, synced_offset=8) is None
    position = state.position(own, log_start_offset=0, log_end_offset=9, synced_offset=9)
    assert position is not None
    assert (position.fetch_offset, position.last_fetched_epoch) == (9, 1)


def test_the_last_fetched_epoch_survives_empty_answers() -> None:
    """KAFKA-15510."""
    state = follower()
    own = lineage((1, 0), (4, 7))
    for _ in range(3):
        state.on_leader_watermark(9, synced_offset=9)
        position = state.position(own, log_start_offset=0, log_end_offset=9, synced_offset=9)
        assert position is not None
        assert position.last_fetched_epoch == 4


Log = list[int]
"""The epoch of each record."""


def cache_of(log: Log) -> EpochCache:
    cache = EpochCache()
    for offset, epoch in enumerate(log):
        cache.assign(epoch, offset)
    return cache


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_d6_truncation_ends_at_the_last_common_record_and_never_above(data: st.DataObject) -> None:
    """Two logs with a common beginning; after it their epochs have nothing in common."""
    common = sorted(data.draw(st.lists(st.integers(0, 5), max_size=8)))
    floor = common[-1] if common else 0
    leaders = data.draw(st.sets(st.integers(floor + 1, floor + 9)))
    followers = data.draw(st.sets(st.integers(floor + 1, floor + 9))) - leaders

    def tail(epochs: set[int]) -> Log:
        if not epochs:
            return []
        return sorted(data.draw(st.lists(st.sampled_from(sorted(epochs)), max_size=8)))

    leader_log = common + tail(leaders)
    follower_log = common + tail(followers)
    # One log may also be longer in the last common epoch.
    longer: bool = data.draw(st.booleans())
    if longer and common and len(follower_log) == len(common):
        follower_log += [floor] * data.draw(st.integers(0, 3))
    leader_epochs = cache_of(leader_log)
    leader_epochs.assign(floor + 20, len(leader_log))

    state = follower()
    for _ in range(40):
        if not follower_log:
            break
        own = cache_of(follower_log)
        asked, end = own.latest_epoch, len(follower_log)
        epoch, end_offset = leader_epochs.end_offset_for(asked, len(leader_log))
        if not (epoch < asked or end_offset < end):
            break
        offset = cut(own, end, epoch=epoch, end_offset=end_offset, state=state)
        assert offset <= end
        follower_log = follower_log[:offset]
    else:
        pytest.fail("it never ends")
    assert follower_log == leader_log[: len(follower_log)]
    assert len(follower_log) >= len(common)
