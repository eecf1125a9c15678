"""Leader epochs by the examples of KIP-101 and KIP-279."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logboat.partitions.storage.checkpoints import CheckpointDamaged
from logboat.partitions.storage.epoch_cache import EpochCache, EpochEntry


def cache(*entries: tuple[int, int]) -> EpochCache:
    return EpochCache([EpochEntry(*entry) for entry in entries])


def entries(epochs: EpochCache) -> list[tuple[int, int]]:
    return [(entry.epoch, entry.start_offset) for entry in epochs.entries]


def test_an_epoch_ends_where_the_next_larger_one_starts() -> None:
    epochs = cache((1, 0), (3, 20), (4, 50))
    assert epochs.end_offset_for(1, 70) == (1, 20)
    assert epochs.end_offset_for(3, 70) == (3, 50)
    assert epochs.end_offset_for(4, 70) == (4, 70)


def test_an_epoch_that_wrote_nothing_here_is_answered_by_the_one_below() -> None:
    assert cache((1, 0), (3, 20)).end_offset_for(2, 70) == (1, 20)


def test_an_epoch_older_than_all_ends_where_the_first_starts() -> None:
    assert cache((5, 10), (6, 20)).end_offset_for(3, 70) == (3, 10)


def test_nothing_is_known_of_a_newer_or_undefined_epoch() -> None:
    assert cache((1, 0)).end_offset_for(2, 70) == (-1, -1)
    assert cache((1, 0)).end_offset_for(-1, 70) == (-1, -1)
    assert cache().end_offset_for(0, 70) == (-1, -1)


def truncation_point(follower: EpochCache, follower_end: int, leader: EpochCache, end: int) -> int:
    """The loop of KIP-279: ask for the own latest epoch until both agree."""
    epoch = follower.latest_epoch
    while True:
        leader_epoch, leader_end = leader.end_offset_for(epoch, end)
        if leader_epoch == -1:
            return min(follower_end, end)
        own_epoch, own_end = follower.end_offset_for(leader_epoch, follower_end)
        if own_epoch == leader_epoch:
            return min(own_end, leader_end, follower_end)
        if own_epoch == -1:
            return min(leader_end, follower_end)
        epoch = own_epoch


def test_fast_leader_changes_do_not_let_logs_diverge() -> None:
    """KIP-279, scenario 1: A led epoch 2 alone, B led 1 and 3; A rejoins B."""
    a = cache((0, 0), (2, 1))
    b = cache((0, 0), (1, 1), (3, 2))
    assert truncation_point(a, 2, b, 3) == 1


def test_a_follower_that_lost_a_tail_keeps_the_common_part() -> None:
    """KIP-101, scenario 1: the restarted follower keeps what the leader has of the same epoch."""
    follower, leader = cache((0, 0)), cache((0, 0), (1, 2))
    assert truncation_point(follower, 2, leader, 4) == 2


def test_an_epoch_is_entered_once_and_contradictions_go() -> None:
    epochs = cache((1, 0))
    assert not epochs.assign(1, 5)
    assert epochs.assign(3, 20)
    assert epochs.assign(4, 10)
    assert entries(epochs) == [(1, 0), (4, 10)]
    assert epochs.assign(2, 30)
    assert entries(epochs) == [(1, 0), (2, 30)]


def test_truncation_from_the_end_forgets_epochs_that_start_there() -> None:
    epochs = cache((1, 0), (3, 20), (4, 50))
    epochs.truncate_from_end(50)
    assert entries(epochs) == [(1, 0), (3, 20)]
    epochs.truncate_from_end(21)
    assert entries(epochs) == [(1, 0), (3, 20)]
    epochs.truncate_from_end(0)
    assert entries(epochs) == []


def test_truncation_from_the_start_moves_the_epoch_that_holds_it() -> None:
    epochs = cache((1, 0), (3, 20), (4, 50))
    epochs.truncate_from_start(30)
    assert entries(epochs) == [(3, 30), (4, 50)]
    epochs.truncate_from_start(50)
    assert entries(epochs) == [(4, 50)]


@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 100)), max_size=12),
    st.integers(0, 100),
)
def test_entries_always_rise_and_survive_their_file(
    assigned: list[tuple[int, int]], cut: int
) -> None:
    epochs = EpochCache()
    for epoch, offset in assigned:
        epochs.assign(epoch, offset)
    for truncated in (False, True):
        if truncated:
            epochs.truncate_from_end(cut)
        found = entries(epochs)
        assert found == sorted(found)
        assert len({epoch for epoch, _ in found}) == len({start for _, start in found})
        assert EpochCache.decode(epochs.encode()).entries == epochs.entries
    assert all(start < cut for _, start in entries(epochs))


@pytest.mark.parametrize(
    "damaged", [b"0\n", b"1\n0\n", b"0\n2\n1 2\n", b"0\n1\n1\n", b"0\n1\n-1 2\n", b"x\n0\n"]
)
def test_a_damaged_file_is_an_error(damaged: bytes) -> None:
    with pytest.raises(CheckpointDamaged):
        EpochCache.decode(damaged)


def test_an_empty_file_reads_as_no_epochs() -> None:
    assert EpochCache.decode(b"").entries == ()
