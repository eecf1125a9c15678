"""RULES B: brokers and their incarnations, as apply decides."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

from logboat.metadata.commands import FenceBroker, UnfenceBroker, UnregisterBroker
from logboat.metadata.image import FAILED_SYNC_EPOCH, NO_LEADER
from logboat.wire import ErrorCode
from tests.metadata.cluster_builder import Cluster


def test_b1_broker_epoch_is_the_index_of_the_registration() -> None:
    cluster = Cluster(brokers=0)
    result = cluster.register(1)
    assert result.value == cluster.broker(1).broker_epoch == cluster.index
    assert cluster.broker(1).fenced


def test_b1_restart_takes_every_leadership_away_with_a_new_leader_epoch() -> None:
    cluster = Cluster()
    cluster.create((1, 2, 3), (2, 1, 3))
    cluster.register(1)
    moved, other = cluster.partition(0), cluster.partition(1)
    assert (moved.leader, moved.leader_epoch, moved.isr) == (2, 1, (2, 3))
    assert (other.leader, other.leader_epoch, other.isr) == (2, 0, (2, 3))
    assert cluster.broker(1).fenced


def test_b1_restart_bumps_the_leader_epoch_with_replication_factor_one_too() -> None:
    cluster = Cluster()
    cluster.create((1,))
    cluster.register(1)
    assert (cluster.partition().leader, cluster.partition().leader_epoch) == (NO_LEADER, 1)
    cluster.unfence(1)
    assert (cluster.partition().leader, cluster.partition().leader_epoch) == (1, 2)


def test_b1_same_incarnation_again_gets_the_same_epoch_and_nothing_moves() -> None:
    cluster = Cluster()
    cluster.create((1, 2))
    registration = cluster.registration(1)
    first = cluster.must(registration)
    cluster.unfence(1)
    before = cluster.image
    again = cluster.must(registration)
    assert again.value == first.value
    assert replace(cluster.image, index=before.index) == before


def test_b2_same_directory_supersedes_an_unfenced_broker_at_once() -> None:
    cluster = Cluster()
    old = cluster.broker(1).broker_epoch
    assert cluster.register(1).error == ErrorCode.NONE
    assert cluster.broker(1).broker_epoch > old


def test_b2_another_directory_is_refused_while_the_broker_is_unfenced() -> None:
    cluster = Cluster()
    before = cluster.image.brokers
    assert cluster.register(1, directory=7).error == ErrorCode.DUPLICATE_BROKER_REGISTRATION
    assert cluster.image.brokers is before
    cluster.fence(1)
    assert cluster.register(1, directory=7).error == ErrorCode.NONE


def test_b3_a_new_directory_leaves_every_isr_and_elr_in_any_mode() -> None:
    for synced in (True, False):
        cluster = Cluster()
        cluster.create((1, 2), min_isr=2, synced=synced)
        cluster.fence(1)
        assert cluster.partition().elr == (1,)
        cluster.register(1, directory=7)
        assert (cluster.partition().isr, cluster.partition().elr) == ((2,), ())


def test_b3_an_emptied_single_replica_is_not_elected_without_a_word() -> None:
    cluster = Cluster()
    cluster.create((1,))
    cluster.fence(1)
    cluster.register(1, directory=7)
    cluster.unfence(1)
    assert cluster.partition().leader == NO_LEADER


def test_c1_unclean_restart_of_a_synced_topic_is_a_clean_fencing() -> None:
    cluster = Cluster()
    cluster.create((1, 2), min_isr=2)
    cluster.register(1, clean=False)
    assert (cluster.partition().isr, cluster.partition().elr) == ((2,), (1,))


def test_c1_failed_sync_leaves_isr_and_elr_in_synced_mode_too() -> None:
    cluster = Cluster()
    cluster.create((1, 2), min_isr=2)
    cluster.apply(cluster.registration(2, previous_epoch=FAILED_SYNC_EPOCH))
    assert (cluster.partition().isr, cluster.partition().elr) == ((1,), ())
    cluster.apply(cluster.registration(1, previous_epoch=FAILED_SYNC_EPOCH))
    cluster.unfence(1)
    # Nobody is left to be trusted: the last known leader comes back, and that counts as unclean.
    assert (cluster.partition().leader, cluster.partition().isr) == (1, (1,))


def test_c1_unclean_restart_of_a_page_cache_topic_leaves_isr_and_elr() -> None:
    cluster = Cluster()
    cluster.create((1, 2), min_isr=2, synced=False)
    cluster.register(1, clean=False)
    assert (cluster.partition().isr, cluster.partition().elr) == ((2,), ())
    assert cluster.partition().last_known_elr == (1,)


def test_c1_page_cache_replica_loses_its_eligibility_when_it_comes_back_unclean() -> None:
    cluster = Cluster()
    cluster.create((1, 2), min_isr=2, synced=False)
    cluster.fence(1)
    assert cluster.partition().elr == (1,)
    cluster.register(1, clean=False)
    assert cluster.partition().elr == ()


def test_c1_clean_restart_of_a_page_cache_topic_keeps_eligibility() -> None:
    cluster = Cluster()
    cluster.create((1, 2), min_isr=2, synced=False)
    cluster.register(1, clean=True)
    assert cluster.partition().elr == (1,)


def test_last_replica_standing_of_kip_966_cannot_lead_after_losing_its_page_cache() -> None:
    cluster = Cluster()
    cluster.create((1, 2, 3), min_isr=2, synced=False)
    cluster.fence(3)
    cluster.fence(2)
    cluster.register(1, clean=False)
    # Broker 1 lost its tail. Broker 2 left when the watermark stood still: it has everything.
    assert (cluster.partition().isr, cluster.partition().elr) == ((), (2,))
    cluster.unfence(1)
    assert cluster.partition().leader == NO_LEADER
    cluster.unfence(2)
    assert cluster.partition().leader == 2


def test_fencing_elects_new_leaders_in_the_same_command() -> None:
    cluster = Cluster()
    cluster.create((1, 2, 3), (1, 3, 2))
    cluster.fence(1)
    assert [cluster.partition(n).leader for n in (0, 1)] == [2, 3]
    assert [cluster.partition(n).leader_epoch for n in (0, 1)] == [1, 1]


def test_fencing_and_unfencing_need_the_present_broker_epoch() -> None:
    cluster = Cluster()
    stale = cluster.broker(1).broker_epoch
    cluster.register(1)
    for kind in (FenceBroker, UnfenceBroker):
        assert cluster.apply(kind(cluster.epoch, 1, stale)).error == ErrorCode.STALE_BROKER_EPOCH
    assert cluster.broker(1).fenced
    assert cluster.apply(FenceBroker(cluster.epoch, 9, 1)).error == ErrorCode.STALE_BROKER_EPOCH


def test_unfenced_broker_joins_no_isr_by_itself() -> None:
    cluster = Cluster()
    cluster.create((1, 2))
    cluster.fence(2)
    cluster.unfence(2)
    assert cluster.partition().isr == (1,)


def test_b6_controlled_shutdown_moves_leaders_and_remembers_where() -> None:
    cluster = Cluster()
    cluster.create((1, 2, 3))
    cluster.shut_down(1)
    assert cluster.partition().leader == 2
    assert cluster.partition().isr == (2, 3)
    assert cluster.broker(1).in_controlled_shutdown
    assert cluster.broker(1).controlled_shutdown_index == cluster.index
    assert not cluster.broker(1).fenced


def test_b6_broker_in_controlled_shutdown_takes_no_leadership() -> None:
    cluster = Cluster(brokers=2)
    cluster.create((1, 2))
    cluster.shut_down(1)
    cluster.fence(2)
    assert cluster.partition().leader == NO_LEADER


def test_fencing_ends_a_controlled_shutdown() -> None:
    cluster = Cluster()
    cluster.shut_down(1)
    cluster.fence(1)
    assert not cluster.broker(1).in_controlled_shutdown
    assert cluster.broker(1).controlled_shutdown_index == -1


def test_unregistered_broker_is_forgotten_and_eligible_nowhere() -> None:
    cluster = Cluster()
    cluster.create((1, 2), min_isr=2)
    cluster.fence(1)
    cluster.must(UnregisterBroker(cluster.epoch, 1))
    assert 1 not in cluster.image.brokers
    assert cluster.partition().elr == ()
    again = cluster.apply(UnregisterBroker(cluster.epoch, 1))
    assert again.error == ErrorCode.BROKER_ID_NOT_REGISTERED
    cluster.register(1)
    cluster.unfence(1)
    assert (cluster.partition().isr, cluster.partition().elr) == ((2,), ())


def test_a2_broker_that_does_not_know_the_level_is_refused() -> None:
    cluster = Cluster()
    newer = replace(cluster.registration(4), min_level=2, max_level=3)
    assert cluster.apply(newer).error == ErrorCode.UNSUPPORTED_VERSION
    assert 4 not in cluster.image.brokers


def test_incarnation_ids_tell_restarts_from_repeats() -> None:
    cluster = Cluster()
    first = cluster.registration(1)
    second = replace(first, incarnation_id=UUID(int=1))
    assert cluster.must(first).value != cluster.must(second).value
