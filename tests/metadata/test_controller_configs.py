"""AlterConfigs and IncrementalAlterConfigs at the controller."""

from __future__ import annotations

from types import MappingProxyType

import pytest

from logboat.metadata.commands import AlterConfigs, TopicConfigs
from logboat.metadata.config_definition import InvalidConfig
from logboat.metadata.group_configs import (
    configs_of_group,
    groups_with_configs,
    validate_group_configs,
)
from logboat.metadata.topic_configs import BrokerSettings
from logboat.wire import ErrorCode
from logboat.wire.messages.alter_configs import AlterConfigsRequest
from logboat.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from tests.metadata.fake_quorum import Node
from tests.metadata.virtual_loop import run

Resource = IncrementalAlterConfigsRequest.AlterConfigsResource
TOPIC, BROKER, GROUP = 2, 4, 32
SET, DELETE, APPEND, SUBTRACT = range(4)


async def started() -> Node:
    node = Node()
    await node.lead()
    await node.join(1, 2, 3)
    await node.create("t")
    return node


async def change(
    node: Node,
    *steps: tuple[str, int, str | None],
    kind: int = TOPIC,
    name: str = "t",
    validate_only: bool = False,
) -> ErrorCode:
    request = IncrementalAlterConfigsRequest(
        resources=[
            Resource(
                resource_type=kind,
                resource_name=name,
                configs=[
                    Resource.AlterableConfig(name=key, config_operation=operation, value=value)
                    for key, operation, value in steps
                ],
            )
        ],
        validate_only=validate_only,
    )
    answer = await node.controller.incremental_alter_configs(request, 1, node.deadline())
    answer.response.encode(1)
    return ErrorCode(answer.response.responses[0].error_code)


def test_settings_of_a_topic_are_set_deleted_and_edited() -> None:
    async def scenario() -> None:
        node = await started()
        await change(node, ("retention.ms", SET, "5"), ("cleanup.policy", APPEND, "compact"))
        assert dict(node.image.topics["t"].configs) == {
            "retention.ms": "5",
            "cleanup.policy": "delete,compact",
        }
        await change(node, ("retention.ms", DELETE, None), ("cleanup.policy", SUBTRACT, "delete"))
        assert dict(node.image.topics["t"].configs) == {"cleanup.policy": "compact"}
        await node.controller.stop()

    run(scenario())


def test_alter_configs_replaces_all_settings() -> None:
    async def scenario() -> None:
        node = await started()
        await change(node, ("retention.ms", SET, "5"))
        whole = AlterConfigsRequest.AlterConfigsResource
        request = AlterConfigsRequest(
            resources=[
                whole(
                    resource_type=TOPIC,
                    resource_name="t",
                    configs=[whole.AlterableConfig(name="min.insync.replicas", value="2")],
                )
            ]
        )
        answer = await node.controller.alter_configs(request, 2, node.deadline())
        assert answer.response.responses[0].error_code == 0
        assert dict(node.image.topics["t"].configs) == {"min.insync.replicas": "2"}
        assert node.image.topics["t"].min_insync_replicas == 2
        await node.controller.stop()

    run(scenario())


def test_illegal_changes_are_refused_and_nothing_moves() -> None:
    async def scenario() -> None:
        node = await started()
        before = node.image.topics["t"]
        for step, error in (
            (("no.such", SET, "1"), ErrorCode.INVALID_CONFIG),
            (("retention.ms", SET, "soon"), ErrorCode.INVALID_CONFIG),
            (("retention.ms", SET, None), ErrorCode.INVALID_REQUEST),
            (("retention.ms", APPEND, "5"), ErrorCode.INVALID_CONFIG),
            (("retention.ms", 9, "5"), ErrorCode.INVALID_REQUEST),
        ):
            assert await change(node, step) == error, step
        twice = (("retention.ms", SET, "1"), ("retention.ms", SET, "2"))
        assert await change(node, *twice) == ErrorCode.INVALID_REQUEST
        missing = await change(node, ("retention.ms", SET, "1"), name="no")
        assert missing == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert await change(node, kind=8, name="logger") == ErrorCode.INVALID_REQUEST
        assert node.image.topics["t"] is before
        await node.controller.stop()

    run(scenario())


def test_c1_mode_of_a_topic_never_changes() -> None:
    async def scenario() -> None:
        node = await started()
        refused = await change(node, ("flush.messages", SET, "10000"))
        assert refused == ErrorCode.INVALID_CONFIG
        assert await change(node, ("flush.messages", SET, "1")) == ErrorCode.NONE
        assert await change(node, ("flush.messages", DELETE, None)) == ErrorCode.NONE
        assert node.image.topics["t"].synced
        await node.controller.stop()

    run(scenario())


def test_two_changes_at_once_never_swallow_each_other() -> None:
    async def scenario() -> None:
        node = await started()
        topic = node.image.topics["t"]
        rival = TopicConfigs(topic.topic_id, {}, {"segment.ms": "7"}, 1, False)
        node.quorum.before_commit.append(AlterConfigs(node.image.controller_epoch, (rival,), ()))
        assert await change(node, ("retention.ms", SET, "5")) == ErrorCode.NONE
        assert dict(node.image.topics["t"].configs) == {"segment.ms": "7", "retention.ms": "5"}
        await node.controller.stop()

    run(scenario())


