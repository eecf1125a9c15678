"""AlterPartition and ElectLeaders, as apply decides (RULES D2, D3, D8)."""

from __future__ import annotations

import pytest

from logboat.metadata.commands import (
    ElectionType,
    ElectLeaders,
    PartitionId,
    ReorderReplicas,
    ReplicaOrder,
    ReplicasLost,
)
from logboat.metadata.image import NO_LEADER
from logboat.metadata.results import Item
from logboat.wire import ErrorCode
from tests.metadata.cluster_builder import Cluster, topic_id


@pytest.fixture
def cluster() -> Cluster:
    cluster = Cluster()
    cluster.create((1, 2, 3), min_isr=2)
    return cluster


def elect(cluster: Cluster, election: ElectionType, *numbers: int) -> list[Item]:
    ids = tuple(PartitionId(topic_id("t"), number) for number in numbers)
    return list(cluster.must(ElectLeaders(cluster.epoch, election, ids)).items)


def test_leader_shrinks_and_expands_its_isr(cluster: Cluster) -> None:
    assert cluster.change_isr(1, 2).partition == cluster.partition()
    assert cluster.partition().isr == (1, 2)
    cluster.change_isr(1, 2, 3)
    assert cluster.partition().isr == (1, 2, 3)
    assert (cluster.partition().leader_epoch, cluster.partition().partition_epoch) == (0, 2)


def test_shrinking_below_the_minimum_keeps_the_leaver_eligible(cluster: Cluster) -> None:
    cluster.change_isr(1, 2)
    cluster.change_isr(1)
    assert (cluster.partition().isr, cluster.partition().elr) == ((1,), (2,))
    cluster.change_isr(1, 3)
    assert cluster.partition().elr == ()


def test_an_unchanged_isr_grows_no_epoch(cluster: Cluster) -> None:
    before = cluster.partition()
    assert cluster.change_isr(1, 2, 3).error == ErrorCode.NONE
    assert cluster.partition() is before


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"leader_epoch": -1}, ErrorCode.FENCED_LEADER_EPOCH),
        ({"leader_epoch": 7}, ErrorCode.NOT_CONTROLLER),
        ({"partition_epoch": 7}, ErrorCode.NOT_CONTROLLER),
        ({"partition_epoch": -1}, ErrorCode.INVALID_UPDATE_VERSION),
        ({"by": 2}, ErrorCode.INVALID_REQUEST),
        ({"member_epochs": {2: 999}}, ErrorCode.INELIGIBLE_REPLICA),
        ({"member_epochs": {2: -1}}, ErrorCode.NONE),
    ],
)
def test_alter_partition_refuses_as_kafka_does(
    cluster: Cluster, options: dict[str, int], error: ErrorCode
) -> None:
    before = cluster.partition()
    command = cluster.isr_change((1, 2), **options)  # type: ignore[arg-type]
    assert cluster.must(command).items[0].error == error
    assert (cluster.partition() is before) == (error != ErrorCode.NONE)


def test_isr_must_hold_the_leader_and_replicas_only_once(cluster: Cluster) -> None:
    for new_isr in ((2, 3), (1, 2, 2), (1, 9), ()):
        item = cluster.change_isr(*new_isr)
        assert item.error == ErrorCode.INVALID_REQUEST, new_isr


def test_d3_fenced_or_shutting_down_replicas_do_not_join(cluster: Cluster) -> None:
    cluster.fence(2)
    assert cluster.change_isr(1, 2, 3).error == ErrorCode.INELIGIBLE_REPLICA
    cluster.unfence(2)
    cluster.shut_down(2)
    assert cluster.change_isr(1, 2, 3).error == ErrorCode.INELIGIBLE_REPLICA


def test_d3_restarted_replica_does_not_join_by_what_its_former_life_fetched(
    cluster: Cluster,
) -> None:
    old = cluster.broker(3).broker_epoch
    cluster.register(3)
    cluster.unfence(3)
    stale = cluster.isr_change((1, 2, 3), member_epochs={3: old})
    assert cluster.must(stale).items[0].error == ErrorCode.INELIGIBLE_REPLICA
    assert cluster.change_isr(1, 2, 3).error == ErrorCode.NONE


