"""CreateTopics, DeleteTopics and CreatePartitions at the controller."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from uuid import UUID

import pytest

from logboat.metadata.commands import CreateTopics, Origin
from logboat.metadata.config_definition import ConfigSource
from logboat.wire import ZERO_UUID, ErrorCode
from logboat.wire.messages.create_partitions import CreatePartitionsRequest
from logboat.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from logboat.wire.messages.delete_topics import DeleteTopicsRequest
from tests.metadata.fake_quorum import SETTINGS, Node
from tests.metadata.virtual_loop import run

Topic = CreateTopicsRequest.CreatableTopic
Assignment = CreateTopicsRequest.CreatableTopic.CreatableReplicaAssignment
Config = CreateTopicsRequest.CreatableTopic.CreatableTopicConfig
Created = CreateTopicsResponse.CreatableTopicResult


async def started() -> Node:
    node = Node()
    await node.lead()
    await node.join(1, 2, 3)
    return node


async def create_one(node: Node, topic: Topic, **other: object) -> Created:
    request = CreateTopicsRequest(topics=[topic])
    for name, value in other.items():
        setattr(request, name, value)
    answer = await node.controller.create_topics(request, 7, node.deadline())
    return answer.response.topics[0]


async def delete(node: Node, version: int = 6, **fields: object) -> list[tuple[str | None, int]]:
    request = DeleteTopicsRequest()
    for name, value in fields.items():
        setattr(request, name, value)
    answer = await node.controller.delete_topics(request, version, node.deadline())
    answer.response.encode(version)
    return [(result.name, result.error_code) for result in answer.response.responses]


def by_name(name: str) -> DeleteTopicsRequest.DeleteTopicState:
    return DeleteTopicsRequest.DeleteTopicState(name=name)


def by_id(topic_id: UUID) -> DeleteTopicsRequest.DeleteTopicState:
    return DeleteTopicsRequest.DeleteTopicState(topic_id=topic_id)


def test_topic_gets_the_defaults_of_the_cluster_and_its_settings_back() -> None:
    async def scenario() -> None:
        node = await started()
        request = CreateTopicsRequest(
            topics=[
                Topic(
                    name="t",
                    num_partitions=-1,
                    replication_factor=-1,
                    configs=[Config(name="retention.ms", value="5")],
                )
            ]
        )
        answer = await node.controller.create_topics(request, 7, node.deadline())
        assert answer.index == node.image.index
        created = answer.response.topics[0]
        answer.response.encode(7)
        assert (created.error_code, created.num_partitions, created.replication_factor) == (0, 2, 3)
        topic = node.image.topics["t"]
        assert created.topic_id == topic.topic_id
        assert topic.topic_id.version == 4
        assert topic.synced
        assert created.configs is not None
        told = {config.name: (config.value, config.config_source) for config in created.configs}
        assert told["retention.ms"] == ("5", ConfigSource.DYNAMIC_TOPIC)
        assert told["flush.messages"] == ("1", ConfigSource.DEFAULT)
        await node.controller.stop()

    run(scenario())


@pytest.mark.parametrize(
    ("topic", "error"),
    [
        (Topic(name="", num_partitions=1, replication_factor=1), "INVALID_TOPIC_EXCEPTION"),
        (Topic(name="..", num_partitions=1, replication_factor=1), "INVALID_TOPIC_EXCEPTION"),
        (Topic(name="a b", num_partitions=1, replication_factor=1), "INVALID_TOPIC_EXCEPTION"),
        (Topic(name="é", num_partitions=1, replication_factor=1), "INVALID_TOPIC_EXCEPTION"),
        (Topic(name="x" * 250, num_partitions=1, replication_factor=1), "INVALID_TOPIC_EXCEPTION"),
        (Topic(name="x" * 249, num_partitions=1, replication_factor=1), "NONE"),
        (
            Topic(name="__cluster_metadata", num_partitions=1, replication_factor=1),
            "INVALID_REQUEST",
        ),
        (Topic(name="t", num_partitions=0, replication_factor=1), "INVALID_PARTITIONS"),
        (Topic(name="t", num_partitions=-2, replication_factor=1), "INVALID_PARTITIONS"),
        (Topic(name="t", num_partitions=20_000, replication_factor=1), "POLICY_VIOLATION"),
        (Topic(name="t", num_partitions=1, replication_factor=0), "INVALID_REPLICATION_FACTOR"),
        (Topic(name="t", num_partitions=1, replication_factor=4), "INVALID_REPLICATION_FACTOR"),
        (
            Topic(
                name="t",
                num_partitions=1,
                replication_factor=1,
                configs=[Config(name="no.such", value="1")],
            ),
            "INVALID_CONFIG",
        ),
        (
            Topic(
                name="t",
                num_partitions=1,
                replication_factor=1,
                configs=[Config(name="retention.ms", value=None)],
            ),
            "INVALID_CONFIG",
        ),
        (
            Topic(
                name="t",
                num_partitions=-1,
                replication_factor=-1,
                assignments=[Assignment(partition_index=0, broker_ids=[3, 1])],
            ),
            "NONE",
        ),
        (
            Topic(
                name="t",
                num_partitions=1,
                replication_factor=-1,
                assignments=[Assignment(partition_index=0, broker_ids=[1])],
            ),
            "INVALID_REQUEST",
        ),
        (
            Topic(
                name="t",
                num_partitions=-1,
                replication_factor=-1,
                assignments=[Assignment(partition_index=1, broker_ids=[1])],
            ),
            "INVALID_REPLICA_ASSIGNMENT",
        ),
        (
            Topic(
                name="t",
                num_partitions=-1,
                replication_factor=-1,
                assignments=[Assignment(partition_index=0, broker_ids=[1, 1])],
            ),
            "INVALID_REPLICA_ASSIGNMENT",
        ),
        (
            Topic(
                name="t",
                num_partitions=-1,
                replication_factor=-1,
                assignments=[Assignment(partition_index=0, broker_ids=[9])],
            ),
            "INVALID_REPLICA_ASSIGNMENT",
        ),
    ],
)
def test_topic_is_refused_with_the_error_that_kafka_gives(topic: Topic, error: str) -> None:
    async def scenario() -> None:
        node = await started()
        created = await create_one(node, topic)
        assert ErrorCode(created.error_code).name == error, created.error_message
        assert (topic.name in node.image.topics) == (error == "NONE")
        assert bool(created.error_message) == (error != "NONE")
        await node.controller.stop()

    run(scenario())


def test_each_topic_of_a_request_stands_for_itself() -> None:
    async def scenario() -> None:
        node = await started()
        await node.create("have")
        request = CreateTopicsRequest(
            topics=[
                Topic(name=name, num_partitions=1, replication_factor=1)
                for name in ("a.b", "have", "twice", "a_b", "twice", "good")
            ]
        )
        answer = await node.controller.create_topics(request, 7, node.deadline())
        errors = {topic.name: topic.error_code for topic in answer.response.topics}
        assert errors == {
            "a.b": ErrorCode.NONE,
            "have": ErrorCode.TOPIC_ALREADY_EXISTS,
            "twice": ErrorCode.INVALID_REQUEST,
            "a_b": ErrorCode.INVALID_TOPIC_EXCEPTION,
            "good": ErrorCode.NONE,
        }
        assert len(answer.response.topics) == 5
        assert sorted(node.image.topics) == ["a.b", "good", "have"]
        await node.controller.stop()

    run(scenario())


def test_validate_only_asks_the_same_rules_and_leaves_no_trace() -> None:
    async def scenario() -> None:
        node = await started()
        await node.create("have")
        before = len(node.quorum.log)
        fine = await node.create("t", "have", validate_only=True)
        assert [topic.error_code for topic in fine] == [0, ErrorCode.TOPIC_ALREADY_EXISTS]
        assert fine[0].num_partitions == 2
        assert len(node.quorum.log) == before
        await node.controller.stop()

    run(scenario())


def test_a5_unknown_outcome_is_never_told_as_a_refusal() -> None:
    async def scenario() -> None:
        node = await started()
        node.quorum.lose_answers = 1
        created = (await node.create("t"))[0]
        assert created.error_code == ErrorCode.REQUEST_TIMED_OUT
        assert "t" in node.image.topics
        await node.controller.stop()

    run(scenario())


def test_a5_repeated_create_with_the_same_origin_is_answered_as_the_first_time() -> None:
    async def scenario() -> None:
        node = await started()
        origin = Origin(2, node.broker(2).broker_epoch, 17)
        request = CreateTopicsRequest(
            topics=[
                Topic(name=name, num_partitions=1, replication_factor=factor)
                for name, factor in (("t", 3), ("bad", 9))
            ]
        )
        node.quorum.lose_answers = 1
        first = await node.controller.create_topics(request, 7, node.deadline(), origin)
        assert first.response.topics[0].error_code == ErrorCode.REQUEST_TIMED_OUT
        again = await node.controller.create_topics(request, 7, node.deadline(), origin)
        good, bad = again.response.topics
        assert (good.error_code, good.topic_id) == (0, node.image.topics["t"].topic_id)
        assert bad.error_code == ErrorCode.INVALID_REPLICATION_FACTOR
        assert sum(isinstance(command, CreateTopics) for command in node.quorum.log) == 2
        await node.controller.stop()

    run(scenario())


def test_a5_repeated_delete_with_the_same_origin_spares_a_recreated_topic() -> None:
    async def scenario() -> None:
        node = await started()
        await node.create("t")
        origin = Origin(2, node.broker(2).broker_epoch, 17)
        request = DeleteTopicsRequest(topics=[by_name("t")])
        node.quorum.lose_answers = 1
        first = await node.controller.delete_topics(request, 6, node.deadline(), origin)
        assert first.response.responses[0].error_code == ErrorCode.REQUEST_TIMED_OUT
        again = await node.controller.delete_topics(request, 6, node.deadline(), origin)
        assert again.response.responses[0].error_code == ErrorCode.NONE
        await node.create("t")
        again = await node.controller.delete_topics(request, 6, node.deadline(), origin)
        assert again.response.responses[0].error_code == ErrorCode.NONE
        assert "t" in node.image.topics
        await node.controller.stop()

    run(scenario())


def test_topics_are_deleted_by_name_or_id() -> None:
    async def scenario() -> None:
        node = await started()
        await node.create("a", "b", "c")
        b = node.image.topics["b"].topic_id
        assert await delete(node, 5, topic_names=["a"]) == [("a", 0)]
        assert await delete(node, topics=[by_id(b)]) == [("b", 0)]
        assert list(node.image.topics) == ["c"]
        await node.controller.stop()

    run(scenario())


def test_deletion_is_refused_with_the_error_that_kafka_gives() -> None:
    async def scenario() -> None:
        node = await started()
        await node.create("a")
        a = node.image.topics["a"].topic_id
        both = DeleteTopicsRequest.DeleteTopicState(name="a", topic_id=a)
        for topics, error in (
            ([by_name("no")], ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            ([by_id(UUID(int=9))], ErrorCode.UNKNOWN_TOPIC_ID),
            ([both], ErrorCode.INVALID_REQUEST),
            ([by_id(ZERO_UUID)], ErrorCode.INVALID_REQUEST),
            ([by_name("a"), by_name("a")], ErrorCode.INVALID_REQUEST),
            ([by_name("a"), by_id(a)], ErrorCode.INVALID_REQUEST),
        ):
            errors = [code for _, code in await delete(node, topics=topics)]
            assert errors == [error] * len(topics)
        assert list(node.image.topics) == ["a"]
        await node.controller.stop()

    run(scenario())


def test_deletion_can_be_disabled() -> None:
    async def scenario() -> None:
        off = MappingProxyType({**SETTINGS.default_configs, "delete.topic.enable": "false"})
        node = Node(replace(SETTINGS, default_configs=off))
        await node.lead()
        await node.join(1, 2, 3)
        await node.create("a")
        assert await delete(node, topics=[by_name("a")]) == [
            ("a", ErrorCode.TOPIC_DELETION_DISABLED)
        ]
        await node.controller.stop()

    run(scenario())


def test_c1_inherited_page_cache_mode_is_written_down_at_creation() -> None:
    async def scenario() -> None:
        relaxed = {**SETTINGS.default_configs, "log.flush.interval.messages": "10000"}
        node = Node(replace(SETTINGS, default_configs=MappingProxyType(relaxed)))
        await node.lead()
        await node.join(1, 2, 3)
        await node.create("t")
        topic = node.image.topics["t"]
        assert (topic.flush_messages, topic.synced) == (10_000, False)
        assert topic.configs["flush.messages"] == "10000"
        await node.controller.stop()

    run(scenario())


async def grow(node: Node, *topics: tuple[str, int, list[list[int]] | None]) -> list[ErrorCode]:
    request = CreatePartitionsRequest(
        topics=[
            CreatePartitionsRequest.CreatePartitionsTopic(
                name=name,
                count=count,
                assignments=None
                if assignments is None
                else [
                    CreatePartitionsRequest.CreatePartitionsTopic.CreatePartitionsAssignment(
                        broker_ids=brokers
                    )
                    for brokers in assignments
                ],
            )
            for name, count, assignments in topics
        ]
    )
    answer = await node.controller.create_partitions(request, 3, node.deadline())
    answer.response.encode(3)
    return [ErrorCode(result.error_code) for result in answer.response.results]


def test_topic_grows_and_never_shrinks() -> None:
    async def scenario() -> None:
        node = await started()
        await node.create("t", partitions=2, factor=2)
        assert await grow(node, ("t", 4, None)) == [ErrorCode.NONE]
        assert [len(p.replicas) for p in node.image.topics["t"].partitions] == [2] * 4
        assert await grow(node, ("t", 5, [[3, 1]])) == [ErrorCode.NONE]
        assert node.partition("t", 4).replicas == (3, 1)
        for count, assignments, error in (
            (5, None, ErrorCode.INVALID_PARTITIONS),
            (1, None, ErrorCode.INVALID_PARTITIONS),
            (7, [[1, 2]], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
            (6, [[1, 2, 3]], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
            (6, [[1, 9]], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
            (50_000, None, ErrorCode.POLICY_VIOLATION),
        ):
            assert await grow(node, ("t", count, assignments)) == [error]
        assert await grow(node, ("no", 1, None)) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
        assert len(node.image.topics["t"].partitions) == 5
        await node.controller.stop()

    run(scenario())
