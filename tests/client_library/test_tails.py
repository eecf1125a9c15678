"""A tail goes on behind its last event, at whichever node, and says what it had to leave out."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from logboat.client import (
    Client,
    DecodeFailed,
    Gap,
    Json,
    Refused,
    Text,
    TopicNotFound,
    TopicPartition,
    Unreachable,
)
from logboat.client.sdk import tail_stream
from tests.client_library.stub_node import served

TOPIC_ID = "7b2b5c1e-0000-4000-8000-000000000001"
Event = dict[str, Any]


def opened(*offsets: int) -> Event:
    places = ",".join(f"{number}:3:{offset - 1}" for number, offset in enumerate(offsets))
    partitions = [{"partition": n, "offset": offset} for n, offset in enumerate(offsets)]
    return {"event": "open", "id": f"{TOPIC_ID}:{places}", "topic": "t", "partitions": partitions}


def record(offset: int, partition: int = 0) -> Event:
    return {
        "event": "record",
        "id": f"{TOPIC_ID}:{partition}:3:{offset}",
        "partition": partition,
        "offset": offset,
        "timestamp": 0,
        "key": None,
        "value": "eA==",
        "headers": [],
    }


REFUSED = {"error_code": 50302, "message": "no leader", "retriable": True}


class TailNode:
    """Answers its n-th tail with the n-th script: events, or an error's status and document. When a
    script is at its end, so is the connection, unless it `stays_open`; the last one does."""

    def __init__(self) -> None:
        self.url = ""
        self.scripts: list[list[Event] | tuple[int, Event]] = []
        self.asked: list[Mapping[str, str]] = []
        self.stays_open = False
        self.said_last: bytes = b""
        """Before a connection breaks off."""
        self.reading: Callable[[], web.Response] = lambda: web.json_response({})
        """Answers the stateless read of a partition."""

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[TailNode]:
        app = web.Application()
        app.router.add_get("/api/v1/topics/t", self._topic)
        app.router.add_get("/api/v1/topics", self._topics)
        app.router.add_get("/api/v1/topics/t/tail", self._tail)
        app.router.add_get("/api/v1/topics/t/partitions/0/records", self._records)
        async with served(app) as self.url:
            yield self

    async def _topic(self, _: web.Request) -> web.Response:
        return web.json_response({"name": "t", "partition_count": 2})

    async def _topics(self, _: web.Request) -> web.Response:
        return web.json_response({"topics": []})

    async def _records(self, _: web.Request) -> web.Response:
        return self.reading()

    async def _tail(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(dict(request.query))
        script = self.scripts.pop(0)
        if isinstance(script, tuple):
            status, document = script
            return web.json_response(document, status=status)
        response = web.StreamResponse(headers={"Content-Type": "application/x-ndjson"})
        await response.prepare(request)
        for event in script:
            await response.write(json.dumps(event).encode() + b"\n")
        if self.stays_open or not self.scripts:
            await asyncio.get_running_loop().create_future()
        await response.write(self.said_last)
        assert request.transport is not None
        request.transport.close()
        return response


@pytest.fixture
async def nodes() -> AsyncIterator[list[TailNode]]:
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(TailNode().serving()) for _ in range(2)]


async def taken(client: Client, count: int, **how: Any) -> list[tuple[int, int]]:
    """(partition, offset) of the first records."""
    found: list[tuple[int, int]] = []
    async with asyncio.timeout(30):
        async for one in client.tail("t", value=Text(), **how):
            found.append((one.partition, one.offset))
            if len(found) == count:
                return found
    raise AssertionError


async def test_it_goes_on_behind_the_last_event_at_another_node(nodes: list[TailNode]) -> None:
    first, second = nodes
    first.scripts = [[opened(5, 0), record(5), record(6)], []]
    # What breaks off within an event is none.
    first.said_last = b'{"event":"record","id":"'
    second.scripts = [[opened(7, 0), record(7)]]
    async with Client(first.url, second.url) as client:
        assert await taken(client, 3) == [(0, 5), (0, 6), (0, 7)]
    assert first.asked[0]["from"] == "latest"
    assert "last_event_id" not in first.asked[0]
    assert second.asked[0]["last_event_id"] == record(6)["id"]
    assert "from" not in second.asked[0]


async def test_a_tail_that_saw_no_record_yet_goes_on_where_it_began(nodes: list[TailNode]) -> None:
    first, second = nodes
    first.scripts = [[opened(5, 9)], []]
    second.scripts = [[opened(5, 9), record(5)]]
    async with Client(first.url, second.url) as client:
        assert await taken(client, 1) == [(0, 5)]
    assert second.asked[0]["last_event_id"] == opened(5, 9)["id"]


async def test_a_node_that_stops_hands_its_readers_over(nodes: list[TailNode]) -> None:
    first, second = nodes
    end = {"event": "end", "reason": "stopping", "id": record(5)["id"]}
    first.scripts = [[opened(5, 0), record(5), end]]
    second.scripts = [[opened(6, 0), record(6)]]
    async with Client(first.url, second.url) as client:
        assert await taken(client, 2) == [(0, 5), (0, 6)]


async def test_a_node_that_has_gone_silent_is_left(
    nodes: list[TailNode], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = nodes
    first.scripts = [[opened(5, 0)]] * 20
    second.scripts = [[opened(5, 0), record(5)]] * 20
    first.stays_open = second.stays_open = True
    async with Client(first.url, second.url) as client:
        monkeypatch.setattr(tail_stream, "SILENCE_SECONDS", 0.5)
        assert await taken(client, 1) == [(0, 5)]


@pytest.mark.parametrize(
    ("reason", "before", "after"), [("retention", 3, 8), ("truncated", 8, 6), ("recreated", 8, 0)]
)
async def test_a_reset_is_a_gap_and_says_why(
    nodes: list[TailNode], reason: str, before: int, after: int
) -> None:
    reset = {
        "event": "reset",
        "id": f"{TOPIC_ID}:0:-1:{after - 1}",
        "partition": 0,
        "reason": reason,
        "from_offset": before,
        "to_offset": after,
    }
    nodes[0].scripts = [[opened(before, 0), reset, record(after)]]
    told: list[Gap] = []
    async with Client(nodes[0].url) as client:
        tail = client.tail("t", on_gap=told.append)
        async with asyncio.timeout(30):
            async for one in tail:
                assert one.offset == after
                break
    place = TopicPartition("t", 0)
    assert [(gap.place, gap.expected_offset, gap.next_offset) for gap in told] == [
        (place, before, after)
    ]
    assert told[0].reason == reason
    assert list(tail.gaps) == told
    assert tail.positions == {place: after + 1, TopicPartition("t", 1): 0}


async def test_a_record_that_cannot_be_decoded_is_passed_by_whoever_goes_on(
    nodes: list[TailNode],
) -> None:
    nodes[0].scripts = [[opened(5, 0), record(5)], [opened(6, 0), record(6)]]
    async with Client(nodes[0].url) as client:
        tail = client.tail("t", value=Json())  # Their value is `x`.
        async with asyncio.timeout(30):
            for offset in (5, 6):
                with pytest.raises(DecodeFailed, match=f"t-0 at {offset}"):
                    await anext(aiter(tail))
    assert nodes[0].asked[1]["last_event_id"] == record(5)["id"]
    assert tail.positions[TopicPartition("t", 0)] == 7


async def test_some_partitions_are_followed_alone(nodes: list[TailNode]) -> None:
    nodes[0].scripts = [[opened(5, 0), record(5)]]
    async with Client(nodes[0].url) as client:
        assert await taken(client, 1, partitions=[0, 7]) == [(0, 5)]
    assert nodes[0].asked[0]["partitions"] == "0,7"


async def test_given_positions_are_gone_to_and_the_others_begin_as_asked(
    nodes: list[TailNode],
) -> None:
    nodes[0].scripts = [[opened(50, 70)], [opened(5, 70), record(5)]]
    async with Client(nodes[0].url) as client:
        places = {TopicPartition("t", 0): 5}
        assert await taken(client, 1, since="end", positions=places) == [(0, 5)]
    assert nodes[0].asked[1]["last_event_id"] == f"{TOPIC_ID}:0:-1:4,1:-1:69"


async def test_a_deleted_topic_ends_it_by_name(nodes: list[TailNode]) -> None:
    end = {"event": "end", "reason": "deleted", "id": record(5)["id"]}
    gone = {
        "error_code": 40403,
        "message": "there is no topic t",
        "kafka_error": "UNKNOWN_TOPIC_OR_PARTITION",
        "retriable": True,
    }
    nodes[0].scripts = [[opened(5, 0), end], *[(404, gone)] * 100]
    async with Client(nodes[0].url) as client:
        with pytest.raises(TopicNotFound):
            await taken(client, 1)


async def test_what_every_node_would_refuse_is_told_at_once(nodes: list[TailNode]) -> None:
    nodes[0].scripts = [(422, {"error_code": 422, "message": "too many", "retriable": False})]
    async with Client(nodes[0].url) as client:
        with pytest.raises(Refused, match="too many"):
            await taken(client, 1)


async def test_a_busy_node_is_asked_again(nodes: list[TailNode]) -> None:
    nodes[0].scripts = [(503, REFUSED), [opened(5, 0), record(5)]]
    async with Client(nodes[0].url) as client:
        assert await taken(client, 1) == [(0, 5)]


async def test_nodes_that_stay_away_are_named_when_patience_is_over(nodes: list[TailNode]) -> None:
    nodes[0].scripts = [[]] * 1_000
    async with Client(nodes[0].url, request_timeout=2) as client:
        with pytest.raises(Unreachable) as told:
            await taken(client, 1)
    assert nodes[0].url in told.value.reasons


async def test_a_partition_that_stays_unreadable_ends_it_with_the_reason(
    nodes: list[TailNode],
) -> None:
    reset = {"event": "reset", "partition": 0, "reason": "retention", "id": opened(9, 0)["id"]}
    stalled = {"event": "stalled", "partition": 0, **REFUSED}
    script = [opened(5, 0), {**reset, "from_offset": 5, "to_offset": 9}, stalled]
    nodes[0].scripts = [[*script, {"event": "heartbeat"}]]
    gone = {"error_code": 40403, "message": "it is gone", "retriable": False}
    nodes[0].reading = lambda: web.json_response(gone, status=404)

    def lose_patience(_: Gap) -> None:
        tail._patience = 0.0

    async with Client(nodes[0].url) as client:
        tail = client.tail("t", on_gap=lose_patience)
        with pytest.raises(Refused, match="it is gone"):
            async with asyncio.timeout(30):
                await anext(aiter(tail))