def test_validate_only_leaves_no_trace() -> None:
    async def scenario() -> None:
        node = await started()
        before = len(node.quorum.log)
        fine = await change(node, ("retention.ms", SET, "5"), validate_only=True)
        bad = await change(node, ("retention.ms", SET, "x"), validate_only=True)
        assert (fine, bad) == (ErrorCode.NONE, ErrorCode.INVALID_CONFIG)
        assert len(node.quorum.log) == before
        await node.controller.stop()

    run(scenario())


def test_cluster_default_of_min_isr_reaches_topics_and_their_elr() -> None:
    async def scenario() -> None:
        node = await started()
        await change(node, ("min.insync.replicas", SET, "2"), kind=BROKER, name="")
        assert node.image.topics["t"].min_insync_replicas == 2
        assert node.image.configs == MappingProxyType({"": {"min.insync.replicas": "2"}})
        await node.create("later")
        assert node.image.topics["later"].min_insync_replicas == 2
        await node.controller.stop()

    run(scenario())


def test_broker_settings_are_refused_where_kafka_refuses_them() -> None:
    async def scenario() -> None:
        node = await started()
        for name, step, error in (
            ("1", ("min.insync.replicas", SET, "2"), ErrorCode.INVALID_CONFIG),
            ("", ("node.id", SET, "2"), ErrorCode.INVALID_REQUEST),
            ("", ("no.such", SET, "2"), ErrorCode.INVALID_CONFIG),
            ("", ("log.retention.ms", SET, "x"), ErrorCode.INVALID_CONFIG),
            ("9", ("log.retention.ms", SET, "5"), ErrorCode.INVALID_REQUEST),
            ("one", ("log.retention.ms", SET, "5"), ErrorCode.INVALID_REQUEST),
            ("2", ("log.retention.ms", SET, "5"), ErrorCode.NONE),
        ):
            assert await change(node, step, kind=BROKER, name=name) == error, (name, step)
        assert dict(node.image.configs) == {"2": {"log.retention.ms": "5"}}
        await node.controller.stop()

    run(scenario())


def test_what_groups_inherit_from_brokers_is_kept_within_the_bounds_too() -> None:
    interval = "group.consumer.assignment.interval.ms"

    async def scenario() -> None:
        node = await started()
        for name, step, error in (
            ("", (interval, SET, "15001"), ErrorCode.INVALID_CONFIG),
            ("", (interval, SET, "-1"), ErrorCode.INVALID_CONFIG),
            ("", (interval, SET, "15000"), ErrorCode.NONE),
            ("2", (interval, SET, "15001"), ErrorCode.INVALID_CONFIG),
            ("2", (interval, SET, "0"), ErrorCode.NONE),
            ("", (interval, DELETE, None), ErrorCode.NONE),
            (
                "",
                ("group.consumer.max.assignment.interval.ms", SET, "9"),
                ErrorCode.INVALID_REQUEST,
            ),
        ):
            assert await change(node, step, kind=BROKER, name=name) == error, (name, step)
        assert dict(node.image.configs) == {"2": {interval: "0"}}
        await node.controller.stop()

    run(scenario())


def test_settings_of_a_group_are_kept_within_the_bounds_of_brokers() -> None:
    interval, session = "consumer.heartbeat.interval.ms", "consumer.session.timeout.ms"

    async def scenario() -> None:
        node = await started()
        for name, step, error in (
            ("g", (interval, SET, "6000"), ErrorCode.NONE),
            ("g", (interval, SET, "4999"), ErrorCode.INVALID_CONFIG),
            ("g", (interval, SET, "15001"), ErrorCode.INVALID_CONFIG),
            ("g", (interval, SET, "soon"), ErrorCode.INVALID_CONFIG),
            ("g", (session, SET, "44999"), ErrorCode.INVALID_CONFIG),
            ("g", (session, SET, "60001"), ErrorCode.INVALID_CONFIG),
            ("g", ("share.session.timeout.ms", SET, "45000"), ErrorCode.INVALID_CONFIG),
            ("", (interval, SET, "6000"), ErrorCode.INVALID_REQUEST),
            ("1", (session, SET, "50000"), ErrorCode.NONE),
        ):
            assert await change(node, step, kind=GROUP, name=name) == error, (name, step)
        assert configs_of_group(node.image, "g") == {interval: "6000"}
        assert configs_of_group(node.image, "1") == {session: "50000"}
        assert groups_with_configs(node.image) == ["1", "g"]
        assert "1" not in node.image.configs  # a group's name is no broker's
        await change(node, (interval, DELETE, None), kind=GROUP, name="g")
        assert groups_with_configs(node.image) == ["1"]
        await node.controller.stop()

    run(scenario())


def test_a_groups_session_outlasts_its_heartbeats() -> None:
    wide = {
        "group.consumer.min.session.timeout.ms": "1000",
        "group.consumer.session.timeout.ms": "10000",
    }
    broker = BrokerSettings(dynamic={}, dynamic_default={}, static=wide)
    validate_group_configs({"consumer.session.timeout.ms": "5001"}, broker)
    with pytest.raises(InvalidConfig, match="must be greater than consumer"):
        validate_group_configs({"consumer.session.timeout.ms": "5000"}, broker)
    with pytest.raises(InvalidConfig, match="must be greater than consumer"):
        validate_group_configs({"consumer.heartbeat.interval.ms": "10000"}, broker)


def test_settings_are_not_changed_by_a_node_that_is_not_the_controller() -> None:
    async def scenario() -> None:
        node = await started()
        node.lose()
        for name in ("t", "no"):
            refused = await change(node, ("retention.ms", SET, "5"), name=name)
            assert refused == ErrorCode.NOT_CONTROLLER
        await node.controller.stop()

    run(scenario())
