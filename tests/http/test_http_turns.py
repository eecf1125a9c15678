"""RULES F1: no request holds the loop for longer than a turn may last, however large it is."""

from __future__ import annotations

import asyncio
import gc
import json
import time
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp.test_utils import TestClient

from logboat.node.http.errors import ApiError
from logboat.node.http.record_stream import Chunk
from logboat.node.http.records_in import LineParser, RecordEncodings
from logboat.wire.records import Record, encode_batch
from tests.http.fake_http_node import FakeNode, topic

Http = TestClient[Any, Any]
ORDERS = "/api/v1/topics/orders/records"

LONGEST_MS = 60
"""A turn may last 5 ms; this machine may be slow, and collect garbage. What is not cut takes some
hundred milliseconds here."""


TRIES = 5


async def no_long_turn(work: Callable[[], Awaitable[None]]) -> None:
    """What is not cut is long every time; the collector, or a processor that is shared, is not."""
    for _ in range(TRIES):
        longest = await longest_turn(work)
        if longest * 1000 < LONGEST_MS:
            return
    raise AssertionError(f"a turn of {longest * 1000:.0f} ms, and as long in each of {TRIES} tries")


async def longest_turn(work: Callable[[], Awaitable[None]]) -> float:
    """Seconds of the processor time of the loop's thread, so that a busy machine does not count."""
    longest, running = 0.0, True

    async def watch() -> None:
        nonlocal longest
        while running:
            began = time.thread_time()
            await asyncio.sleep(0)
            longest = max(longest, time.thread_time() - began)

    # As a node does when it has started.
    gc.collect()
    gc.freeze()
    watching = asyncio.create_task(watch())
    try:
        await work()
    finally:
        running = False
        await watching
        gc.unfreeze()
    return longest


async def test_f1_overviews_of_many_partitions_are_made_beside_the_loop(
    http: Http, node: FakeNode
) -> None:
    for number in range(20):
        node.add(topic(f"large-{number}", leaders=[1] * 2_000))

    async def ask() -> None:
        for path in ("/api/v1/cluster", "/api/v1/topics", "/api/v1/topics/large-3"):
            response = await http.get(path, headers={"Connection": "close"})
            assert response.status == 200
            await response.read()

    await no_long_turn(ask)


async def test_f1_a_large_read_is_rendered_beside_the_loop(http: Http, node: FakeNode) -> None:
    for _ in range(10):
        batch = [Record(key=b"k", value=b"v" * 100, timestamp=1) for _ in range(2_000)]
        node.append("orders", 0, encode_batch(batch))
    bodies: list[bytes] = []

    async def read() -> None:
        path = "/api/v1/topics/orders/partitions/0/records?max_bytes=8388608"
        response = await http.get(path)
        assert response.status == 200
        bodies.append(await response.read())

    await no_long_turn(read)
    assert len(json.loads(bodies[-1])["records"]) == 20_000


async def test_f1_lines_are_worked_on_in_small_blocks(http: Http, node: FakeNode) -> None:
    lines = b'{"key":"k","value":"v"}\n' * 8_000 + b"nonsense\n" * 8_000 + b"\n" * 50_000
    bodies: list[bytes] = []

    async def write() -> None:
        response = await http.post(
            ORDERS, data=lines, headers={"Content-Type": "application/x-ndjson"}
        )
        bodies.append(await response.read())

    await no_long_turn(write)
    assert bodies[-1].count(b'"applied"') == 8_000
    assert bodies[-1].count(b'"failed"') == 8_000


def test_f1_refused_lines_leave_no_work_to_the_collector() -> None:
    """Full collections are the longest turns of all."""
    parser = LineParser(RecordEncodings())
    gc.collect()
    gc.disable()
    try:
        items, _ = parser.block([b"nonsense"] * 1_000, 1, now_ms=1)
        chunk = Chunk(0)
        for item in items:
            assert isinstance(item, ApiError)
            chunk.refuse(item)
        del items, item, chunk
        assert gc.collect() < 100
    finally:
        gc.enable()
