"""What is sent again is written once: producer ids and keys."""

from __future__ import annotations

import asyncio
import json
from hashlib import blake2b
from random import Random
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer

from logboat.node.http import idempotency
from logboat.node.http.errors import ApiError
from logboat.node.http.idempotency import IdempotencyKeys
from logboat.node.http.ports import AnswerLost
from logboat.node.http.server import application
from logboat.wire import ErrorCode
from logboat.wire.messages.produce import ProduceResponse
from tests.http.fake_http_node import FakeNode, topic

Http = TestClient[Any, Any]
ORDERS = "/api/v1/topics/orders/records"
LINES = {"Content-Type": "application/x-ndjson"}


async def new_producer(http: Http) -> dict[str, Any]:
    response = await http.post("/api/v1/producers")
    assert response.status == 201
    found: dict[str, Any] = await response.json()
    return found


async def test_producers_have_ids_of_their_own(http: Http) -> None:
    first, second = await new_producer(http), await new_producer(http)
    assert first["producer_id"] != second["producer_id"]
    assert first["producer_epoch"] == 0


async def test_a_batch_that_is_sent_again_is_answered_with_where_it_stands(
    http: Http, node: FakeNode
) -> None:
    producer = await new_producer(http)
    body = {**producer, "base_sequence": 0, "partition": 0, "records": [{"value": "v"}] * 3}
    answers = [await (await http.post(ORDERS, json=body)).json() for _ in range(2)]
    assert answers[0] == answers[1]
    assert node.ends["orders", 0] == 3
    more = {**body, "base_sequence": 3}
    answer = await (await http.post(ORDERS, json=more)).json()
    assert answer["records"][0]["offset"] == 3


async def test_an_idempotent_batch_whose_answer_is_lost_is_sent_again_by_the_node(
    http: Http, node: FakeNode
) -> None:
    producer = await new_producer(http)
    body = {**producer, "base_sequence": 0, "partition": 0, "records": [{"value": "v"}]}
    node.lose_answers = 1
    response = await http.post(ORDERS, json=body)
    assert response.status == 200
    assert (await response.json())["records"][0]["offset"] == 0
    assert node.ends["orders", 0] == 1


