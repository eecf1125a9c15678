"""v2: records in and out, wrong bodies, media types (cases D01, D03, D07)."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from aiohttp.test_utils import TestClient

from logboat.wire import ErrorCode
from logboat.wire.records import Record, batches, decode_records
from tests.http.fake_http_node import NOW_MS, FakeNode
from tests.http.http_asker import BINARY, JSON, TEXT, V2, Asker


@pytest.fixture
def v2(http: TestClient[Any, Any]) -> Asker:
    return Asker(http.session, str(http.make_url("")).rstrip("/"))


def stored(node: FakeNode, topic: str = "orders") -> list[Record]:
    """Every record of the topic, by partition and offset."""
    found = []
    for (name, _), log in sorted(node.logs.items()):
        if name == topic:
            for batch in batches(log):
                found += list(decode_records(batch.view))
    return found


async def produce(v2: Asker, *records: Any, kind: str = JSON) -> Any:
    return await v2.good("POST", "/topics/orders", {"records": list(records)}, content_type=kind)


async def test_a_record_in_each_format_is_stored_as_its_bytes(v2: Asker, node: FakeNode) -> None:
    encoded = base64.b64encode(b"\x00\xff").decode()
    for kind, key, value in (
        (JSON, {"a": 1}, ["x", 2]),
        (BINARY, None, encoded),
        (TEXT, "k", "löwe"),
    ):
        await produce(v2, {"key": key, "value": value, "partition": 0}, kind=kind)
    assert [(r.key, r.value) for r in stored(node)] == [
        (b'{"a":1}', b'["x",2]'),
        (None, b"\x00\xff"),
        (b"k", "löwe".encode()),
    ]


async def test_headers_and_timestamps_are_stored_as_strimzi_has_them(
    v2: Asker, node: FakeNode
) -> None:
    headers = [{"key": "trace", "value": "aGk="}, {"key": "trace", "value": None}]
    await produce(v2, {"value": 1, "headers": headers, "timestamp": 123}, {"value": 2})
    first, second = stored(node)
    assert list(first.headers) == [("trace", b"hi"), ("trace", None)]
    assert (first.timestamp, second.timestamp) == (123, NOW_MS)


async def test_offsets_stand_in_the_order_of_the_records(v2: Asker) -> None:
    wanted = [2, 0, 2, 1]
    answer = await produce(v2, *({"value": n, "partition": n} for n in wanted))
    assert [one["partition"] for one in answer["offsets"]] == wanted
    assert [one["offset"] for one in answer["offsets"]] == [0, 0, 1, 0]
    assert all(one["error_code"] is None and one["error"] is None for one in answer["offsets"])


REFUSALS = [
    (ErrorCode.NOT_ENOUGH_REPLICAS, 50003),
    (ErrorCode.REQUEST_TIMED_OUT, 50003),
    (ErrorCode.CORRUPT_MESSAGE, 50003),
    (ErrorCode.MESSAGE_TOO_LARGE, 50002),
    (ErrorCode.TOPIC_AUTHORIZATION_FAILED, 40301),
]


async def test_a_record_that_was_not_written_has_its_own_code(v2: Asker, node: FakeNode) -> None:
    for number, (error, code) in enumerate(REFUSALS):
        node.errors["orders", 1] = error
        answer = await produce(v2, {"value": 1, "partition": 1}, {"value": 2, "partition": 0})
        failed, written = answer["offsets"]
        assert (failed["error_code"], failed["partition"], failed["offset"]) == (code, None, None)
        assert failed["error"] == failed["message"]
        assert (written["partition"], written["offset"]) == (0, number)


async def test_async_says_nothing_of_records_but_does_not_hide_a_loss(
    v2: Asker, node: FakeNode
) -> None:
    body = {"records": [{"value": 1, "partition": 0}]}
    answer = await v2.ask("POST", "/topics/orders?async=true", body, content_type=JSON)
    assert (answer.status, answer.text) == (204, "")
    assert len(stored(node)) == 1
    node.errors["orders", 0] = ErrorCode.NOT_ENOUGH_REPLICAS
    answer = await v2.ask("POST", "/topics/orders?async=true", body, content_type=JSON)
    assert answer.error == (503, 50302)


async def test_a_path_with_a_partition_takes_records_for_it_only(v2: Asker, node: FakeNode) -> None:
    body = {"records": [{"value": 1, "key": "k"}]}
    answer = await v2.good("POST", "/topics/orders/partitions/2", body, content_type=JSON)
    assert answer["offsets"][0]["partition"] == 2
    body = {"records": [{"value": 1, "partition": 2}]}
    answer = await v2.ask("POST", "/topics/orders/partitions/2", body, content_type=JSON)
    assert answer.error == (422, 422)


# D03: what JSON means as bytes


MEANINGS = [
    ("null", None),
    ('""', b'""'),
    ('"null"', b'"null"'),
    ("1", b"1"),
    ("1.0", b"1.0"),
    ('{"a": 1}', b'{"a":1}'),
    ("9007199254740993", b"9007199254740993"),
    ("123456789012345678901234567890", b"123456789012345678901234567890"),
    ("0.12345678901234567890", b"0.12345678901234567890"),
    ("-0.0", b"-0.0"),
    ('"\\u0000"', b'"\\u0000"'),
    ('"\\ud83d\\ude00"', '"😀"'.encode()),
]


async def test_json_is_stored_without_a_change_of_its_meaning(v2: Asker, node: FakeNode) -> None:
    for text, data in MEANINGS:
        body = f'{{"records":[{{"key":{text},"value":{text},"partition":0}}]}}'.encode()
        await v2.good("POST", "/topics/orders", body, content_type=JSON)
        last = stored(node)[-1]
        assert (last.key, last.value) == (data, data), text


async def test_an_absent_key_is_no_key(v2: Asker, node: FakeNode) -> None:
    await produce(v2, {"value": 1})
    assert stored(node)[0].key is None


async def test_records_without_keys_are_spread_over_requests(v2: Asker, node: FakeNode) -> None:
    for number in range(20):
        await produce(v2, {"key": None, "value": number})
    assert len(node.logs) == 3


async def test_a_megabyte_of_text_is_a_record(v2: Asker, node: FakeNode) -> None:
    node.max_message_bytes = 2_000_000
    text = "x" * 100_000
    await produce(v2, {"value": text, "partition": 0}, kind=TEXT)
    assert stored(node)[0].value == text.encode()


@pytest.mark.parametrize("number", ["1e400", "-1e400"])
async def test_a_number_that_nothing_holds_is_refused(
    v2: Asker, node: FakeNode, number: str
) -> None:
    body = f'{{"records":[{{"value":{number}}}]}}'.encode()
    answer = await v2.ask("POST", "/topics/orders", body, content_type=JSON)
    assert answer.error == (400, 400)
    assert not node.logs


# D01: wrong bodies and paths


WRONG_BODIES = [
    (b"", 400),
    (b"{", 400),
    (b"\xff\xfe", 400),
    (b"[" * 100_000, 400),
    (b'{"records":[{"value":NaN}]}', 400),
    (b'{"records":[{"value":"\\ud800"}]}', 400),
    (b'{"records":[{"value":null,"value":null}]}', 400),
    (b'{"records":[],"records":[]}', 400),
    (b'{"records":[{"value":null}]} x', 400),
    (b'\xef\xbb\xbf{"records":[{"value":null}]}', 400),
    (b"[]", 422),
    (b"null", 422),
    (b"{}", 422),
    (b'{"records":null}', 422),
    (b'{"records":{}}', 422),
    (b'{"records":[]}', 422),
    (b'{"records":[{"my":1}]}', 422),
    (b'{"records":[{}]}', 422),
    (b'{"records":[1]}', 422),
    (b'{"records":[{"value":null,"partition":"x"}]}', 422),
    (b'{"records":[{"value":null,"partition":-1}]}', 422),
    (b'{"records":[{"value":null,"timestamp":true}]}', 422),
    (b'{"records":[{"value":null,"headers":{"a":"b"}}]}', 422),
    (b'{"records":[{"value":null,"headers":[{"value":"aGk="}]}]}', 422),
    (b'{"records":[{"value":null,"headers":[{"key":"a","value":"%%"}]}]}', 422),
]


@pytest.mark.parametrize("kind", [JSON, BINARY, TEXT])
async def test_a_body_that_is_wrong_is_told_so_and_nothing_is_written(
    v2: Asker, node: FakeNode, kind: str
) -> None:
    for body, status in WRONG_BODIES:
        answer = await v2.ask("POST", "/topics/orders", body, content_type=kind)
        assert answer.error == (status, status), body
        assert "Traceback" not in answer.text
    assert not node.logs


async def test_a_value_that_does_not_fit_the_format_is_named(v2: Asker, node: FakeNode) -> None:
    for kind, value in ((BINARY, "%%"), (BINARY, 1), (TEXT, 1), (TEXT, {})):
        body = {"records": [{"value": None}, {"value": value}]}
        answer = await v2.ask("POST", "/topics/orders", body, content_type=kind)
        assert answer.error == (422, 422)
        assert "record 1: value" in answer.json["message"]
    assert not node.logs


WRONG_PATHS = [
    ("POST", "/topics/none", (404, 40401)),
    ("GET", "/topics/none", (404, 40401)),
    ("GET", "/topics/none/partitions", (404, 40401)),
    ("GET", "/topics/none/partitions/0/offsets", (404, 40401)),
    ("POST", "/topics/orders/partitions/x", (404, 40402)),
    ("GET", "/topics/orders/partitions/x", (404, 40402)),
    ("GET", "/topics/orders/partitions/3", (404, 40402)),
    ("GET", "/topics/orders/partitions/99999999999/offsets", (404, 40402)),
    ("POST", "/topics/orders/partitions/99999999999", (404, 40402)),
    ("PUT", "/topics/orders", (405, 405)),
    ("DELETE", "/topics/orders", (405, 405)),
    ("DELETE", "/topics", (405, 405)),
    ("GET", "/topics/orders/nothing", (404, 404)),
    ("GET", "/consumers", (404, 404)),
]


async def test_a_path_that_leads_nowhere_has_the_code_for_it(v2: Asker) -> None:
    for method, path, error in WRONG_PATHS:
        body = {"records": [{"value": None}]} if method == "POST" else None
        answer = await v2.ask(method, path, body, content_type=JSON)
        assert answer.error == error, path
        assert answer.content_type == V2


async def test_a_partition_in_a_record_that_is_not_there_is_40402(
    v2: Asker, node: FakeNode
) -> None:
    body = {"records": [{"value": 1, "partition": 0}, {"value": 1, "partition": 3}]}
    answer = await v2.ask("POST", "/topics/orders", body, content_type=JSON)
    assert answer.error == (404, 40402)
    assert not node.logs


# D07: media types


TYPES = [
    (JSON.upper(), True),
    (f"{JSON}; charset=utf-8", True),
    ("application/json", True),  # binary, as Confluent has it
    ("application/json; charset=utf-8", True),
    (V2, True),
    ("application/vnd.kafka.json.v1+json", True),
    (None, False),
    ("", False),
    ("text/plain", False),
    ("application/x-www-form-urlencoded", False),
    ("application/vnd.kafka.avro.v2+json", False),
    ("application/vnd.kafka.json.v3+json", False),
    (";;", False),
]


async def test_a_body_is_taken_by_its_type(v2: Asker) -> None:
    body = {"records": [{"value": "aGk="}]}
    for kind, taken in TYPES:
        answer = await v2.ask("POST", "/topics/orders", body, content_type=kind)
        if taken:
            assert answer.status == 200, kind
        else:
            assert answer.error == (415, 415), kind


async def test_two_types_of_one_body_are_refused(http: TestClient[Any, Any]) -> None:
    headers = [("Content-Type", JSON), ("Content-Type", BINARY)]
    async with http.post("/topics/orders", data=b"{}", headers=headers) as answer:
        assert answer.status in (400, 415)
        assert "error_code" in await answer.text() or answer.status == 400


ACCEPTED = [
    (None, V2),
    ("*/*", V2),
    ("application/*", V2),
    ("application/json", "application/json"),
    (f"{V2};q=0.5, application/json", "application/json"),
    (f"{V2}, application/json;q=0.9", V2),
    ("text/html, */*;q=0.1", V2),
    ("", V2),
    (";;;/,", V2),
    ("APPLICATION/VND.KAFKA.V2+JSON; charset=utf-8", V2),
    ("text/html", None),
    (f"{V2};q=0", None),
    ("application/vnd.kafka.avro.v2+json", None),
]


async def test_the_answer_is_of_a_type_that_was_accepted(v2: Asker) -> None:
    for accept, content_type in ACCEPTED:
        answer = await v2.ask("GET", "/topics", accept=accept)
        if content_type is None:
            assert answer.error == (406, 406), accept
        else:
            assert (answer.status, answer.content_type) == (200, content_type), accept


async def test_an_answer_that_cannot_be_said_is_refused_before_anything_is_written(
    v2: Asker, node: FakeNode
) -> None:
    body = {"records": [{"value": 1}]}
    answer = await v2.ask("POST", "/topics/orders", body, content_type=JSON, accept="text/html")
    assert answer.error == (406, 406)
    assert not node.logs


async def test_reading_needs_no_content_type_and_minds_none(v2: Asker) -> None:
    for kind in (None, "text/plain"):
        answer = await v2.ask("GET", "/topics", b"", content_type=kind)
        assert answer.json == ["orders"]


@pytest.mark.parametrize("method", ["HEAD", "OPTIONS"])
async def test_head_and_options_do_not_fail(v2: Asker, method: str) -> None:
    for path in ("/topics", "/topics/orders", "/brokers", "/consumers/g", "/"):
        assert (await v2.ask(method, path)).status < 500
