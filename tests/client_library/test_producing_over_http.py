"""The producer: nothing twice, nothing out of order, nothing lost in silence, all within bounds."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web

from logboat.client import (
    Client,
    Closed,
    Json,
    NotDelivered,
    NotEnoughReplicas,
    OutcomeUnknown,
    RecordTooLarge,
)
from logboat.client.sdk.producer import TURN_RECORDS
from tests.client_library.stub_node import REFUSED, StubNode, hang, verdict


@pytest.fixture
async def node() -> AsyncIterator[StubNode]:
    async with StubNode().serving() as stub:
        yield stub


class Once:
    """Answers the first call so, and lets the others pass."""

    def __init__(self, answer: Any) -> None:
        self._answer = answer
        self.done = False

    async def __call__(self, line: dict[str, Any]) -> web.StreamResponse | None:
        if self.done:
            return None
        self.done = True
        if self._answer is ConnectionResetError:
            raise ConnectionResetError
        return verdict(self._answer)


UNKNOWN = {
    "outcome": "unknown",
    "error_code": 504,
    "retriable": True,
    "message": "no answer in time",
}


async def test_a_sent_record_comes_back_with_its_place(node: StubNode) -> None:
    async with Client(node.url) as client, client.producer(value=Json()) as producer:
        first = await producer.send("orders", {"id": 1}, key="a")
        second = await producer.send("orders", None, key="a", headers=[("h", b"\xff")])
    assert (first.topic, first.partition, first.offset, second.offset) == ("orders", 0, 0, 1)
    assert node.log[0][0]["value"] == '{"id":1}'
    assert node.log[0][1]["value"] is None
    assert node.lines[1]["header_encoding"] == "base64"


async def test_records_that_come_together_leave_together_and_in_order(node: StubNode) -> None:
    async with Client(node.url) as client, client.producer() as producer:
        sends = [producer.send("orders", b"%d" % number) for number in range(500)]
        places = await asyncio.gather(*sends)
    assert [place.offset for place in places] == list(range(500))
    assert node.values() == [str(number) for number in range(500)]
    assert len(node.lines) < 20


async def test_an_idempotent_record_whose_answer_was_lost_stands_in_the_log_once(
    node: StubNode,
) -> None:
    for answer in (ConnectionResetError, UNKNOWN):
        node.log.clear()
        node.after = Once(answer)
        async with Client(node.url) as client, client.producer() as producer:
            place = await producer.send("orders", b"x")
        assert node.after.done
        assert node.values() == ["x"]
        assert place.offset == 0
        assert node.lines[-1]["base_sequence"] == node.lines[-2]["base_sequence"]


@pytest.mark.parametrize("answer", [ConnectionResetError, UNKNOWN])
async def test_without_idempotence_what_may_have_happened_is_told_and_not_tried_again(
    node: StubNode, answer: Any
) -> None:
    node.after = Once(answer)
    async with Client(node.url) as client, client.producer(idempotent=False) as producer:
        with pytest.raises(OutcomeUnknown):
            await producer.send("orders", b"x")
    assert len(node.lines) == 1


async def test_without_idempotence_what_did_not_happen_is_tried_again(node: StubNode) -> None:
    node.before = Once({"outcome": "failed", "message": "not yet", **REFUSED})
    async with Client(node.url) as client, client.producer(idempotent=False) as producer:
        await producer.send("orders", b"x")
    assert node.values() == ["x"]
    assert len(node.lines) == 2


async def test_what_stays_refused_until_the_deadline_was_not_written(node: StubNode) -> None:
    async def refuse(_: dict[str, Any]) -> web.StreamResponse:
        return verdict({"outcome": "failed", "message": "two of three are away", **REFUSED})

    node.before = refuse
    async with Client(node.url) as client, client.producer(delivery_timeout=2.0) as producer:
        with pytest.raises(NotEnoughReplicas, match="two of three are away") as refused:
            await producer.send("orders", b"x")
        assert refused.value.retriable
        assert refused.value.node == node.url
        node.before = None
        await producer.send("orders", b"y")
    assert node.values() == ["y"]
    assert [line["base_sequence"] for line in node.lines] == [0] * len(node.lines)


async def test_after_an_unknown_outcome_the_numbers_begin_anew_under_another_id(
    node: StubNode,
) -> None:
    """They could not go on: nobody knows whether the log has the lost batch."""
    async with Client(node.url) as client, client.producer(delivery_timeout=2.0) as producer:
        await producer.send("orders", b"a")
        node.before = hang
        with pytest.raises(OutcomeUnknown):
            await producer.send("orders", b"b")
        node.before = None
        await producer.send("orders", b"c")
    assert node.values() == ["a", "c"]
    assert (node.lines[-1]["producer_id"], node.lines[-1]["base_sequence"]) == (2, 0)


@pytest.mark.parametrize(
    "said",
    [
        {"outcome": "failed", "kafka_error": "MESSAGE_TOO_LARGE"},
        # More than a node takes as one line.
        {"ended": True, "kafka_error": None},
    ],
)
async def test_a_batch_that_is_too_large_is_halved_and_a_record_that_is_says_so(
    node: StubNode, said: dict[str, Any]
) -> None:
    async def small_only(line: dict[str, Any]) -> web.StreamResponse | None:
        if sum(len(record["value"]) for record in line["records"]) <= 10:
            return None
        return verdict({"error_code": 413, "message": "too large", "retriable": False, **said})

    node.before = small_only
    async with Client(node.url) as client, client.producer() as producer:
        sends = [producer.send("orders", b"abc") for _ in range(8)]
        sends.append(producer.send("orders", b"far too large"))
        results = await asyncio.gather(*sends, return_exceptions=True)
    assert [place.offset for place in results[:8]] == list(range(8))  # type: ignore[union-attr]
    assert isinstance(results[8], RecordTooLarge)
    assert node.values() == ["abc"] * 8


async def test_the_buffer_is_bounded_and_sending_waits_for_room(node: StubNode) -> None:
    gate, first_line = asyncio.Event(), asyncio.Event()

    async def wait(_: dict[str, Any]) -> None:
        first_line.set()
        await gate.wait()

    node.before = wait
    async with Client(node.url) as client:
        producer = client.producer(buffer_bytes=10_000, max_batch_bytes=2_000)
        taken = 0

        async def take() -> None:
            nonlocal taken
            for _ in range(100):
                await producer.enqueue("orders", bytes(1_000))
                taken += 1

        taking = asyncio.create_task(take())
        await first_line.wait()
        for _ in range(100):
            await asyncio.sleep(0)
        assert taken == 9
        gate.set()
        await taking
        report = await producer.close()
    assert (report.delivered, report.undelivered) == (100, 0)
    assert len(node.values()) == 100


async def test_a_loop_that_only_takes_records_lets_batches_leave_meanwhile(node: StubNode) -> None:
    turns = 0

    async def count_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async with Client(node.url) as client, client.producer() as producer:
        await producer.send("orders", b"first")
        counting = asyncio.create_task(count_turns())
        for _ in range(5_000):
            await producer.enqueue("orders", b"x")
        counting.cancel()
    assert turns >= 5_000 // TURN_RECORDS
    assert len(node.values()) == 5_001


async def test_send_all_gives_places_in_order_and_takes_no_more_than_fits(node: StubNode) -> None:
    async with Client(node.url) as client, client.producer(buffer_bytes=20_000) as producer:
        places = [place.offset async for place in producer.send_all("orders", [b"x"] * 3_000)]
    assert places == list(range(3_000))
    assert producer.stats.delivered == 3_000


async def test_a_failure_that_nobody_looked_at_is_told_when_the_producer_is_left(
    node: StubNode,
) -> None:
    node.before = Once(
        {"outcome": "failed", "error_code": 422, "message": "no", "retriable": False}
    )
    async with Client(node.url) as client:
        with pytest.raises(NotDelivered) as told:
            async with client.producer() as producer:
                await producer.enqueue("orders", b"x")
    assert told.value.count == 1
    assert "no" in str(told.value)


async def test_a_closed_producer_takes_nothing(node: StubNode) -> None:
    async with Client(node.url) as client:
        producer = client.producer()
        await producer.close()
        with pytest.raises(Closed):
            await producer.send("orders", b"x")
