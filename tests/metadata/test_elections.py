"""RULES D8: the ISR, the ELR and the leader, by KIP-966."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from logboat.metadata.elections import ElectionRules, change_partition
from logboat.metadata.image import NO_LEADER, PartitionImage


def rules(*alive: int, min_isr: int = 2, unclean: bool = False) -> ElectionRules:
    return ElectionRules(lambda broker: broker in alive, min_isr, unclean)


def partition(
    isr: tuple[int, ...] = (1, 2, 3),
    leader: int = 1,
    elr: tuple[int, ...] = (),
    last_known_leader: int = NO_LEADER,
    replicas: tuple[int, ...] = (1, 2, 3),
) -> PartitionImage:
    return PartitionImage(
        partition=0,
        replicas=replicas,
        isr=isr,
        leader=leader,
        leader_epoch=5,
        partition_epoch=9,
        elr=elr,
        last_known_leader=last_known_leader,
    )


def test_an_event_without_consequence_returns_the_same_partition() -> None:
    before = partition()
    assert change_partition(before, rules(1, 2, 3)) is before


def test_a_valid_sitting_leader_is_never_replaced() -> None:
    before = partition(leader=3)
    after = change_partition(before, rules(1, 2, 3), isr=(2, 3))
    assert (after.leader, after.leader_epoch) == (3, 5)
    assert after.partition_epoch == 10


def test_the_first_living_isr_member_in_replica_order_is_elected() -> None:
    after = change_partition(partition(), rules(2, 3), isr=(3, 2))
    assert (after.leader, after.leader_epoch, after.isr) == (2, 6, (2, 3))


def test_isr_at_its_minimum_empties_the_elr() -> None:
    before = partition(isr=(1,), elr=(2,))
    after = change_partition(before, rules(1, 2, 3), isr=(1, 3))
    assert (after.isr, after.elr) == ((1, 3), ())


def test_isr_below_its_minimum_makes_those_who_leave_eligible() -> None:
    before = partition(isr=(1, 2))
    after = change_partition(before, rules(1), isr=(1,))
    assert (after.isr, after.elr) == ((1,), (2,))


def test_isr_that_leaves_the_minimum_intact_makes_nobody_eligible() -> None:
    after = change_partition(partition(), rules(1, 2), isr=(1, 2))
    assert (after.isr, after.elr) == ((1, 2), ())


def test_minimum_above_the_replication_factor_means_all_replicas() -> None:
    before = partition(isr=(1, 2), replicas=(1, 2))
    after = change_partition(before, rules(1, min_isr=5), isr=(1,))
    assert after.elr == (2,)
    back = change_partition(after, rules(1, 2, min_isr=5), isr=(1, 2))
    assert back.elr == ()


def test_isr_may_become_empty_and_the_last_leader_is_noted() -> None:
    before = partition(isr=(1,), elr=(2,))
    after = change_partition(before, rules(), isr=())
    assert (after.leader, after.leader_epoch) == (NO_LEADER, 6)
    assert (after.isr, after.elr) == ((), (1, 2))
    assert after.last_known_leader == 1


def test_eligible_replica_is_elected_when_the_isr_is_empty() -> None:
    before = partition(isr=(), leader=NO_LEADER, elr=(1, 2), last_known_leader=1)
    after = change_partition(before, rules(2, 3))
    assert (after.leader, after.isr, after.elr) == (2, (2,), (1,))
    assert (after.leader_epoch, after.last_known_leader) == (6, NO_LEADER)


def test_nobody_outside_isr_and_elr_is_elected_cleanly() -> None:
    before = partition(isr=(), leader=NO_LEADER, elr=(1, 2), last_known_leader=1)
    assert change_partition(before, rules(3)) is before


def test_last_known_leader_is_elected_only_when_isr_and_elr_are_empty() -> None:
    before = partition(isr=(), leader=NO_LEADER, elr=(), last_known_leader=1)
    after = change_partition(before, rules(1, 2))
    assert (after.leader, after.isr) == (1, (1,))
    waiting = partition(isr=(), leader=NO_LEADER, elr=(2,), last_known_leader=1)
    assert change_partition(waiting, rules(1)) is waiting


def test_any_living_replica_is_elected_when_the_topic_allows_unclean_elections() -> None:
    before = partition(isr=(), leader=NO_LEADER, elr=(1, 2), last_known_leader=1)
    after = change_partition(before, rules(3, unclean=True))
    assert (after.leader, after.isr) == (3, (3,))
    # They still hold every committed record: below the minimum nothing can be committed.
    assert after.elr == (1, 2)


def test_a_clean_candidate_comes_before_an_unclean_one() -> None:
    before = partition(isr=(), leader=NO_LEADER, elr=(3,), last_known_leader=1)
    assert change_partition(before, rules(1, 2, 3, unclean=True)).leader == 3


def test_replica_that_lost_data_leaves_isr_and_elr() -> None:
    before = partition(isr=(1,), elr=(2,))
    after = change_partition(before, rules(1), lost_data=2)
    assert (after.isr, after.elr, after.last_known_elr) == ((1,), (), (2,))
    after = change_partition(before, rules(), isr=(), lost_data=1)
    assert (after.isr, after.elr, after.leader) == ((), (2,), NO_LEADER)


def test_emptied_disk_is_nobodys_last_known_leader() -> None:
    before = partition(isr=(1,), replicas=(1,))
    wiped = change_partition(before, rules(), isr=(), lost_data=1, lost_disk=True)
    assert (wiped.isr, wiped.elr, wiped.last_known_leader) == ((), (), NO_LEADER)
    assert change_partition(wiped, rules(1)) is wiped
    gone = partition(isr=(), leader=NO_LEADER, last_known_leader=2)
    wiped = change_partition(gone, rules(), lost_data=2, lost_disk=True)
    assert wiped.last_known_leader == NO_LEADER


def test_preferred_leader_takes_over_only_on_request_and_only_from_the_isr() -> None:
    assert change_partition(partition(leader=2), rules(1, 2, 3), prefer=True).leader == 1
    behind = partition(isr=(2, 3), leader=2)
    assert change_partition(behind, rules(1, 2, 3), prefer=True) is behind
    dead = partition(leader=2)
    assert change_partition(dead, rules(2, 3), prefer=True) is dead


def test_a_lower_minimum_empties_the_elr() -> None:
    before = partition(isr=(1,), elr=(2,))
    assert change_partition(before, rules(1, min_isr=1)).elr == ()


REPLICAS = (1, 2, 3, 4)
some = st.sets(st.sampled_from(REPLICAS)).map(lambda chosen: tuple(sorted(chosen)))


@given(
    isr=some,
    elr=some,
    alive=some,
    new_isr=some,
    min_isr=st.integers(1, 5),
    leader=st.sampled_from((NO_LEADER, *REPLICAS)),
    unclean=st.booleans(),
    lost=st.none() | st.sampled_from(REPLICAS),
    known=st.sampled_from((NO_LEADER, *REPLICAS)),
)
@settings(deadline=None)
def test_any_change_leaves_a_consistent_partition(
    isr: tuple[int, ...],
    elr: tuple[int, ...],
    alive: tuple[int, ...],
    new_isr: tuple[int, ...],
    min_isr: int,
    leader: int,
    unclean: bool,
    lost: int | None,
    known: int,
) -> None:
    before = replace(
        partition(isr, leader if leader in isr else NO_LEADER, tuple(set(elr) - set(isr)), known),
        replicas=REPLICAS,
    )
    # As in the cluster: whoever lost data is fenced, and whoever is not alive leaves the ISR, in
    # the same command.
    alive = tuple(replica for replica in alive if replica != lost)
    target = tuple(replica for replica in new_isr if replica in alive)
    law = rules(*alive, min_isr=min_isr, unclean=unclean)
    after = change_partition(before, law, isr=target, lost_data=lost)
    assert after.leader == NO_LEADER or after.leader in after.isr
    assert not set(after.isr) & set(after.elr)
    assert set(after.isr) <= set(REPLICAS)
    assert set(after.elr) <= set(REPLICAS)
    assert len(after.isr) < min(min_isr, 4) or after.elr == ()
    if after.leader != NO_LEADER:
        assert after.leader in alive
    assert lost not in after.elr
    assert after.leader_epoch - before.leader_epoch == (after.leader != before.leader)
    assert after.partition_epoch - before.partition_epoch == (after is not before)
    assert change_partition(after, law) is after
