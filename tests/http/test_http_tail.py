"""Tails: what comes is said once and in order, and no position is lost silently."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from types import MappingProxyType
from typing import Any
from uuid import UUID

import pytest
from aiohttp import ClientResponse
from aiohttp.test_utils import TestClient

from logboat.metadata.image import NO_LEADER
from logboat.node.http import open_response, tail_feed
from logboat.node.http.keys import ADMISSION, OPEN
from logboat.node.http.tail import FEEDS
from logboat.wire.records import ControlType, Record, encode_batch, encode_control_batch
from tests.http.fake_http_node import FakeNode, topic
from tests.waiting import until

Http = TestClient[Any, Any]
TAIL = "/api/v1/topics/orders/tail"
ID = str(topic("orders").topic_id)


class Reader:
    """An open tail of lines."""

    def __init__(self, response: ClientResponse) -> None:
        self.response = response
        self.last_id = ""

    async def event(self) -> dict[str, Any]:
        """The next that is no heartbeat."""
        while True:
            line = await asyncio.wait_for(self.response.content.readline(), 30)
            assert line, "the tail ended"
            found: dict[str, Any] = json.loads(line)
            self.last_id = found.get("id", self.last_id)
            if found["event"] != "heartbeat":
                return found

    async def values(self, count: int) -> list[Any]:
        events = [await self.event() for _ in range(count)]
        assert {event["event"] for event in events} == {"record"}, events
        return [event["value"] for event in events]


@asynccontextmanager
async def tailing(http: Http, query: str = "", **headers: str) -> AsyncIterator[Reader]:
    async with http.get(TAIL + query, headers=headers) as response:
        assert response.status == 200, await response.text()
        reader = Reader(response)
        assert (await reader.event())["event"] == "open"
        yield reader


def write(node: FakeNode, *values: str, partition: int = 0, epoch: int = 0) -> None:
    """Each a batch of its own."""
    for value in values:
        batch = encode_batch([Record(value=value.encode(), timestamp=1)])
        node.append("orders", partition, batch, leader_epoch=epoch)


async def test_a_tail_begins_at_the_end_and_says_where(http: Http, node: FakeNode) -> None:
    write(node, "old")
    async with http.get(TAIL) as response:
        opened = json.loads(await response.content.readline())
        assert opened["event"] == "open"
        assert [place["offset"] for place in opened["partitions"]] == [1, 0, 0]
        write(node, "new", epoch=3)
        record = json.loads(await response.content.readline())
    assert record == {
        "event": "record",
        "id": f"{ID}:0:3:1,1:-1:-1,2:-1:-1",
        "partition": 0,
        "leader_epoch": 3,
        "offset": 1,
        "timestamp": 1,
        "timestamp_type": "create_time",
        "key": None,
        "value": "new",
        "headers": [],
    }


async def test_server_sent_events_are_what_a_browser_takes(http: Http, node: FakeNode) -> None:
    headers = {"Accept": "text/event-stream"}
    async with http.get(TAIL + "?partitions=0", headers=headers) as response:
        assert response.content_type == "text/event-stream"
        opened = await response.content.readuntil(b"\n\n")
        assert opened.startswith(b"retry: 1000\nid: " + ID.encode() + b":0:-1:-1\nevent: open\n")
        batch = [Record(value=b"two\nlines", timestamp=1), Record(value=b"more", timestamp=1)]
        node.append("orders", 0, encode_batch(batch))
        for offset, value in enumerate(("two\nlines", "more")):
            text = (await response.content.readuntil(b"\n\n")).decode()
            id_line, data = text.rstrip("\n").split("\n")
            assert id_line == f"id: {ID}:0:0:{offset}"
            assert json.loads(data.removeprefix("data: "))["value"] == value


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("?from=earliest&partitions=0", ["0", "1", "2", "3"]),
        ("?tail=2&partitions=0", ["2", "3"]),
        ("?tail=99&partitions=0", ["0", "1", "2", "3"]),
        ("?offset=1&partitions=0", ["1", "2", "3"]),
        (f"?last_event_id={ID}:0:0:2", ["3"]),
    ],
)
async def test_a_tail_begins_where_it_is_told(
    http: Http, node: FakeNode, query: str, expected: list[str]
) -> None:
    write(node, "0", "1", "2", "3")
    async with tailing(http, query) as reader:
        assert await reader.values(len(expected)) == expected


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("?from=here", 400),
        ("?offset=1", 400),
        ("?offset=1&tail=2&partitions=0", 400),
        ("?partitions=x", 400),
        ("?partitions=7", 404),
        ("?last_event_id=nonsense", 400),
        (f"?last_event_id={ID}:0:0", 400),
        ("?heartbeat=soon", 400),
    ],
)
async def test_a_tail_that_cannot_be_is_refused(http: Http, query: str, status: int) -> None:
    assert (await http.get(TAIL + query)).status == status


async def test_a_tail_goes_on_behind_the_last_event_in_every_partition(
    http: Http, node: FakeNode
) -> None:
    async with tailing(http) as reader:
        write(node, "a")
        write(node, "b", partition=1)
        assert sorted(await reader.values(2)) == ["a", "b"]
    write(node, "c")
    write(node, "d", partition=1)
    write(node, "e", partition=2)
    async with tailing(http, **{"Last-Event-ID": reader.last_id}) as again:
        assert sorted(await again.values(3)) == ["c", "d", "e"]


async def test_a_tail_opened_before_any_record_misses_none(http: Http, node: FakeNode) -> None:
    async with tailing(http, "?partitions=0") as reader:
        pass
    write(node, "while away")
    async with tailing(http, **{"Last-Event-ID": reader.last_id}) as again:
        assert await again.values(1) == ["while away"]


async def test_a_burst_is_kept_whole_and_in_order(http: Http, node: FakeNode) -> None:
    async with tailing(http, "?partitions=0") as reader:
        for start in range(0, 5000, 500):
            batch = [Record(value=b"%d" % n, timestamp=1) for n in range(start, start + 500)]
            node.append("orders", 0, encode_batch(batch))
        assert await reader.values(5000) == [str(n) for n in range(5000)]


async def test_records_below_the_log_start_are_named_by_a_reset(http: Http, node: FakeNode) -> None:
    write(node, "0", "1", "2")
    node.starts["orders", 0] = 2
    async with tailing(http, f"?last_event_id={ID}:0:0:0") as reader:
        reset = await reader.event()
        assert (reset["event"], reset["reason"]) == ("reset", "retention")
        assert (reset["from_offset"], reset["to_offset"]) == (1, 2)
        assert await reader.values(1) == ["2"]


async def test_a_truncated_log_is_named_by_a_reset(http: Http, node: FakeNode) -> None:
    write(node, "0", "1", "2")
    node.cuts["orders", 0] = (0, 1)
    async with tailing(http, f"?last_event_id={ID}:0:0:2") as reader:
        reset = await reader.event()
        assert (reset["event"], reset["reason"]) == ("reset", "truncated")
        assert (reset["from_offset"], reset["to_offset"]) == (3, 1)
        assert await reader.values(2) == ["1", "2"]


async def test_a_log_that_is_cut_under_an_open_tail_is_named_by_a_reset(
    http: Http, node: FakeNode
) -> None:
    async with tailing(http, "?partitions=0") as reader:
        write(node, "0", "1", epoch=1)
        assert await reader.values(2) == ["0", "1"]
        node.logs["orders", 0], node.ends["orders", 0] = b"", 0
        node.cuts["orders", 0] = (0, 0)
        write(node, "other", epoch=2)
        reset = await reader.event()
        assert (reset["event"], reset["reason"], reset["to_offset"]) == ("reset", "truncated", 0)
        assert await reader.values(1) == ["other"]


async def test_an_offset_beyond_the_end_is_named_by_a_reset(http: Http, node: FakeNode) -> None:
    write(node, "0")
    async with tailing(http, "?offset=9&partitions=0") as reader:
        reset = await reader.event()
        assert (reset["reason"], reset["to_offset"]) == ("truncated", 1)


async def test_another_topic_under_the_name_is_named_by_a_reset(http: Http, node: FakeNode) -> None:
    write(node, "0")
    async with tailing(http, f"?last_event_id={UUID(int=9)}:0:0:5&partitions=0") as reader:
        reset = await reader.event()
        assert (reset["event"], reset["reason"]) == ("reset", "recreated")
        assert await reader.values(1) == ["0"]


async def test_a_topic_created_anew_under_an_open_tail_is_named_by_a_reset(
    http: Http, node: FakeNode
) -> None:
    async with tailing(http, "?partitions=0") as reader:
        write(node, "0")
        await reader.values(1)
        node.logs.clear()
        node.ends.clear()
        node.add(replace(topic("orders"), topic_id=UUID(int=77)))
        write(node, "of the new one")
        reset = await reader.event()
        assert (reset["event"], reset["reason"]) == ("reset", "recreated")
        assert reset["id"].startswith(str(UUID(int=77)))
        assert await reader.values(1) == ["of the new one"]


async def test_partitions_that_come_to_be_are_followed_too(
    http: Http, node: FakeNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("logboat.node.http.tail.MAX_PARTITIONS", 4)
    async with tailing(http, "?heartbeat=100ms") as reader:
        node.add(topic("orders", leaders=[1, 2, 3, 1, 1]))
        write(node, "in a new one", partition=3)
        write(node, "beyond the bound", partition=4)
        event = await reader.event()
        assert (event["partition"], event["value"]) == (3, "in a new one")
        assert event["id"].count(",") == 3


async def test_a_deleted_topic_ends_the_tail_with_a_word(http: Http, node: FakeNode) -> None:
    async with tailing(http, "?partitions=0") as reader:
        node.current = replace(
            node.current, topics=MappingProxyType({}), topic_names=MappingProxyType({})
        )
        node.wake()
        ended = await reader.event()
        assert (ended["event"], ended["reason"]) == ("end", "deleted")
        assert await reader.response.content.read() == b""


async def test_a_stopping_node_says_so_and_ends_the_tail(http: Http) -> None:
    async with tailing(http) as reader:
        assert http.app is not None
        http.app[OPEN].stop()
        assert (await reader.event())["reason"] == "stopping"
        assert await reader.response.content.read() == b""


async def test_a_partition_without_a_leader_is_said_to_stall_and_goes_on(
    http: Http, node: FakeNode
) -> None:
    async with tailing(http, "?partitions=0&heartbeat=100ms") as reader:
        node.add(topic("orders", leaders=[NO_LEADER, 2, 3]))
        write(node, "committed before")
        stalled = await reader.event()
        if stalled["event"] == "record":
            stalled = await reader.event()
        assert stalled["event"] == "stalled"
        assert stalled["retriable"] is True
        node.add(topic("orders", leaders=[3, 2, 3], leader_epoch=1))
        write(node, "after", epoch=1)
        assert (await reader.event())["value"] in ("committed before", "after")


async def test_a_client_that_is_gone_keeps_no_place_though_nothing_is_to_be_said(
    http: Http, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("logboat.node.http.tail.GONE_LOOK_S", 0.01)
    assert http.app is not None
    admission, feeds = http.app[ADMISSION], http.app[FEEDS]
    async with tailing(http, "?heartbeat=60s"):
        await until(lambda: len(feeds) == 3)
        assert admission.tails == 1
    await until(lambda: admission.tails == 0 and len(feeds) == 0)


async def test_heartbeats_come_while_nothing_does(http: Http) -> None:
    async with http.get(TAIL + "?heartbeat=100ms") as response:
        await response.content.readline()
        assert json.loads(await response.content.readline()) == {"event": "heartbeat"}
    headers = {"Accept": "text/event-stream"}
    async with http.get(TAIL + "?heartbeat=100ms", headers=headers) as response:
        await response.content.readuntil(b"\n\n")
        assert await response.content.readuntil(b"\n\n") == b": heartbeat\n\n"


async def test_control_batches_are_passed_over_in_silence(http: Http, node: FakeNode) -> None:
    async with tailing(http, "?partitions=0") as reader:
        node.append("orders", 0, encode_control_batch(ControlType.COMMIT, b"", timestamp=1))
        write(node, "v")
        assert (await reader.event())["offset"] == 1


async def test_one_feed_serves_all_who_follow_a_partition_and_ends_with_them(
    http: Http, node: FakeNode
) -> None:
    assert http.app is not None
    async with tailing(http, "?partitions=0") as one, tailing(http, "?partitions=0") as two:
        assert len(http.app[FEEDS]) == 1
        write(node, "v")
        assert await one.values(1) == await two.values(1) == ["v"]
    await until(lambda: len(http.app[FEEDS]) == 0)
    assert http.app[ADMISSION].tails == 0


async def test_a_reader_behind_what_the_feed_keeps_reads_the_log(
    http: Http, node: FakeNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tail_feed, "FEED_BYTES", 1)
    async with tailing(http, "?partitions=0"):
        write(node, *(str(n) for n in range(20)))
        async with tailing(http, "?partitions=0&from=earliest") as late:
            assert await late.values(20) == [str(n) for n in range(20)]
            write(node, "now")
            assert await late.values(1) == ["now"]


async def test_a_reader_that_does_not_read_is_cut_and_harms_nobody(
    http: Http, node: FakeNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_response, "SLOW_READER_SECONDS", 0.5)
    assert http.app is not None
    _, writer = await asyncio.open_connection(http.host, http.port, limit=1024)
    writer.write(f"GET {TAIL}?partitions=0 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
    async with tailing(http, "?partitions=0") as good:
        await until(lambda: http.app[ADMISSION].tails == 2)
        big = encode_batch([Record(value=b"x" * 60_000, timestamp=1)])

        async def write_much() -> int:
            count = 0
            while http.app[ADMISSION].tails == 2:
                node.logs.pop(("orders", 0), None)
                node.append("orders", 0, big)
                count += 1
                assert len((await good.values(1))[0]) == 60_000
            return count

        # Whatever the sockets take, and a piece; not what was written meanwhile.
        assert await asyncio.wait_for(write_much(), 60) < 2_000
        write(node, "still here")
        assert await good.values(1) == ["still here"]
    writer.close()


async def test_open_tails_take_no_place_of_other_requests(
    http: Http, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert http.app is not None
    monkeypatch.setattr(http.app[ADMISSION], "_max_requests", 1)
    async with tailing(http), tailing(http):
        assert (await http.get("/api/v1/cluster")).status == 200


async def test_a_tail_has_no_head(http: Http) -> None:
    assert (await http.head(TAIL)).status == 405


async def test_more_tails_than_allowed_are_refused(
    http: Http, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("logboat.node.http.admission.MAX_TAILS", 1)
    async with tailing(http):
        response = await http.get(TAIL)
        assert response.status == 503
        assert response.headers["Retry-After"]
