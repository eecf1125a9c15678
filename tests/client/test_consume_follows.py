"""What `consume` prints without a group: all there is, and what comes to be."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from random import Random
from types import MappingProxyType

import pytest
from aiohttp.test_utils import TestServer

from logboat.client import TopicNotFound
from logboat.client import record_printer as printing
from logboat.client.consume_records import Reading, _consume
from logboat.client.failure import Failure
from logboat.client.read_from import ReadFrom
from logboat.client.record_format import RecordFormat
from logboat.client.record_printer import RecordPrinter, until_nobody_reads
from logboat.node.http.server import application
from logboat.wire.records import Record as Stored
from logboat.wire.records import encode_batch
from tests.http.fake_http_node import FakeNode, topic
from tests.waiting import until


class Output:
    """What was printed so far."""

    def __init__(self, captured: pytest.CaptureFixture[bytes]) -> None:
        self._captured = captured
        self._out = self.told = b""

    def lines(self) -> list[str]:
        out, told = self._captured.readouterr()
        self._out, self.told = self._out + out, self.told + told
        return self._out.decode().splitlines()


@pytest.fixture
def output(capsysbinary: pytest.CaptureFixture[bytes]) -> Output:
    return Output(capsysbinary)


@pytest.fixture
def node() -> FakeNode:
    fake = FakeNode()
    fake.add(topic("orders", leaders=[1, 2]))
    fake.add(topic("payments", leaders=[3]))
    return fake


@pytest.fixture
async def url(node: FakeNode) -> AsyncIterator[str]:
    async with TestServer(application(node, Random(1), host="127.0.0.1")) as server:
        yield f"http://127.0.0.1:{server.port}"


def write(node: FakeNode, name: str, *values: str, partition: int = 0) -> None:
    """Each a batch of its own."""
    for value in values:
        batch = encode_batch([Stored(value=value.encode(), timestamp=1)])
        node.append(name, partition, batch)


def reading(
    url: str, *topics: str, begin: str = "start", partition: int | None = None, ends: bool = False
) -> Reading:
    return Reading(topics, ReadFrom.parse(begin), partition, ends, url)


def printer(count: int | None = None) -> RecordPrinter:
    return RecordPrinter(RecordFormat(r"%t-%p@%o=%v\n"), count=count)


@asynccontextmanager
async def consuming(what: Reading, count: int | None = None) -> AsyncIterator[asyncio.Task[None]]:
    task = asyncio.create_task(_consume(what, printer(count)))
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait([task])


async def test_several_topics_are_followed_at_once(
    url: str, node: FakeNode, output: Output
) -> None:
    write(node, "orders", "a", partition=1)
    async with consuming(reading(url, "orders", "payments")):
        await until(lambda: output.lines() == ["orders-1@0=a"])
        write(node, "payments", "b")
        await until(lambda: output.lines()[1:] == ["payments-0@0=b"])
        write(node, "orders", "c", "d")
        await until(lambda: output.lines()[2:] == ["orders-0@0=c", "orders-0@1=d"])


async def test_it_begins_at_the_end_and_stops_when_it_has_enough(
    url: str, node: FakeNode, output: Output
) -> None:
    write(node, "orders", "before", partition=1)
    async with consuming(reading(url, "orders", begin="end"), count=2) as task:
        while not task.done():
            # It sees what comes once it is there: nothing says when that is.
            write(node, "orders", "after", partition=1)
            await asyncio.wait([task], timeout=0.2)
        await task
    assert len(output.lines()) == 2
    assert not any("before" in line for line in output.lines())


async def test_one_partition_is_followed_alone(url: str, node: FakeNode, output: Output) -> None:
    write(node, "orders", "not this", partition=0)
    async with consuming(reading(url, "orders", partition=1), count=1) as task:
        write(node, "orders", "nor this", partition=0)
        write(node, "orders", "this", partition=1)
        async with asyncio.timeout(60):
            await task
    assert output.lines() == ["orders-1@0=this"]


async def test_partitions_that_come_to_be_are_followed_however_many_a_tail_takes(
    url: str, node: FakeNode, output: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("logboat.client.following.TAIL_PARTITIONS", 3)
    monkeypatch.setattr("logboat.client.following.LOOK_SECONDS", 0.05)
    monkeypatch.setattr("logboat.node.http.tail.MAX_PARTITIONS", 3)
    async with consuming(reading(url, "orders")):
        for count in (3, 4, 9):
            node.add(topic("orders", leaders=[1] * count))
            write(node, "orders", "new", partition=count - 1)
            await until(lambda: f"orders-{count - 1}@0=new" in output.lines())  # noqa: B023
    assert len(output.lines()) == 3


async def test_a_topic_of_more_partitions_than_a_tail_takes_is_followed_whole(
    url: str, node: FakeNode, output: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("logboat.client.following.TAIL_PARTITIONS", 2)
    monkeypatch.setattr("logboat.node.http.tail.MAX_PARTITIONS", 2)
    node.add(topic("orders", leaders=[1] * 5))
    async with consuming(reading(url, "orders"), count=5) as task:
        for number in range(5):
            write(node, "orders", "v", partition=number)
        async with asyncio.timeout(60):
            await task
    assert sorted(output.lines()) == [f"orders-{number}@0=v" for number in range(5)]


async def test_a_topic_that_is_deleted_ends_it_by_name(
    url: str, node: FakeNode, output: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    # No other node could still know it.
    for asks in ("transport", "tail_stream"):
        monkeypatch.setattr(f"logboat.client.sdk.{asks}.NOT_FOUND_SECONDS", 0.05)
    async with consuming(reading(url, "orders", "payments")) as task:
        write(node, "orders", "last")
        await until(output.lines)
        left = {"payments": node.current.topics["payments"]}
        node.current = replace(node.current, topics=MappingProxyType(left))
        node.wake()
        with pytest.raises(TopicNotFound, match="orders"):
            async with asyncio.timeout(60):
                await task
    assert output.lines() == ["orders-0@0=last"]


async def test_up_to_the_end_is_what_was_there_at_the_start(
    url: str, node: FakeNode, output: Output
) -> None:
    write(node, "orders", "a", "b")
    write(node, "orders", "c", partition=1)

    class Meanwhile(RecordPrinter):
        def print(self, record: object) -> None:
            super().print(record)  # type: ignore[arg-type]
            write(node, "orders", "meanwhile", partition=1)

    await _consume(reading(url, "orders", ends=True), Meanwhile(RecordFormat(r"%v\n"), count=None))
    assert output.lines() == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("begin", "printed"),
    [
        ("start", "abc"),
        ("end", ""),
        ("1", "bc"),
        ("9", ""),
        ("+1", "bc"),
        ("+9", ""),
        ("-1", "c"),
        ("-9", "abc"),
        ("@9999999999999", ""),
    ],
)
async def test_it_begins_where_it_is_told(
    url: str, node: FakeNode, output: Output, begin: str, printed: str
) -> None:
    write(node, "payments", "a", "b", "c")
    told = reading(url, "payments", begin=begin, ends=True)
    await _consume(told, RecordPrinter(RecordFormat("%v"), count=None))
    assert "".join(output.lines()) == printed


async def test_an_offset_that_is_not_there_is_told(
    url: str, node: FakeNode, output: Output
) -> None:
    write(node, "orders", "a", "b")
    node.starts["orders", 0] = 1
    await _consume(reading(url, "orders", begin="0", partition=0, ends=True), printer())
    assert output.lines() == ["orders-0@1=b"]
    assert b"orders-0 has records 1 to 1; beginning at 1." in output.told
    await _consume(reading(url, "orders", begin="7", partition=1, ends=True), printer())
    assert output.lines() == ["orders-0@1=b"]
    assert b"orders-1 has no records; beginning at 0." in output.told


async def test_records_that_vanish_before_the_end_are_no_good_end(
    url: str, node: FakeNode, output: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("logboat.client.consume_records.PATIENCE_SECONDS", 0.0)
    monkeypatch.setattr("logboat.client.consume_records.WAIT_SECONDS", 0.0)
    write(node, "orders", "a")
    log = node.logs["orders", 0]
    write(node, "orders", "b")
    node.logs["orders", 0] = log

    class Meanwhile(RecordPrinter):
        def flush(self) -> None:
            super().flush()
            node.ends["orders", 0] = 1

    with pytest.raises(Failure, match="orders-0 ends at 1 now, 2 was its end before"):
        await _consume(reading(url, "orders", ends=True), Meanwhile(RecordFormat("%v"), count=None))


async def test_a_partition_that_is_not_there_is_told_before_anything_is_read(url: str) -> None:
    with pytest.raises(Failure, match="payments has no partition 1, its partitions are 0 to 0"):
        await _consume(reading(url, "payments", partition=1), printer())


async def test_it_ends_when_nobody_reads_any_more(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(printing, "LOOK_SECONDS", 0.01)
    out, into = os.pipe()
    monkeypatch.setattr(sys, "stdout", os.fdopen(into, "w"))
    try:
        gone = asyncio.create_task(until_nobody_reads())
        await asyncio.sleep(0.05)
        assert not gone.done()
        os.close(out)
        with pytest.raises(BrokenPipeError):
            async with asyncio.timeout(60):
                await _consume(reading(url, "orders"), printer())
        await gone
    finally:
        sys.stdout.close()