async def test_what_an_earlier_attempt_may_have_written_stays_unknown(
    http: Http, node: FakeNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    producer = await new_producer(http)
    body = {**producer, "base_sequence": 0, "partition": 0, "records": [{"value": "v"}]}
    await http.post(ORDERS, json=body)
    node.lose_answers = 1
    body["base_sequence"] = 1
    produce = node.produce

    async def refusing_afterwards(*asked: Any) -> ProduceResponse:
        try:
            return await produce(*asked)
        except AnswerLost:
            node.errors["orders", 0] = ErrorCode.NOT_ENOUGH_REPLICAS
            raise

    monkeypatch.setattr(node, "produce", refusing_afterwards)
    document = await (await http.post(ORDERS, json=body)).json()
    assert document["records"][0]["kafka_error"] == "NOT_ENOUGH_REPLICAS"
    assert document["records"][0]["outcome"] == "unknown"


async def test_batches_of_a_producer_may_be_lines(http: Http, node: FakeNode) -> None:
    producer = await new_producer(http)
    batch = {**producer, "base_sequence": 0, "partition": 1, "records": [{"value": "v"}] * 2}
    text = json.dumps(batch).encode() + b"\n"
    async with http.post(ORDERS, data=text * 2, headers=LINES) as response:
        lines = [json.loads(line) for line in (await response.read()).splitlines()]
    verdict = {"outcome": "applied", "partition": 1, "base_offset": 0, "count": 2}
    assert lines == [verdict, verdict]
    assert node.ends["orders", 1] == 2


@pytest.mark.parametrize(
    "change",
    [
        {"partition": None},
        {"producer_epoch": None},
        {"base_sequence": -1},
        {"base_sequence": 2**31},
        {"producer_id": "7"},
        {"records": [{"value": "v", "partition": 1}]},
    ],
)
async def test_half_a_producer_is_refused(
    http: Http, node: FakeNode, change: dict[str, Any]
) -> None:
    body = {
        "producer_id": 1,
        "producer_epoch": 0,
        "base_sequence": 0,
        "partition": 0,
        "records": [{"value": "v"}],
        **change,
    }
    assert (await http.post(ORDERS, json=body)).status == 422
    assert not node.ends


@pytest.mark.parametrize(
    "error",
    [ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.INVALID_PRODUCER_EPOCH],
)
async def test_a_gap_in_the_sequence_is_a_conflict(
    http: Http, node: FakeNode, error: ErrorCode
) -> None:
    node.errors["orders", 0] = error
    body = {
        "producer_id": 1,
        "producer_epoch": 0,
        "base_sequence": 9,
        "partition": 0,
        "records": [{"value": "v"}],
    }
    response = await http.post(ORDERS, json=body)
    assert response.status == 409
    assert (await response.json())["hint"]


# Keys.


async def keyed(http: Http, key: str, records: Any, query: str = "") -> tuple[int, dict[str, Any]]:
    headers = {"Idempotency-Key": key}
    response = await http.post(ORDERS + query, json={"records": records}, headers=headers)
    return response.status, await response.json()


async def test_the_same_key_and_body_are_written_once(http: Http, node: FakeNode) -> None:
    records = [{"value": "a"}, {"key": "k", "value": "b"}, {"value": "c"}]
    first = await keyed(http, "one", records)
    assert first[0] == 200
    assert await keyed(http, "one", records) == first
    assert sum(node.ends.values()) == 3
    await keyed(http, "two", records)
    assert sum(node.ends.values()) == 6


async def test_the_same_key_and_body_are_written_once_through_another_node(
    http: Http, node: FakeNode
) -> None:
    """As a node knows it that never heard of the key: the log recognises the batch."""
    records = [{"value": "a"}, {"key": "k", "value": "b"}]
    _, first = await keyed(http, "one", records)
    other = TestServer(application(node, Random(2), host="127.0.0.1"))
    async with TestClient(other) as elsewhere:
        _, second = await keyed(elsewhere, "one", records)
    places = [(r["partition"], r["offset"]) for r in first["records"]]
    assert [(r["partition"], r["offset"]) for r in second["records"]] == places
    assert sum(node.ends.values()) == 2


async def test_the_same_key_with_another_body_is_refused(http: Http, node: FakeNode) -> None:
    await keyed(http, "one", [{"value": "a"}])
    status, document = await keyed(http, "one", [{"value": "b"}])
    assert status == 422
    assert "another request" in document["message"]
    assert sum(node.ends.values()) == 1


async def test_a_key_whose_request_was_refused_is_free_again(http: Http, node: FakeNode) -> None:
    assert (await keyed(http, "one", [{"valu": "a"}]))[0] == 422
    assert (await keyed(http, "one", [{"value": "a"}]))[0] == 200


@pytest.mark.usefixtures("patient")
async def test_a_key_whose_first_request_is_in_work_waits(http: Http, node: FakeNode) -> None:
    node.slow_to_lead["orders", 0] = 1_000_000
    records = [{"value": "a", "partition": 0}]
    first = asyncio.create_task(keyed(http, "one", records))
    while not node.asked:  # noqa: ASYNC110
        await asyncio.sleep(0)
    status, document = await keyed(http, "one", records)
    assert (status, document["retriable"]) == (409, True)
    node.slow_to_lead["orders", 0] = 0
    assert (await first)[0] == 200


async def test_a_key_is_for_documents_and_excludes_a_producer(http: Http) -> None:
    headers = {"Idempotency-Key": "k"}
    response = await http.post(ORDERS, data=b"{}\n", headers={**headers, **LINES})
    assert response.status == 422
    body = {
        "producer_id": 1,
        "producer_epoch": 0,
        "base_sequence": 0,
        "partition": 0,
        "records": [{"value": "v"}],
    }
    assert (await http.post(ORDERS, json=body, headers=headers)).status == 422
    for key in ("", "x" * 300):
        response = await http.post(ORDERS, json=body, headers={"Idempotency-Key": key})
        assert response.status == 400


async def test_keys_are_bounded_and_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = IdempotencyKeys(max_keys=2)
    topic_id = topic("orders").topic_id
    for key in ("a", "b"):
        with keys.running(topic_id, key, b"", 0):
            pass
    with pytest.raises(ApiError) as refused, keys.running(topic_id, "c", b"", 0):
        pass
    assert (refused.value.status, refused.value.retriable) == (429, True)
    loop = asyncio.get_running_loop()
    later = loop.time() + idempotency.WINDOW_SECONDS + 1
    monkeypatch.setattr(loop, "time", lambda: later)
    with keys.running(topic_id, "c", b"", 0):
        assert len(keys) == 1


def test_made_up_ids_differ_and_lie_apart_from_those_handed_out() -> None:
    found = set()
    for number in range(1000):
        producer = idempotency._keyed(blake2b(b"%d" % number).digest(), 0).producer
        assert 2**62 <= producer.producer_id < 2**63
        assert 0 <= producer.producer_epoch < 2**14
        found.add((producer.producer_id, producer.producer_epoch))
    assert len(found) == 1000
