"""Topics, settings, and what remembers a request (RULES A1, A5, C1)."""

from __future__ import annotations

from dataclasses import replace

from logboat.metadata.commands import (
    AlterConfigs,
    BrokerConfigs,
    CreatePartitions,
    CreateTopics,
    DeleteTopics,
    MorePartitions,
    Origin,
    TopicConfigs,
)
from logboat.metadata.image import NO_LEADER
from logboat.wire import ErrorCode
from tests.metadata.cluster_builder import Cluster, new_topic, topic_id


def test_new_partition_is_led_by_its_first_living_replica() -> None:
    cluster = Cluster()
    cluster.fence(1)
    cluster.create((1, 2, 3))
    partition = cluster.partition()
    assert (partition.leader, partition.isr, partition.replicas) == (2, (2, 3), (1, 2, 3))
    assert (partition.leader_epoch, partition.partition_epoch) == (0, 0)


def test_topic_is_refused_when_it_no_longer_fits_the_image() -> None:
    cluster = Cluster()
    cluster.create((1,), name="a.b")
    assert cluster.create((1,), name="a.b").error == ErrorCode.TOPIC_ALREADY_EXISTS
    assert cluster.create((1,), name="a_b").error == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert cluster.create((9,), name="x").error == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    cluster.fence(1)
    assert cluster.create((1,), name="x").error == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert list(cluster.image.topics) == ["a.b"]


def test_two_colliding_names_in_one_command_do_not_both_pass() -> None:
    cluster = Cluster()
    command = CreateTopics(cluster.epoch, (new_topic("a.b"), new_topic("a_b")), None)
    errors = [item.error for item in cluster.must(command).items]
    assert errors == [ErrorCode.NONE, ErrorCode.INVALID_TOPIC_EXCEPTION]


def test_topic_is_deleted_by_id_so_that_a_new_one_of_its_name_survives() -> None:
    cluster = Cluster()
    cluster.create((1,))
    command = DeleteTopics(cluster.epoch, (topic_id("t"),), None)
    assert cluster.must(command).items[0].topic == "t"
    new = replace(new_topic("t"), topic_id=topic_id("other"))
    cluster.must(CreateTopics(cluster.epoch, (new,), None))
    assert cluster.must(command).items[0].error == ErrorCode.UNKNOWN_TOPIC_ID
    assert cluster.image.topics["t"].topic_id == topic_id("other")
    assert dict(cluster.image.topic_names) == {topic_id("other"): "t"}


def test_partitions_are_added_only_to_the_count_they_were_computed_for() -> None:
    cluster = Cluster()
    cluster.create((1, 2))
    more = CreatePartitions(cluster.epoch, (MorePartitions(topic_id("t"), 1, ((2, 3), (3, 1))),))
    assert cluster.must(more).items[0].error == ErrorCode.NONE
    assert [cluster.partition(n).leader for n in range(3)] == [1, 2, 3]
    assert cluster.must(more).items[0].error == ErrorCode.INVALID_PARTITIONS
    assert len(cluster.image.topics["t"].partitions) == 3


def test_a5_same_sequence_gets_the_stored_result_and_a_smaller_one_is_unknown() -> None:
    cluster = Cluster()
    epoch = cluster.broker(2).broker_epoch

    def create(name: str, sequence: int) -> CreateTopics:
        return CreateTopics(cluster.epoch, (new_topic(name),), Origin(2, epoch, sequence))

    first = cluster.must(create("a", 5))
    assert cluster.must(create("a", 5)) == first
    assert cluster.must(create("a", 6)).items[0].error == ErrorCode.TOPIC_ALREADY_EXISTS
    assert cluster.apply(create("b", 5)).error == ErrorCode.REQUEST_TIMED_OUT
    assert "b" not in cluster.image.topics


