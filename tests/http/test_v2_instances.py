"""Where consumer instances live: bounds, names, and nodes that cannot be asked (case D05)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from random import Random
from types import MappingProxyType
from typing import Any

import pytest
from aiohttp.test_utils import TestClient

from logboat.node.http.confluent_v2.group_link import CommittedOffset
from logboat.node.http.confluent_v2.instance_config import InstanceConfig
from logboat.node.http.confluent_v2.instances import Instances
from logboat.node.http.errors import ApiError, from_kafka
from logboat.node.http.leaders import Leaders
from logboat.wire import ErrorCode
from tests.http.fake_http_node import FakeNode, broker
from tests.http.http_asker import Asker


@pytest.fixture
async def instances(node: FakeNode) -> AsyncIterator[Instances]:
    made = Instances(node, Leaders(node), Random(1), max_instances=2)
    made.start()
    yield made
    await made.stop()


def code(raised: pytest.ExceptionInfo[ApiError]) -> tuple[int, int]:
    return raised.value.status, raised.value.error_code


async def test_instances_are_bounded(instances: Instances) -> None:
    for _ in range(2):
        name = instances.take_name("g", None)
        instances.make("g", name, InstanceConfig(name=None))
    with pytest.raises(ApiError) as raised:
        instances.take_name("g", None)
    assert code(raised) == (503, 50301)
    await instances.end("g", name)
    instances.take_name("g", None)


async def test_a_name_that_is_only_taken_is_nobody_s_yet(instances: Instances) -> None:
    assert instances.take_name("g", "mine") == "mine"
    assert instances.holds("g", "mine")
    with pytest.raises(ApiError) as raised:
        instances.take_name("g", "mine")
    assert code(raised) == (409, 40902)
    with pytest.raises(ApiError) as raised, instances.using("g", "mine"):
        pass
    assert code(raised) == (404, 40403)
    instances.let_go("g", "mine")
    assert not instances.holds("g", "mine")


async def test_an_instance_in_use_does_not_expire(instances: Instances) -> None:
    instances.make("g", instances.take_name("g", "i"), InstanceConfig(name="i", idle_ms=100))
    with instances.using("g", "i"):
        await asyncio.sleep(1.1)
        assert instances.holds("g", "i")
    async with asyncio.timeout(30):
        while instances.holds("g", "i"):  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    with pytest.raises(ApiError, match=r"expired after 0\.1 s"), instances.using("g", "i"):
        pass


async def test_a_stopping_node_takes_no_more(instances: Instances) -> None:
    await instances.stop()
    with pytest.raises(ApiError) as raised:
        instances.take_name("g", None)
    assert code(raised) == (503, 50302)


class EpochBehind:
    """A coordinator that is an epoch ahead of the member, so many times."""

    def __init__(self, refusals: int) -> None:
        self.refusals = refusals
        self.commits = 0

    async def commit(self, offsets: object, *, member_id: str, epoch: int) -> None:
        self.commits += 1
        if self.commits <= self.refusals:
            raise from_kafka(ErrorCode.STALE_MEMBER_EPOCH)


@pytest.mark.parametrize("refusals", [0, 1, 2])
async def test_a_commit_that_crosses_a_heartbeat_is_sent_again_once(
    instances: Instances, node: FakeNode, refusals: int
) -> None:
    config = InstanceConfig(name="i")
    instance = instances.make("g", instances.take_name("g", "i"), config)
    link = instance._link = EpochBehind(refusals)  # type: ignore[assignment]
    offsets = {("orders", 0): CommittedOffset(5)}
    if refusals < 2:
        await instance.commit(offsets)
    else:
        with pytest.raises(ApiError) as raised:
            await instance.commit(offsets)
        assert code(raised) == (409, 40903)
    assert link.commits == min(refusals, 1) + 1


async def test_an_instance_on_a_node_that_cannot_be_asked_is_503_and_gone_once_it_is_down(
    node: FakeNode, http: TestClient[Any, Any]
) -> None:
    v2 = Asker(http.session, str(http.make_url("")).rstrip("/"))
    path = f"/consumers/g/instances/2-{'0' * 24}/records"
    assert (await v2.ask("GET", path)).error == (503, 50302)
    # A name that says nothing may live there, too.
    assert (await v2.ask("GET", "/consumers/g/instances/x/records")).error == (503, 50302)
    brokers = {**node.current.brokers, 2: broker(2, fenced=True), 3: broker(3, fenced=True)}
    node.current = replace(node.current, brokers=MappingProxyType(brokers))
    answer = await v2.ask("GET", path)
    assert answer.error == (404, 40403)
    assert "node 2, which is down" in answer.json["message"]
    assert (await v2.ask("GET", "/consumers/g/instances/x/records")).error == (404, 40403)