def test_d2_repeated_change_is_refused_by_the_partition_epoch(cluster: Cluster) -> None:
    command = cluster.isr_change((1, 2))
    assert cluster.must(command).items[0].error == ErrorCode.NONE
    assert cluster.must(command).items[0].error == ErrorCode.INVALID_UPDATE_VERSION
    assert cluster.partition().isr == (1, 2)


def test_restarted_leader_cannot_alter_with_its_old_broker_epoch(cluster: Cluster) -> None:
    command = cluster.isr_change((1, 2))
    cluster.register(1)
    assert cluster.apply(command).error == ErrorCode.STALE_BROKER_EPOCH


def test_preferred_election_hands_the_lead_back(cluster: Cluster) -> None:
    cluster.fence(1)
    assert elect(cluster, ElectionType.PREFERRED, 0)[0].error == (
        ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
    )
    cluster.unfence(1)
    cluster.change_isr(1, 2, 3)
    assert cluster.partition().leader == 2
    assert elect(cluster, ElectionType.PREFERRED, 0)[0].error == ErrorCode.NONE
    assert (cluster.partition().leader, cluster.partition().leader_epoch) == (1, 2)
    assert elect(cluster, ElectionType.PREFERRED, 0)[0].error == ErrorCode.ELECTION_NOT_NEEDED


def reorder(cluster: Cluster, *replicas: int, number: int = 0) -> Item:
    order = ReplicaOrder(topic_id("t"), number, replicas)
    (item,) = cluster.must(ReorderReplicas(cluster.epoch, (order,))).items
    return item


def test_another_order_of_replicas_changes_nobodys_duties(cluster: Cluster) -> None:
    cluster.change_isr(1, 2)
    cluster.change_isr(1)
    before = cluster.partition()
    assert reorder(cluster, 3, 2, 1).partition == cluster.partition()
    after = cluster.partition()
    assert (after.replicas, after.isr, after.elr) == ((3, 2, 1), (1,), (2,))
    assert (after.leader, after.leader_epoch) == (before.leader, before.leader_epoch)
    assert after.partition_epoch == before.partition_epoch + 1
    assert reorder(cluster, 3, 2, 1).partition is after, "asked for again it changes nothing"
    cluster.change_isr(1, 2, 3)
    assert cluster.partition().isr == (3, 2, 1)


def test_the_first_of_the_new_order_is_the_preferred_leader(cluster: Cluster) -> None:
    reorder(cluster, 3, 1, 2)
    (elected,) = elect(cluster, ElectionType.PREFERRED, 0)
    assert elected.error == ErrorCode.NONE
    after = cluster.partition()
    assert (after.leader, after.leader_epoch, after.isr) == (3, 1, (3, 1, 2))


def test_a_first_replica_out_of_sync_is_preferred_and_does_not_lead(cluster: Cluster) -> None:
    cluster.change_isr(1, 2)
    reorder(cluster, 3, 1, 2)
    (refused,) = elect(cluster, ElectionType.PREFERRED, 0)
    assert refused.error == ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
    assert cluster.partition().leader == 1


def test_an_isr_change_from_before_the_new_order_is_refused_by_the_partition_epoch(
    cluster: Cluster,
) -> None:
    command = cluster.isr_change((1, 2))
    reorder(cluster, 3, 2, 1)
    assert cluster.must(command).items[0].error == ErrorCode.INVALID_UPDATE_VERSION


@pytest.mark.parametrize("replicas", [(1, 2), (1, 2, 3, 4), (1, 2, 4), (1, 1, 2, 3), (1, 2, 2), ()])
def test_other_replicas_than_there_are_make_no_order(
    cluster: Cluster, replicas: tuple[int, ...]
) -> None:
    before = cluster.partition()
    assert reorder(cluster, *replicas).error == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert reorder(cluster, 3, 2, 1, number=9).error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert cluster.partition() is before


