"""Cases D01, D03 and D07 for /api/v1: broken bodies, nulls and numbers, media types."""

from __future__ import annotations

import json
from typing import Any

import pytest
from aiohttp.test_utils import TestClient

from tests.http.fake_http_node import FakeNode

Http = TestClient[Any, Any]
ORDERS = "/api/v1/topics/orders/records"
JSON = {"Content-Type": "application/json"}

BROKEN = [
    (b"", 400),
    (b"{", 400),
    (b"[]", 422),
    (b"null", 422),
    (b"{}", 422),
    (b'{"records":null}', 422),
    (b'{"records":[]}', 422),
    (b'{"records":[{"my":1}]}', 422),
    (b'{"records":[1]}', 422),
    (b"\xff\xfe", 400),
    (b"[" * 100_000, 400),
    (b'{"records":[{"value":NaN}]}', 400),
    (b'{"records":[{"value":"a","value":"b"}]}', 400),
    (b'{"records":[{"value":"a"}],"records":[{"value":"b"}]}', 400),
    (b'{"records":[{"value":"a"}]} x', 400),
    (b'\xef\xbb\xbf{"records":[{"value":"a"}]}', 400),
    (b'{"records":[{"value":"\\ud800"}]}', 400),
]


@pytest.mark.parametrize(("body", "status"), BROKEN)
async def test_d01_a_broken_body_is_refused_in_words_and_nothing_is_produced(
    http: Http, node: FakeNode, body: bytes, status: int
) -> None:
    response = await http.post(ORDERS, data=body, headers=JSON)
    assert response.status == status
    document = await response.json()
    assert document["error_code"] == status
    assert document["message"]
    assert "Traceback" not in document["message"]
    assert node.asked == []
    assert (await http.get("/healthz")).status == 200


@pytest.mark.parametrize(("body", "status"), [case for case in BROKEN if case[0]])
async def test_d01_a_broken_line_has_its_verdict_and_the_others_theirs(
    http: Http, node: FakeNode, body: bytes, status: int
) -> None:
    lines = b'{"value":"before"}\n' + body + b'\n{"value":"after"}\n'
    headers = {"Content-Type": "application/x-ndjson"}
    response = await http.post(ORDERS, data=lines, headers=headers)
    verdicts = [json.loads(line) for line in (await response.read()).splitlines()]
    assert [verdict["outcome"] for verdict in verdicts] == ["applied", "failed", "applied"]
    assert verdicts[1]["error_code"] in (400, 422)
    assert sum(node.ends.values()) == 2


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/api/v1/nothing", 404, 404),
        ("DELETE", "/api/v1/nothing/at/all", 404, 404),
        ("PUT", ORDERS, 405, 405),
        ("GET", "/api/v1/topics/none/partitions/0/records", 404, 40403),
        ("GET", "/api/v1/topics/orders/partitions/x/records", 404, 40402),
        ("GET", "/api/v1/topics/orders/partitions/99999999999/records", 404, 40402),
        ("GET", "/api/v1/topics/none/tail", 404, 40403),
    ],
)
async def test_d01_what_is_not_there_is_said_in_json(
    http: Http, method: str, path: str, status: int, code: int
) -> None:
    response = await http.request(method, path)
    assert response.status == status
    document = await response.json()
    assert document["error_code"] == code
    assert document["message"]


async def read_back(http: Http, query: str) -> list[dict[str, Any]]:
    path = "/api/v1/topics/orders/partitions/0/records"
    document = await (await http.get(path + query)).json()
    records: list[dict[str, Any]] = document["records"]
    return records


async def test_d03_null_empty_and_the_word_null_are_three_things(http: Http) -> None:
    keys: list[Any] = [None, "", "null", 1, 1.0, {"a": 1}]
    records = [{"key": key, "value": "v", "partition": 0} for key in keys]
    records += [{"value": "v", "partition": 0}, {"key": "k", "value": None, "partition": 0}]
    query = "?key_encoding=json&value_encoding=json"
    assert (await http.post(ORDERS + query, json={"records": records})).status == 200
    stored = await read_back(http, "?key_encoding=string&value_encoding=string")
    assert [record["key"] for record in stored] == [
        None,
        '""',
        '"null"',
        "1",
        "1.0",
        '{"a":1}',
        None,
        '"k"',
    ]
    assert [record["value"] for record in stored] == ['"v"'] * 7 + [None]


