"""v3: records as a stream and in batches; wrong bodies and types (cases D01, D03, D07)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp.test_utils import TestClient

from logboat.wire import ErrorCode
from logboat.wire.records import Record, batches, decode_records
from tests.http.fake_http_node import NOW_MS, FakeNode
from tests.http.http_asker import Asker, Reply

PATH = "/v3/clusters/the-cluster/topics/orders/records"
PLAIN = "application/json"

Http = TestClient[Any, Any]


@pytest.fixture
def v3(http: Http) -> Asker:
    return Asker(http.session, str(http.make_url("")).rstrip("/"))


def stored(node: FakeNode) -> list[Record]:
    found = []
    for (name, _), log in sorted(node.logs.items()):
        if name == "orders":
            for batch in batches(log):
                found += list(decode_records(batch.view))
    return found


def lines(answer: Reply) -> list[Any]:
    assert answer.status == 200, answer
    return [json.loads(line) for line in answer.text.splitlines()]


async def produce(v3: Asker, *records: Any, between: str = "\n") -> list[Any]:
    body = between.join(json.dumps(record) for record in records).encode()
    return lines(await v3.ask("POST", PATH, body, content_type=PLAIN))


def text(data: Any, **more: Any) -> dict[str, Any]:
    return {"value": {"type": "STRING", "data": data}, **more}


async def test_each_record_is_answered_while_the_request_is_open(http: Http) -> None:
    answered = asyncio.Event()
    count = 0

    async def records() -> AsyncIterator[bytes]:
        for number in range(3):
            answered.clear()
            yield json.dumps(text(str(number), partition_id=0)).encode()
            await answered.wait()

    headers = {"Content-Type": PLAIN}
    async with (
        asyncio.timeout(30),
        http.post(PATH, data=records(), headers=headers) as answer,
    ):
        assert answer.status == 200
        async for line in answer.content:
            document = json.loads(line)
            assert (document["error_code"], document["offset"]) == (200, count)
            count += 1
            answered.set()
    assert count == 3


@pytest.mark.parametrize("between", ["", "\n", "\r\n ", " \t\n\n"])
async def test_objects_need_nothing_between_them(v3: Asker, node: FakeNode, between: str) -> None:
    answers = await produce(
        v3, *(text(str(n), partition_id=n % 2) for n in range(4)), between=between
    )
    assert [(one["partition_id"], one["offset"]) for one in answers] == [
        (0, 0),
        (1, 0),
        (0, 1),
        (1, 1),
    ]


async def test_an_answer_says_where_the_record_stands_and_what_it_was(
    v3: Asker, node: FakeNode
) -> None:
    record = {
        "partition_id": 1,
        "headers": [{"name": "h", "value": "aGk="}, {"name": "n", "value": None}],
        "key": {"type": "BINARY", "data": "aGk="},
        "value": {"type": "JSON", "data": {"a": 1}},
        "timestamp": "2023-11-14T23:13:20.5+01:00",
    }
    (answer,) = await produce(v3, record)
    assert answer == {
        "error_code": 200,
        "cluster_id": "the-cluster",
        "topic_name": "orders",
        "partition_id": 1,
        "offset": 0,
        "timestamp": "2023-11-14T22:13:20.500Z",
        "key": {"type": "BINARY", "size": 2},
        "value": {"type": "JSON", "size": 7},
    }
    (found,) = stored(node)
    assert (found.key, found.value, found.timestamp) == (b"hi", b'{"a":1}', NOW_MS + 500)
    assert list(found.headers) == [("h", b"hi"), ("n", None)]


async def test_null_is_no_key_and_a_tombstone_and_the_time_is_now(
    v3: Asker, node: FakeNode
) -> None:
    answers = await produce(v3, {}, {"key": None, "value": None}, {"value": {"data": None}})
    assert [(one["key"], one["value"]) for one in answers] == [(None, None)] * 3
    assert [(r.key, r.value, r.timestamp) for r in stored(node)] == [(None, None, NOW_MS)] * 3


async def test_json_keeps_its_digits(v3: Asker, node: FakeNode) -> None:
    for number in (
        "9007199254740993",
        "123456789012345678901234567890",
        "-0.0",
        "1.10",
        '"\\u0000"',
    ):
        body = f'{{"partition_id":0,"value":{{"type":"JSON","data":{number}}}}}'.encode()
        lines(await v3.ask("POST", PATH, body, content_type=PLAIN))
        assert stored(node)[-1].value == number.encode()


WRONG_RECORDS: list[tuple[Any, int]] = [
    ({"value": {"type": "AVRO", "data": "x"}}, 422),
    ({"value": {"data": "x"}}, 422),
    ({"value": "x"}, 422),
    ({"value": {"type": "STRING", "data": 1}}, 422),
    ({"value": {"type": "BINARY", "data": "%"}}, 422),
    ({"value": {"type": "STRING", "data": "x", "schema": "{}"}}, 422),
    ({"valeu": {"type": "STRING", "data": "x"}}, 422),
    ({"partition_id": -1}, 422),
    ({"partition_id": 9}, 40403),
    ({"headers": {"a": "b"}}, 422),
    ({"headers": [{"value": "aGk="}]}, 422),
    ({"timestamp": "soon"}, 422),
    ({"timestamp": "2023-11-14T22:13:20"}, 422),
    ({"timestamp": 5}, 422),
    ({"timestamp": "1960-01-01T00:00:00Z"}, 422),
]


async def test_a_record_that_is_wrong_does_not_hurt_the_others(v3: Asker, node: FakeNode) -> None:
    wrong = [record for record, _ in WRONG_RECORDS]
    answers = await produce(v3, text("first"), *wrong, text("last"))
    assert [one["error_code"] for one in answers] == [
        200,
        *(code for _, code in WRONG_RECORDS),
        200,
    ]
    assert all(one["message"] for one in answers[1:-1])
    assert [record.value for record in stored(node)] == [b"first", b"last"]


@pytest.mark.parametrize(
    ("tail", "code"),
    [(b" x", 400), (b"[]", 400), (b"{", 400), (b'{"a":NaN}', 400), (b'{"a":1,"a":1}', 400)],
)
async def test_what_is_no_json_is_told_after_what_came_before_it(
    v3: Asker, node: FakeNode, tail: bytes, code: int
) -> None:
    body = json.dumps(text("first")).encode() + tail
    answers = lines(await v3.ask("POST", PATH, body, content_type=PLAIN))
    assert [one["error_code"] for one in answers] == [200, code]
    assert len(stored(node)) == 1


async def test_what_is_wrong_from_the_start_has_its_own_status(v3: Asker, node: FakeNode) -> None:
    for body in (b"", b" ", b"[]", b"null", b"{", b"\xff\xfe", b"\xef\xbb\xbf{}", b"[" * 100_000):
        answer = await v3.ask("POST", PATH, body, content_type=PLAIN)
        assert answer.error == (400, 400), body[:20]
    unknown = PATH.replace("orders", "none")
    assert (await v3.ask("POST", unknown, b"{}", content_type=PLAIN)).error == (404, 40403)
    other = PATH.replace("the-cluster", "another")
    assert (await v3.ask("POST", other, b"{}", content_type=PLAIN)).error == (404, 404)
    for kind in (None, "", "text/plain", "application/vnd.kafka.json.v2+json"):
        assert (await v3.ask("POST", PATH, b"{}", content_type=kind)).error == (415, 415)
    answer = await v3.ask("POST", PATH, b"{}", content_type=PLAIN, accept="text/html")
    assert answer.error == (406, 406)
    assert not node.logs
    for kind in ("APPLICATION/JSON", "application/json; charset=utf-8"):
        assert (await v3.ask("POST", PATH, b"{}", content_type=kind)).status == 200


async def test_a_bomb_of_nesting_is_survived(v3: Asker) -> None:
    body = b'{"value":{"type":"JSON","data":' + b"[" * 50_000 + b"]" * 50_000 + b"}}"
    (answer,) = lines(await v3.ask("POST", PATH, body, content_type=PLAIN))
    assert answer["error_code"] == 400


async def test_an_object_beyond_the_limit_ends_the_stream(v3: Asker, node: FakeNode) -> None:
    body = json.dumps(text("x")) + json.dumps(text("x" * 300_000))
    answers = lines(await v3.ask("POST", PATH, body.encode(), content_type=PLAIN))
    assert [one["error_code"] for one in answers] == [200, 413]


async def test_what_a_leader_refuses_has_a_code_of_its_own(v3: Asker, node: FakeNode) -> None:
    node.errors["orders", 0] = ErrorCode.NOT_ENOUGH_REPLICAS
    answers = await produce(v3, text("a", partition_id=0), text("b", partition_id=1))
    assert [one["error_code"] for one in answers] == [50302, 200]


# Batches


def entry(number: int, **more: Any) -> dict[str, Any]:
    return {"id": str(number), **text("x"), **more}


async def test_a_batch_says_of_each_entry_what_became_of_it(v3: Asker, node: FakeNode) -> None:
    node.errors["orders", 1] = ErrorCode.NOT_ENOUGH_REPLICAS
    entries = [entry(1, partition_id=0), entry(2, partition_id=1), entry(3, partition_id=7)]
    answer = await v3.ask("POST", PATH + ":batch", {"entries": entries}, content_type=PLAIN)
    assert answer.status == 207
    successes, failures = answer.json["successes"], answer.json["failures"]
    assert [(one["id"], one["partition_id"], one["offset"]) for one in successes] == [("1", 0, 0)]
    codes = {one["id"]: one["error_code"] for one in failures}
    assert codes == {"2": 50302, "3": 40403}
    assert len(stored(node)) == 1


async def test_a_batch_without_order_is_refused_whole(v3: Asker, node: FakeNode) -> None:
    many = [entry(n) for n in range(1_001)]
    wrong: list[Any] = [None, {}, [], [1], [{}], [entry(1), entry(1)], [{"id": "x" * 81}], many]
    for entries in wrong:
        body = {"entries": entries}
        answer = await v3.ask("POST", PATH + ":batch", body, content_type=PLAIN)
        assert answer.error == (422, 42208)
    assert not node.logs


@pytest.mark.parametrize("method", ["HEAD", "OPTIONS"])
async def test_head_and_options_of_v3_do_not_fail(v3: Asker, method: str) -> None:
    for path in ("/v3/clusters", "/v3/clusters/the-cluster/topics", PATH):
        assert (await v3.ask(method, path)).status < 500