def test_unclean_election_happens_on_request_only(cluster: Cluster) -> None:
    cluster.change_isr(1, 2)
    cluster.fence(2)
    cluster.fence(1)
    assert (cluster.partition().leader, cluster.partition().elr) == (NO_LEADER, (1, 2))
    items = elect(cluster, ElectionType.UNCLEAN, 0, 9)
    assert [item.error for item in items] == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    assert (cluster.partition().leader, cluster.partition().isr) == (3, (3,))
    assert elect(cluster, ElectionType.UNCLEAN, 0)[0].error == ErrorCode.ELECTION_NOT_NEEDED


def test_unclean_election_without_any_living_replica_is_refused(cluster: Cluster) -> None:
    for node_id in (3, 2, 1):
        cluster.fence(node_id)
    item = elect(cluster, ElectionType.UNCLEAN, 0)[0]
    assert item.error == ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE


def lose(cluster: Cluster, broker_id: int, *, broker_epoch: int | None = None) -> Item:
    """The broker reports that its log of partition 0 lacks what it once held."""
    epoch = cluster.broker(broker_id).broker_epoch if broker_epoch is None else broker_epoch
    lost = (PartitionId(topic_id("t"), 0),)
    result = cluster.apply(ReplicasLost(cluster.epoch, broker_id, epoch, lost))
    return result.items[0] if result.items else Item(result.error)


def test_c1_replica_that_reports_damage_leaves_isr_and_elr(cluster: Cluster) -> None:
    """In synced mode, where a restart alone would have left it eligible."""
    cluster.change_isr(1, 2)
    cluster.register(2, clean=False)
    assert (cluster.partition().isr, cluster.partition().elr) == ((1,), (2,))
    assert lose(cluster, 2).error == ErrorCode.NONE
    assert (cluster.partition().isr, cluster.partition().elr) == ((1,), ())
    cluster.unfence(2)
    cluster.fence(1)
    assert cluster.partition().leader == NO_LEADER
    assert cluster.partition().elr == (1,)


def test_c1_leader_that_reports_damage_is_replaced(cluster: Cluster) -> None:
    lose(cluster, 1)
    after = cluster.partition()
    assert (after.leader, after.leader_epoch, after.isr) == (2, 1, (2, 3))


def test_c1_a_leader_that_stays_forgets_what_the_damaged_replica_confirmed(
    cluster: Cluster,
) -> None:
    """Otherwise it would let it into the ISR again before it is filled."""
    lose(cluster, 2)
    after = cluster.partition()
    assert (after.leader, after.leader_epoch, after.isr) == (1, 1, (1, 3))
    lose(cluster, 2)  # Not in the ISR any more; it may have asked to join meanwhile.
    assert (cluster.partition().leader, cluster.partition().leader_epoch) == (1, 2)


def test_c1_damaged_last_known_leader_is_not_elected_without_a_word() -> None:
    cluster = Cluster()
    cluster.create((1, 2), min_isr=1)
    cluster.change_isr(1)
    cluster.register(1, clean=False)
    lose(cluster, 1)
    assert (cluster.partition().elr, cluster.partition().last_known_leader) == ((), NO_LEADER)
    cluster.unfence(1)
    assert cluster.partition().leader == NO_LEADER
    assert elect(cluster, ElectionType.UNCLEAN, 0)[0].error == ErrorCode.NONE


def test_c1_damaged_replica_leads_by_permission_and_only_if_nobody_else_can() -> None:
    cluster = Cluster()
    cluster.create((1, 2), min_isr=1, unclean=True)
    cluster.change_isr(1)
    lose(cluster, 1)
    assert cluster.partition().leader == 2
    lose(cluster, 2)
    assert cluster.partition().leader == 1
    cluster.fence(2)
    before = cluster.partition()
    lose(cluster, 1)
    after = cluster.partition()
    assert (after.leader, after.leader_epoch) == (1, before.leader_epoch + 1)
    assert after.partition_epoch == before.partition_epoch + 1


def test_c1_report_of_an_older_incarnation_or_of_a_stranger_changes_nothing(
    cluster: Cluster,
) -> None:
    before = cluster.partition()
    assert lose(cluster, 2, broker_epoch=1).error == ErrorCode.STALE_BROKER_EPOCH
    four = Cluster(brokers=4)
    four.create((1, 2, 3), min_isr=2)
    assert lose(four, 4).error == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert cluster.partition() is before