@pytest.mark.parametrize(
    "number", ["9007199254740993", "-0.0", "0.10", "1e300", "12345678901234567890123", "-0"]
)
@pytest.mark.parametrize("as_lines", [False, True])
async def test_d03_numbers_keep_their_digits(http: Http, number: str, as_lines: bool) -> None:
    record = f'{{"value":{{"n":[{number}]}},"partition":0}}'
    if as_lines:
        body, media_type = record, "application/x-ndjson"
    else:
        body, media_type = f'{{"records":[{record}]}}', "application/json"
    response = await http.post(
        ORDERS + "?value_encoding=json", data=body, headers={"Content-Type": media_type}
    )
    assert response.status == 200
    assert "applied" in await response.text()
    (stored,) = await read_back(http, "?value_encoding=string")
    assert stored["value"] == f'{{"n":[{number}]}}'
    path = "/api/v1/topics/orders/partitions/0/records?format=json"
    assert f'"value":{{"n":[{number}]}}' in await (await http.get(path)).text()


@pytest.mark.parametrize("value", ["1e400", '"\\ud800"', '{"a":1,"a":2}', "Infinity"])
async def test_d03_what_json_cannot_keep_is_refused(http: Http, node: FakeNode, value: str) -> None:
    body = f'{{"records":[{{"value":{value},"partition":0}}]}}'
    response = await http.post(ORDERS + "?value_encoding=json", data=body, headers=JSON)
    assert 400 <= response.status < 500
    assert node.asked == []


@pytest.mark.parametrize("value", ["\x00", "🪵", "ä" * 1000, ' "quoted" \\ '])
async def test_d03_texts_come_back_as_they_went_in(http: Http, value: str) -> None:
    body = {"records": [{"key": value, "value": value, "partition": 0}]}
    assert (await http.post(ORDERS, json=body)).status == 200
    (stored,) = await read_back(http, "")
    assert (stored["key"], stored["value"]) == (value, value)


@pytest.mark.parametrize(
    ("content_type", "status"),
    [
        ("application/json", 200),
        ("application/json; charset=utf-8", 200),
        ("APPLICATION/JSON", 200),
        ("", 415),
        ("text/plain", 415),
        ("application/vnd.kafka.json.v2+json", 415),
    ],
)
async def test_d07_media_types_compare_without_case_and_parameters(
    http: Http, content_type: str, status: int
) -> None:
    body = b'{"records":[{"value":"v"}]}'
    response = await http.post(ORDERS, data=body, headers={"Content-Type": content_type})
    assert response.status == status
    assert response.content_type == "application/json"


@pytest.mark.parametrize(
    ("accept", "status"),
    [
        ("*/*", 200),
        ("application/*", 200),
        ("application/json;q=0.5, text/html", 200),
        ("text/html", 406),
        ("application/json;q=0", 406),
        ("nonsense", 200),
        ("text/html, */*;q=0.1", 200),
    ],
)
async def test_d07_an_answer_is_in_a_form_that_was_asked_for(
    http: Http, node: FakeNode, accept: str, status: int
) -> None:
    body = {"records": [{"value": "v"}]}
    response = await http.post(ORDERS, json=body, headers={"Accept": accept})
    assert response.status == status
    assert response.content_type == "application/json"
    assert bool(node.ends) is (status == 200)


async def test_d07_a_get_needs_no_content_type_and_head_is_served(http: Http) -> None:
    assert (await http.get("/api/v1/topics", headers=JSON)).status == 200
    head = await http.head("/api/v1/topics")
    assert head.status == 200
    assert await head.read() == b""
    assert (await http.options("/api/v1/topics")).status == 405


async def test_other_peoples_pages_are_not_let_in(http: Http) -> None:
    """CORS is off: neither a simple request nor a preflight gets leave."""
    origin = {"Origin": "https://evil.example"}
    for response in (
        await http.get("/api/v1/topics", headers=origin),
        await http.options(ORDERS, headers={**origin, "Access-Control-Request-Method": "POST"}),
    ):
        assert not [name for name in response.headers if name.startswith("Access-Control")]
