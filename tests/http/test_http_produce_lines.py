"""Lines of records over one open request: verdicts while it is open, in order, bounded."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest
from aiohttp import ClientResponse
from aiohttp.test_utils import TestClient

from logboat.node.http import request_lines
from logboat.node.http.keys import ADMISSION, OPEN
from logboat.wire import ErrorCode
from tests.http.fake_http_node import NOW_MS, FakeNode
from tests.waiting import until

Http = TestClient[Any, Any]
ORDERS = "/api/v1/topics/orders/records"
LINES = {"Content-Type": "application/x-ndjson"}


class Sender:
    """A request whose body the test writes as it likes."""

    def __init__(self) -> None:
        self._pieces: asyncio.Queue[bytes | None] = asyncio.Queue()
        self.response: ClientResponse

    def send(self, *documents: Any) -> None:
        for document in documents:
            line = document if isinstance(document, bytes) else json.dumps(document).encode()
            self._pieces.put_nowait(line + b"\n")

    def end(self) -> None:
        self._pieces.put_nowait(None)

    async def body(self) -> AsyncIterator[bytes]:
        while (piece := await self._pieces.get()) is not None:
            yield piece

    async def verdict(self) -> dict[str, Any]:
        line = await asyncio.wait_for(self.response.content.readline(), 30)
        assert line.endswith(b"\n"), "the answer ended"
        found: dict[str, Any] = json.loads(line)
        return found

    async def rest(self) -> list[dict[str, Any]]:
        text = await asyncio.wait_for(self.response.read(), 30)
        return [json.loads(line) for line in text.splitlines()]


@asynccontextmanager
async def sending(http: Http, path: str = ORDERS) -> AsyncIterator[Sender]:
    sender = Sender()
    # aiohttp's client holds the headers back until there is something of the body.
    sender.send(b"")
    sender.response = await http.post(path, data=sender.body(), headers=LINES)
    try:
        yield sender
    finally:
        sender.end()
        sender.response.close()


async def test_verdicts_come_while_the_request_is_open(http: Http, node: FakeNode) -> None:
    async with sending(http) as sender:
        assert sender.response.status == 200
        for number in range(3):
            sender.send({"value": "v", "partition": 1})
            assert await sender.verdict() == {
                "outcome": "applied",
                "partition": 1,
                "offset": number,
                "timestamp": NOW_MS,
            }
        sender.end()
        assert await sender.rest() == []


async def test_verdicts_stand_in_the_order_of_the_lines(http: Http, node: FakeNode) -> None:
    node.errors["orders", 2] = ErrorCode.NOT_ENOUGH_REPLICAS
    lines: list[Any] = [{"value": str(n), "partition": n % 3} for n in range(300)]
    lines[10] = b'{"value":'
    lines[20] = {"value": "v", "partition": 3}
    lines[30] = {"valu": "v"}
    async with sending(http) as sender:
        sender.send(*lines)
        sender.end()
        verdicts = await sender.rest()
    assert len(verdicts) == 300
    for number, verdict in enumerate(verdicts):
        if number in (10, 20, 30):
            assert verdict["outcome"] == "failed"
            assert verdict["error_code"] == {10: 400, 20: 40402, 30: 422}[number]
        elif number % 3 == 2:
            assert verdict["outcome"] == "failed"
            assert verdict["kafka_error"] == "NOT_ENOUGH_REPLICAS"
        else:
            assert verdict["partition"] == number % 3
    for partition in (0, 1):
        offsets = [v["offset"] for v in verdicts if v.get("partition") == partition]
        assert offsets == list(range(len(offsets)))


@pytest.mark.usefixtures("patient")
async def test_a_partition_that_waits_holds_up_no_other_and_gathers_what_comes(
    http: Http, node: FakeNode
) -> None:
    node.slow_to_lead["orders", 1] = 1_000_000
    async with sending(http) as sender:
        sender.send({"value": "slow", "partition": 1})
        await until(lambda: node.asked.count(2) > 1)
        for number in range(50):
            sender.send({"value": str(number), "partition": 0})
            sender.send({"value": str(number), "partition": 1})
        await until(lambda: node.ends.get(("orders", 0)) == 50)
        assert ("orders", 1) not in node.ends
        node.slow_to_lead["orders", 1] = 0
        sender.end()
        verdicts = await sender.rest()
    assert [v["outcome"] for v in verdicts] == ["applied"] * 101
    slow = [v["offset"] for v in verdicts if v["partition"] == 1]
    assert slow == list(range(51))
    # The one that waited, then all that came meanwhile.
    assert node.produced["orders", 1] <= 3


async def test_applied_failed_and_unknown_are_told_apart(http: Http, node: FakeNode) -> None:
    async with sending(http) as sender:
        sender.send({"value": "v", "partition": 0})
        assert (await sender.verdict())["outcome"] == "applied"
        node.errors["orders", 0] = ErrorCode.NOT_ENOUGH_REPLICAS
        sender.send({"value": "v", "partition": 0})
        failed = await sender.verdict()
        assert failed["outcome"] == "failed"
        assert failed["retriable"] is True
        node.errors["orders", 0] = ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
        sender.send({"value": "v", "partition": 0})
        assert (await sender.verdict())["outcome"] == "unknown"
        node.silent.add(2)
        sender.send({"value": "v", "partition": 1})
        silent = await sender.verdict()
        # Nobody was asked to write yet: only whether it leads.
        assert silent["outcome"] == "failed"


async def test_a_batch_line_is_one_batch_and_has_one_verdict(http: Http, node: FakeNode) -> None:
    batch = {"partition": 2, "records": [{"value": "a"}, {"value": "b"}]}
    async with sending(http) as sender:
        sender.send({"value": "before", "partition": 2}, batch, {"value": "after", "partition": 2})
        sender.end()
        verdicts = await sender.rest()
    assert verdicts[1] == {"outcome": "applied", "partition": 2, "base_offset": 1, "count": 2}
    assert [v.get("offset") for v in verdicts] == [0, None, 3]


async def test_a_batch_line_names_its_partition(http: Http) -> None:
    async with sending(http) as sender:
        sender.send({"records": [{"value": "a"}]})
        assert (await sender.verdict())["error_code"] == 422


async def test_a_failed_stream_is_refused_before_it_begins(http: Http) -> None:
    for path, status in (
        ("/api/v1/topics/none/records", 404),
        (ORDERS + "?acks=0", 400),
        (ORDERS + "?value_encoding=xml", 400),
    ):
        async with http.post(path, data=b'{"value":"v"}\n', headers=LINES) as response:
            assert response.status == status
            assert (await response.json())["message"]


async def test_a_body_without_lines_has_no_verdicts(http: Http) -> None:
    async with http.post(ORDERS, data=b"\n \n", headers=LINES) as response:
        assert response.status == 200
        assert await response.read() == b""


async def test_the_last_line_needs_no_line_break(http: Http) -> None:
    async with http.post(ORDERS, data=b'{"value":"a"}\r\n{"value":"b"}', headers=LINES) as response:
        assert (await response.read()).count(b"applied") == 2


async def test_a_line_above_the_limit_ends_the_stream_with_a_word(http: Http) -> None:
    async with sending(http) as sender:
        sender.send({"value": "v"})
        sender.send({"value": "x" * 400_000})
        sender.send({"value": "never"})
        verdicts = await sender.rest()
    assert verdicts[0]["outcome"] == "applied"
    assert verdicts[1]["ended"] is True
    assert verdicts[1]["error_code"] == 413
    assert len(verdicts) == 2


async def test_a_silent_client_is_asked_to_come_back(
    http: Http, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_lines, "IDLE_SECONDS", 0.7)
    async with sending(http) as sender:
        sender.send({"value": "v"})
        assert (await sender.verdict())["outcome"] == "applied"
        ended = await sender.verdict()
        assert (ended["ended"], ended["error_code"], ended["retriable"]) == (True, 408, True)


async def test_a_stopping_node_says_so_after_the_last_verdict(http: Http) -> None:
    async with sending(http) as sender:
        sender.send({"value": "v"})
        assert (await sender.verdict())["outcome"] == "applied"
        assert http.app is not None
        http.app[OPEN].stop()
        (ended,) = await sender.rest()
    assert ended["ended"] is True
    assert ended["message"] == "this node is stopping"


async def test_a_node_may_stop_while_what_it_has_read_is_being_written(
    http: Http, node: FakeNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    produce, may_write = node.produce, asyncio.Event()

    async def later(*arguments: Any) -> Any:
        await may_write.wait()
        return await produce(*arguments)

    monkeypatch.setattr(node, "produce", later)
    assert http.app is not None
    async with sending(http) as sender:
        (end,) = http.app[OPEN]._ends.values()
        sender.send({"value": "v"})
        sender.end()
        await until(lambda: cast(Any, end).__self__._content.at_eof())
        await asyncio.sleep(0)
        http.app[OPEN].stop()
        may_write.set()
        verdict, _ = await sender.rest()
    assert verdict["outcome"] == "applied"


async def test_a_client_that_leaves_costs_nothing_afterwards(http: Http, node: FakeNode) -> None:
    assert http.app is not None
    admission = http.app[ADMISSION]
    async with sending(http) as sender:
        sender.send({"value": "v"})
        assert (await sender.verdict())["outcome"] == "applied"
        assert admission.streams == 1
    await until(lambda: admission.streams == 0)
    assert admission.stream_bytes.used == 0


async def test_a_broken_request_is_no_end_of_the_answer(http: Http, node: FakeNode) -> None:
    """A client whose body breaks off must not take the verdicts it got for all of them."""
    reader, writer = await asyncio.open_connection(http.host, http.port)
    writer.write(
        f"POST {ORDERS} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/x-ndjson\r\n"
        "Transfer-Encoding: chunked\r\n\r\n".encode()
        + b'e\r\n{"value":"v"}\n\r\nnonsense\r\n'
    )
    text = await asyncio.wait_for(reader.read(), 30)
    assert b"500 Internal" not in text
    assert not text.endswith(b"0\r\n\r\n") or b'"ended"' in text
    writer.close()