def test_a5_kinds_of_command_are_remembered_apart() -> None:
    cluster = Cluster()
    origin = Origin(2, cluster.broker(2).broker_epoch, 5)
    cluster.must(CreateTopics(cluster.epoch, (new_topic("a"),), origin))
    deleted = cluster.must(DeleteTopics(cluster.epoch, (topic_id("a"),), origin))
    assert deleted.items[0].error == ErrorCode.NONE
    assert cluster.must(DeleteTopics(cluster.epoch, (topic_id("a"),), origin)) == deleted


def test_a5_new_broker_epoch_clears_what_was_remembered() -> None:
    cluster = Cluster()
    stale = Origin(2, cluster.broker(2).broker_epoch, 5)
    cluster.must(CreateTopics(cluster.epoch, (new_topic("a"),), stale))
    cluster.register(2)
    assert dict(cluster.image.dedupe) == {}
    refused = cluster.apply(CreateTopics(cluster.epoch, (new_topic("b"),), stale))
    assert refused.error == ErrorCode.STALE_BROKER_EPOCH
    fresh = Origin(2, cluster.broker(2).broker_epoch, 1)
    cluster.must(CreateTopics(cluster.epoch, (new_topic("b"),), fresh))
    assert "b" in cluster.image.topics


def alter(
    cluster: Cluster, before: dict[str, str], after: dict[str, str], **resolved: int
) -> AlterConfigs:
    change = TopicConfigs(
        topic_id("t"),
        before,
        after,
        min_insync_replicas=resolved.get("min_isr", 2),
        unclean_leader_election=bool(resolved.get("unclean", 0)),
    )
    return AlterConfigs(cluster.epoch, (change,), ())


def test_settings_change_only_from_what_they_were_computed_from() -> None:
    cluster = Cluster()
    cluster.create((1, 2), configs={"retention.ms": "1"})
    good = alter(cluster, {"retention.ms": "1"}, {"retention.ms": "2"})
    assert cluster.must(good).items[0].error == ErrorCode.NONE
    assert cluster.must(good).items[0].error == ErrorCode.INVALID_UPDATE_VERSION
    assert dict(cluster.image.topics["t"].configs) == {"retention.ms": "2"}


def test_d8_a_lower_minimum_empties_the_elr_at_once() -> None:
    cluster = Cluster()
    cluster.create((1, 2), min_isr=2)
    cluster.fence(2)
    assert cluster.partition().elr == (2,)
    cluster.must(alter(cluster, {}, {"min.insync.replicas": "1"}, min_isr=1))
    assert cluster.partition().elr == ()


def test_d8_permission_for_unclean_elections_ends_a_leaderless_time() -> None:
    cluster = Cluster()
    cluster.create((1, 2))
    cluster.change_isr(1)
    cluster.fence(1)
    assert cluster.partition().leader == NO_LEADER
    cluster.must(alter(cluster, {}, {"unclean.leader.election.enable": "true"}, unclean=1))
    assert cluster.partition().leader == 2


def test_cluster_default_reaches_topics_without_a_setting_of_their_own() -> None:
    cluster = Cluster()
    cluster.create((1, 2), name="t")
    cluster.create((1, 2), name="own", min_isr=1, configs={"min.insync.replicas": "1"})
    change = BrokerConfigs("", {}, {"min.insync.replicas": "2"}, 2, False)
    cluster.must(AlterConfigs(cluster.epoch, (), (change,)))
    assert cluster.image.topics["t"].min_insync_replicas == 2
    assert cluster.image.topics["own"].min_insync_replicas == 1
    assert cluster.image.configs[""] == {"min.insync.replicas": "2"}
    assert cluster.must(AlterConfigs(cluster.epoch, (), (change,))).items[0].error == (
        ErrorCode.INVALID_UPDATE_VERSION
    )
    back = BrokerConfigs("", {"min.insync.replicas": "2"}, {}, 1, False)
    cluster.must(AlterConfigs(cluster.epoch, (), (back,)))
    assert dict(cluster.image.configs) == {}
