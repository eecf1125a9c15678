"""RULES F1: metadata of thousands of partitions is told in slices, all of it of one image."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from logboat.metadata.image import ClusterImage
from logboat.node.caller import Caller
from logboat.node.handlers.metadata import TOLD_AT_ONCE, handle
from logboat.node.served import Call
from logboat.wire import ApiKey, ErrorCode, RequestHeader
from logboat.wire.messages.metadata import MetadataRequest, MetadataResponse
from tests.http.fake_http_node import topic

Asked = MetadataRequest.MetadataRequestTopic


def image_of(**partitions: int) -> ClusterImage:
    topics = {name: topic(name, [1] * count) for name, count in partitions.items()}
    names = {one.topic_id: name for name, one in topics.items()}
    return ClusterImage(7, "cluster", 1, 1, 1, topics=topics, topic_names=names)


def services_with(image: ClusterImage) -> Any:
    return SimpleNamespace(
        image=image,
        config=SimpleNamespace(flag=lambda _: False),
        known_brokers=SimpleNamespace(named=lambda _: []),
        controller_id_for_clients=lambda: 1,
    )


def ask(services: Any, *names: str | None) -> MetadataResponse | Awaitable[MetadataResponse]:
    header = RequestHeader(api_key=ApiKey.METADATA, api_version=12)
    topics = [Asked(name=name) for name in names] or None
    return handle(services, MetadataRequest(topics=topics), Call(header, Caller("test", 1)))


def counts(answer: MetadataResponse) -> dict[str | None, int]:
    return {topic.name: len(topic.partitions) for topic in answer.topics}


def test_few_partitions_are_answered_in_the_turn_of_the_request() -> None:
    answer = ask(services_with(image_of(a=3, b=TOLD_AT_ONCE - 7)), "a", "b", "missing")
    assert isinstance(answer, MetadataResponse)
    assert counts(answer) == {"a": 3, "b": TOLD_AT_ONCE - 7, "missing": 0}
    assert answer.topics[2].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("names", [(), ("a", "b", "missing")])
async def test_what_changes_between_two_slices_is_not_told(names: tuple[str, ...]) -> None:
    """Neither of a topic that is deleted meanwhile, nor of one that is made anew."""
    services = services_with(image_of(a=3_000, b=5))
    answer = ask(services, *names)
    assert not isinstance(answer, MetadataResponse)
    services.image = image_of(b=4_000)
    told = await answer
    assert counts(told) == {"a": 3_000, "b": 5} | dict.fromkeys(names[2:], 0)
    later = ask(services, "a", "b")
    assert counts(await cast(Awaitable[MetadataResponse], later)) == {"a": 0, "b": 4_000}


async def test_others_have_their_turn_after_so_many() -> None:
    answering = asyncio.ensure_future(
        cast(Awaitable[MetadataResponse], ask(services_with(image_of(a=10_000)), "a"))
    )
    turns = 0
    while not answering.done():
        await asyncio.sleep(0)
        turns += 1
    assert turns >= 10_000 // TOLD_AT_ONCE
