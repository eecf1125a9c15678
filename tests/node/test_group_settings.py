"""Settings of single groups over a whole node's own port, as Kafka's tools ask for them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from logboat.metadata.config_definition import ConfigSource
from logboat.wire import ErrorCode
from logboat.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from logboat.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from logboat.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse
from logboat.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from logboat.wire.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from logboat.wire.messages.list_config_resources import (
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from tests.node.running_node import port, running_node
from tests.node.wire_client import WireClient

GROUP, TOPIC, BROKER, CLIENT_METRICS = 32, 2, 4, 16
INTERVAL, SESSION = "consumer.heartbeat.interval.ms", "consumer.session.timeout.ms"
ASSIGNMENTS = "consumer.assignment.interval.ms"
Described = DescribeConfigsResponse.DescribeConfigsResult.DescribeConfigsResourceResult


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[WireClient]:
    settings = {
        "group.consumer.heartbeat.interval.ms": "200",
        "group.consumer.min.heartbeat.interval.ms": "100",
        "group.consumer.min.session.timeout.ms": "1000",
    }
    async with (
        running_node(tmp_path / "data", **settings) as node,
        await WireClient.connect(port(node)) as connected,
    ):
        yield connected


async def alter(client: WireClient, name: str, value: str, *, group: str = "g") -> ErrorCode:
    Resource = IncrementalAlterConfigsRequest.AlterConfigsResource
    config = Resource.AlterableConfig(name=name, config_operation=0, value=value)
    resource = Resource(resource_type=GROUP, resource_name=group, configs=[config])
    request = IncrementalAlterConfigsRequest(resources=[resource])
    answer = await client.ask(request, 1, IncrementalAlterConfigsResponse)
    return ErrorCode(answer.responses[0].error_code)


async def describe(client: WireClient, group: str) -> dict[str, Described]:
    Resource = DescribeConfigsRequest.DescribeConfigsResource
    resource = Resource(resource_type=GROUP, resource_name=group, configuration_keys=None)
    request = DescribeConfigsRequest(resources=[resource], include_synonyms=True)
    (result,) = (await client.ask(request, 4, DescribeConfigsResponse)).results
    assert result.error_code == ErrorCode.NONE, result.error_message
    return {row.name: row for row in result.configs}


async def test_what_a_group_does_not_set_is_as_the_broker_says(client: WireClient) -> None:
    assert await alter(client, SESSION, "2000") == ErrorCode.NONE
    rows = await describe(client, "g")
    assert (rows[SESSION].value, rows[SESSION].config_source) == ("2000", ConfigSource.GROUP)
    inherited = rows[INTERVAL]
    assert (inherited.value, inherited.config_source) == ("200", ConfigSource.STATIC_BROKER)
    assert [(s.name, s.source) for s in rows[SESSION].synonyms] == [
        (SESSION, ConfigSource.GROUP),
        ("group.consumer.session.timeout.ms", ConfigSource.DEFAULT),
    ]
    unknown = await describe(client, "nobody-has-joined")
    assert unknown[SESSION].config_source == ConfigSource.DEFAULT


async def test_what_is_out_of_bounds_is_refused(client: WireClient) -> None:
    for name, value in (
        (SESSION, "999"),
        (SESSION, "60001"),
        (INTERVAL, "99"),
        (ASSIGNMENTS, "15001"),
    ):
        assert await alter(client, name, value) == ErrorCode.INVALID_CONFIG
    assert await alter(client, SESSION, "200") == ErrorCode.INVALID_CONFIG
    assert await alter(client, SESSION, "2000", group="") == ErrorCode.INVALID_REQUEST


async def test_groups_with_settings_are_listed_beside_the_other_resources(
    client: WireClient,
) -> None:
    async def listed(version: int, *kinds: int) -> list[tuple[int, str]]:
        request = ListConfigResourcesRequest(resource_types=list(kinds))
        answer = await client.ask(request, version, ListConfigResourcesResponse)
        assert answer.error_code == ErrorCode.NONE
        return [(one.resource_type, one.resource_name) for one in answer.config_resources]

    await alter(client, SESSION, "2000")
    assert await listed(1, GROUP) == [(GROUP, "g")]
    assert (BROKER, "1") in await listed(1)
    assert await listed(0) == await listed(1, CLIENT_METRICS) == []
    wrong = ListConfigResourcesRequest(resource_types=[3])
    answer = await client.ask(wrong, 1, ListConfigResourcesResponse)
    assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION


async def test_a_members_session_is_as_long_as_its_group_says(client: WireClient) -> None:
    await alter(client, SESSION, "1000")
    topic = CreateTopicsRequest.CreatableTopic(name="t", num_partitions=1, replication_factor=1)
    await client.ask(CreateTopicsRequest(topics=[topic]), 7, CreateTopicsResponse)
    await coordinator_is_here(client)
    answer = await beat(client, "m", 0)
    assert answer.error_code == ErrorCode.NONE
    # Another member finds the partition free as soon as the silent one's session has ended.
    async with asyncio.timeout(30):
        newcomer = await beat(client, "n", 0)
        while not (newcomer.assignment and newcomer.assignment.topic_partitions):
            await asyncio.sleep(0.1)
            newcomer = await beat(client, "n", newcomer.member_epoch)
    gone = await beat(client, "m", answer.member_epoch)
    assert gone.error_code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH)


async def coordinator_is_here(client: WireClient) -> None:
    """Asking for it makes the topic; its log is read a moment later."""
    request = FindCoordinatorRequest(coordinator_keys=["g"])
    for _ in range(500):
        await client.ask(request, 4, FindCoordinatorResponse)
        if (await beat(client, "nobody", 7)).error_code == ErrorCode.GROUP_ID_NOT_FOUND:
            return
        await asyncio.sleep(0.02)
    raise AssertionError("no coordinator in 10 s")


async def beat(client: WireClient, member: str, epoch: int) -> ConsumerGroupHeartbeatResponse:
    request = ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id=member,
        member_epoch=epoch,
        rebalance_timeout_ms=60_000 if epoch == 0 else -1,
        subscribed_topic_names=["t"] if epoch == 0 else None,
        topic_partitions=[] if epoch == 0 else None,
    )
    return await client.ask(request, 1, ConsumerGroupHeartbeatResponse)
