"""A consumer of a group as its program sees it, whatever the cluster does meanwhile."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from logboat.client import (
    Assigned,
    Client,
    Consumer,
    DecodeFailed,
    GroupLost,
    Json,
    Lost,
    PartitionRevoked,
    Record,
    Revoked,
    TopicPartition,
    Unreachable,
)
from tests.client_library.stub_node import served

A, B = TopicPartition("orders", 0), TopicPartition("orders", 1)
Documents = list[dict[str, Any]]


def record(place: TopicPartition, offset: int, value: bytes = b"1") -> dict[str, Any]:
    return {
        "topic": place.topic,
        "partition": place.partition,
        "offset": offset,
        "timestamp": 0,
        "key": None,
        "value": base64.b64encode(value).decode(),
        "headers": [],
    }


class GroupNode:
    """Keeps one instance after the other. `polls` are given out in turn, then nothing comes."""

    def __init__(self) -> None:
        self.url = ""
        self.assigned: set[TopicPartition] = {A, B}
        self.polls: list[Documents] = []
        self.joins = 0
        self.left = 0
        self.committed: dict[TopicPartition, int] = {}
        self.away = False
        """Answers nothing but that it cannot answer just now."""
        self.forgotten: set[str] = set()
        """Instances that ended with their node."""

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[GroupNode]:
        app = web.Application(middlewares=[self._as_it_is])
        app.router.add_get("/api/v1/cluster", self._cluster)
        app.router.add_post("/consumers/g", self._join)
        instance = "/consumers/g/instances/{instance}"
        app.router.add_delete(instance, self._leave)
        app.router.add_post(f"{instance}/subscription", self._nothing)
        app.router.add_get(f"{instance}/assignments", self._assignments)
        app.router.add_get(f"{instance}/records", self._records)
        app.router.add_post(f"{instance}/offsets", self._offsets)
        async with served(app) as self.url:
            yield self

    @web.middleware
    async def _as_it_is(self, request: web.Request, handler: Any) -> web.StreamResponse:
        if self.away:
            document = {"error_code": 50302, "message": "the coordinator is away"}
            return web.json_response(document, status=503)
        if request.match_info.get("instance") in self.forgotten:
            document = {"error_code": 40403, "message": "no such instance"}
            return web.json_response(document, status=404)
        answer: web.StreamResponse = await handler(request)
        return answer

    async def _cluster(self, _: web.Request) -> web.Response:
        return web.json_response({"nodes": [{"http": self.url.removeprefix("http://")}]})

    async def _join(self, _: web.Request) -> web.Response:
        self.joins += 1
        return web.json_response({"instance_id": f"i{self.joins}"})

    async def _leave(self, _: web.Request) -> web.Response:
        self.left += 1
        return web.Response(status=204)

    async def _nothing(self, _: web.Request) -> web.Response:
        return web.Response(status=204)

    async def _assignments(self, _: web.Request) -> web.Response:
        places = [{"topic": p.topic, "partition": p.partition} for p in sorted(self.assigned)]
        return web.json_response({"partitions": places})

    async def _records(self, _: web.Request) -> web.Response:
        if not self.polls:
            await asyncio.sleep(0.01)
        return web.json_response(self.polls.pop(0) if self.polls else [])

    async def _offsets(self, request: web.Request) -> web.Response:
        for row in (await request.json())["offsets"]:
            self.committed[TopicPartition(row["topic"], row["partition"])] = row["offset"]
        return web.Response(status=204)


@pytest.fixture
async def node() -> AsyncIterator[GroupNode]:
    async with GroupNode().serving() as made:
        yield made


@asynccontextmanager
async def joined(
    node: GroupNode, *, patience: float = 30.0, **how: Any
) -> AsyncIterator[Consumer[Any, Any]]:
    async with (
        Client(node.url, request_timeout=patience) as client,
        client.consumer("orders", group="g", **how) as consumer,
    ):
        yield consumer


async def taken(consumer: Consumer[Any, Any], count: int) -> list[Record[Any, Any]]:
    found: list[Record[Any, Any]] = []
    async with asyncio.timeout(60):
        async for one in consumer:
            found.append(one)
            if len(found) == count:
                return found
    raise AssertionError


async def test_a_record_that_cannot_be_decoded_takes_no_other_with_it(node: GroupNode) -> None:
    node.polls = [[record(A, 0), record(A, 1, b"{"), record(A, 2)]]
    async with joined(node, value=Json()) as consumer:
        assert [one.offset for one in await taken(consumer, 1)] == [0]
        with pytest.raises(DecodeFailed, match="orders-0 at 1") as told:
            await taken(consumer, 1)
        assert told.value.record.value == b"{"
        assert [one.offset for one in await taken(consumer, 1)] == [2]
        await consumer.commit()
    assert node.committed == {A: 3}


async def test_a_batch_ends_before_a_record_that_cannot_be_decoded(node: GroupNode) -> None:
    node.polls = [[record(A, 0), record(A, 1, b"{"), record(A, 2)]]
    async with joined(node, value=Json()) as consumer:
        batches = consumer.batches(max_wait=0.0)
        assert [one.offset for one in await anext(batches)] == [0]
        with pytest.raises(DecodeFailed):
            await anext(batches)
        assert [one.offset for one in await anext(consumer.batches(max_wait=0.0))] == [2]


async def test_json_may_yield_what_is_none(node: GroupNode) -> None:
    node.polls = [[record(A, 0, b"{"), record(A, 1, b"2")]]
    async with joined(node, value=Json(on_error="yield")) as consumer:
        assert [one.value for one in await taken(consumer, 2)] == [b"{", 2]


async def test_batches_are_no_larger_than_asked_and_wait_no_longer(node: GroupNode) -> None:
    node.polls = [[record(A, number) for number in range(5)]]
    async with joined(node) as consumer:
        sizes = []
        async for batch in consumer.batches(max_records=2, max_wait=0.01):
            sizes.append(len(batch))
            if sum(sizes) == 5:
                break
    assert sizes == [2, 2, 1]


async def test_10_after_its_node_ended_it_joins_again_and_tells(node: GroupNode) -> None:
    """What was handed out and not committed comes again: at least once."""
    node.polls = [[record(A, 0)]]
    async with joined(node) as consumer:
        await taken(consumer, 1)
        node.forgotten = {"i1"}
        with pytest.raises(GroupLost):
            await consumer.commit()
        node.polls = [[], [record(A, 0), record(A, 1)]]
        assert [one.offset for one in await taken(consumer, 2)] == [0, 1]
        assert node.joins == 2
        assert consumer.state == "stable"
        events = consumer.events()
        assert [type(await anext(events)) for _ in range(3)] == [Assigned, Lost, Assigned]
        assert isinstance(consumer.health().last_error, GroupLost)


async def test_10_a_cluster_that_is_away_is_seen_and_so_is_its_return(node: GroupNode) -> None:
    node.polls = [[record(A, 0)]]
    async with joined(node, patience=1.0) as consumer:
        await taken(consumer, 1)
        answered = consumer.health().seconds_since_answer
        node.away = True
        with pytest.raises(Exception, match="the coordinator is away"):
            await taken(consumer, 1)
        health = consumer.health()
        assert health.state == "unreachable"
        assert health.seconds_since_answer > answered
        assert "away" in str(health.last_error)
        node.away, node.polls = False, [[record(A, 1)]]
        assert [one.offset for one in await taken(consumer, 1)] == [1]
        assert consumer.health().state == "stable"


async def test_11_what_was_revoked_is_not_handed_out_nor_committed(node: GroupNode) -> None:
    node.polls = [[record(A, 0), record(B, 7)], [record(A, 1), record(B, 8), record(B, 9)]]
    async with joined(node) as consumer:
        of_b = (await taken(consumer, 2))[1]
        node.assigned = {A}
        assert [one.place for one in await taken(consumer, 1)] == [A]
        with pytest.raises(PartitionRevoked, match="orders-1"):
            await consumer.commit(of_b)
        await consumer.commit()
        assert node.committed == {A: 2}
        events = consumer.events()
        assert await anext(events) == Assigned(frozenset({A, B}))
        assert await anext(events) == Revoked(frozenset({B}))


async def test_it_counts_what_it_hands_out_and_leaves_when_it_is_left(node: GroupNode) -> None:
    node.polls = [[record(A, 0, b"123456"), record(A, 1, b"123")]]
    async with joined(node) as consumer:
        await taken(consumer, 2)
        assert (consumer.stats.records, consumer.stats.bytes) == (2, 9)
    assert node.left == 1
    assert consumer.state == "closed"


async def test_joining_a_cluster_that_is_away_names_it() -> None:
    async with Client("http://127.0.0.1:1", request_timeout=0.5) as client:
        with pytest.raises(Unreachable, match=r"127\.0\.0\.1:1"):
            async with client.consumer("orders", group="g"):
                pass
