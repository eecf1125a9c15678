"""Records in and out over HTTP."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from aiohttp.test_utils import TestClient

from logboat.metadata.image import NO_LEADER
from logboat.node.http.encodings import Encoding, from_bytes, to_bytes
from logboat.node.http.errors import ApiError
from logboat.wire import ErrorCode
from logboat.wire.records import ControlType, Record, encode_batch, encode_control_batch
from tests.http.fake_http_node import NOW_MS, FakeNode, topic

Http = TestClient[Any, Any]
ORDERS = "/api/v1/topics/orders/records"


def reads(partition: int, query: str = "") -> str:
    return f"/api/v1/topics/orders/partitions/{partition}/records{query}"


async def produce(http: Http, *records: dict[str, Any], query: str = "") -> list[dict[str, Any]]:
    response = await http.post(ORDERS + query, json={"records": records})
    assert response.status == 200, await response.text()
    answers: list[dict[str, Any]] = (await response.json())["records"]
    return answers


async def test_what_is_produced_is_read_back(http: Http) -> None:
    headers = [{"key": "h", "value": "1"}, {"key": "h", "value": None}]
    answers = await produce(
        http,
        {"key": "k", "value": "first", "partition": 1, "headers": headers, "timestamp": 5},
        {"value": None, "partition": 1},
    )
    assert answers == [
        {"outcome": "applied", "partition": 1, "offset": 0, "timestamp": 5},
        {"outcome": "applied", "partition": 1, "offset": 1, "timestamp": NOW_MS},
    ]
    document = await (await http.get(reads(1))).json()
    assert document["high_watermark"] == 2
    assert document["next_offset"] == 2
    assert document["leader"] == 2
    assert document["records"] == [
        {
            "offset": 0,
            "timestamp": 5,
            "timestamp_type": "create_time",
            "key": "k",
            "value": "first",
            "headers": headers,
        },
        {
            "offset": 1,
            "timestamp": NOW_MS,
            "timestamp_type": "create_time",
            "key": None,
            "value": None,
            "headers": [],
        },
    ]


async def test_each_record_has_its_verdict_in_the_order_of_the_request(
    http: Http, node: FakeNode
) -> None:
    records = [{"value": str(n), "partition": n % 3} for n in range(7)]
    answers = await produce(http, *records)
    assert [(a["partition"], a["offset"]) for a in answers] == [
        (0, 0),
        (1, 0),
        (2, 0),
        (0, 1),
        (1, 1),
        (2, 1),
        (0, 2),
    ]
    # Each leader is asked once whether it leads, and sent one request, whatever the number of
    # records; later requests need not ask.
    assert sorted(node.asked) == [1, 1, 2, 2, 3, 3]
    node.asked.clear()
    await produce(http, *records)
    assert sorted(node.asked) == [1, 2, 3]


async def test_a_key_chooses_its_partition(http: Http) -> None:
    first, second = await produce(http, {"key": "a", "value": "1"}, {"key": "a", "value": "2"})
    assert first["partition"] == second["partition"]


async def test_json_values_come_back_as_json(http: Http) -> None:
    await produce(http, {"value": {"id": [1, None]}, "partition": 0}, query="?value_encoding=json")
    document = await (await http.get(reads(0, "?format=json"))).json()
    assert document["records"][0]["value"] == {"id": [1, None]}
    assert (await (await http.get(reads(0))).json())["records"][0]["value"] == '{"id":[1,null]}'


async def test_the_body_can_name_the_encodings(http: Http) -> None:
    body = {"value_encoding": "base64", "records": [{"value": "/wA=", "partition": 0}]}
    assert (await http.post(ORDERS, json=body)).status == 200
    record = (await (await http.get(reads(0))).json())["records"][0]
    # Not UTF-8: it comes out as it can be said, and says so.
    assert (record["value"], record["value_encoding"]) == ("/wA=", "base64")


async def test_lines_in_and_lines_out(http: Http) -> None:
    lines = b'{"value":"a","partition":0}\n\n{"value":"b","partition":0}\n'
    headers = {"Content-Type": "application/x-ndjson", "Accept": "application/x-ndjson"}
    response = await http.post(ORDERS, data=lines, headers=headers)
    answers = [json.loads(line) for line in (await response.text()).splitlines()]
    assert [answer["offset"] for answer in answers] == [0, 1]
    response = await http.get(reads(0), headers={"Accept": "application/x-ndjson"})
    read = [json.loads(line) for line in (await response.text()).splitlines()]
    assert [record["value"] for record in read] == ["a", "b"]
    assert response.headers["X-Logboat-Next-Offset"] == "2"


@pytest.mark.parametrize(
    ("query", "offsets"),
    [("", [0, 1, 2, 3]), ("?offset=2", [2, 3]), ("?tail=1", [3]), ("?tail=99", [0, 1, 2, 3])],
)
async def test_reading_starts_where_it_is_told(http: Http, query: str, offsets: list[int]) -> None:
    await produce(http, *({"value": str(n), "partition": 0} for n in range(4)))
    document = await (await http.get(reads(0, query))).json()
    assert [record["offset"] for record in document["records"]] == offsets
    assert document["next_offset"] == 4


async def test_a_timestamp_younger_than_all_records_starts_at_the_end(http: Http) -> None:
    await produce(http, {"value": "old", "partition": 0})
    document = await (await http.get(reads(0, "?timestamp=9999999999999"))).json()
    assert document["records"] == []
    assert document["next_offset"] == 1


async def test_control_batches_are_passed_over(http: Http, node: FakeNode) -> None:
    node.append("orders", 0, encode_control_batch(ControlType.COMMIT, b"", timestamp=1))
    document = await (await http.get(reads(0, "?offset=0"))).json()
    assert document["records"] == []
    assert document["next_offset"] == 1
    node.append("orders", 0, encode_batch([Record(value=b"v", timestamp=1)]))
    document = await (await http.get(reads(0, "?offset=0"))).json()
    assert [record["offset"] for record in document["records"]] == [1]


async def test_an_offset_beyond_the_end_is_416(http: Http) -> None:
    response = await http.get(reads(0, "?offset=10"))
    assert response.status == 416
    assert (await response.json())["kafka_error"] == "OFFSET_OUT_OF_RANGE"


@pytest.mark.parametrize(
    "query", ["?offset=-1", "?offset=x", "?tail=1&offset=2", "?wait=soon", "?format=xml"]
)
async def test_bad_parameters_are_400(http: Http, query: str) -> None:
    assert (await http.get(reads(0, query))).status == 400


@pytest.mark.parametrize("partition", ["3", "99999999999", "one"])
async def test_an_unknown_partition_is_404(http: Http, partition: str) -> None:
    response = await http.get(f"/api/v1/topics/orders/partitions/{partition}/records")
    assert response.status == 404


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 422),
        ({"records": []}, 422),
        ({"records": {}}, 422),
        ([], 422),
        ({"records": ["x"]}, 422),
        ({"records": [{"key": "k"}]}, 422),
        ({"records": [{"value": "v", "valu": 1}]}, 422),
        ({"records": [{"value": 1}]}, 422),
        ({"records": [{"value": "v", "partition": -1}]}, 422),
        ({"records": [{"value": "v", "partition": 3}]}, 404),
        ({"records": [{"value": "v", "timestamp": "now"}]}, 422),
        ({"records": [{"value": "v", "headers": {"a": "b"}}]}, 422),
        ({"records": [{"value": "v", "headers": [{"value": "b"}]}]}, 422),
        ({"records": [{"value": "v"}], "value_encoding": "xml"}, 422),
        ({"records": [{"value": "?"}], "value_encoding": "base64"}, 422),
        ({"record": []}, 422),
    ],
)
async def test_bad_bodies_are_refused_and_nothing_is_written(
    http: Http, node: FakeNode, body: Any, status: int
) -> None:
    response = await http.post(ORDERS, json=body)
    assert response.status == status, await response.text()
    assert node.asked == []


async def test_a_body_above_the_limit_is_413(http: Http) -> None:
    response = await http.post(ORDERS, json={"records": [{"value": "x" * 300_000}]})
    assert response.status == 413


async def test_a_wrong_content_type_is_415(http: Http) -> None:
    for headers in ({"Content-Type": "text/plain"}, {"Content-Type": "application/octet-stream"}):
        response = await http.post(ORDERS, data=b"{}", headers=headers)
        assert response.status == 415


async def test_acks_takes_all_or_1(http: Http) -> None:
    assert (await http.post(ORDERS + "?acks=0", json={"records": [{"value": "v"}]})).status == 400


async def test_an_unknown_topic_is_404(http: Http) -> None:
    response = await http.post("/api/v1/topics/no/records", json={"records": [{"value": "v"}]})
    assert response.status == 404


async def test_some_written_and_some_not_is_207(http: Http, node: FakeNode) -> None:
    node.errors["orders", 1] = ErrorCode.NOT_ENOUGH_REPLICAS
    records = [{"value": "v", "partition": 0}, {"value": "v", "partition": 1}]
    response = await http.post(ORDERS, json={"records": records})
    assert response.status == 207
    document = await response.json()
    assert document["records"][0]["offset"] == 0
    assert document["records"][1]["kafka_error"] == "NOT_ENOUGH_REPLICAS"
    assert document["records"][1]["retriable"] is True
    assert document["records"][1]["outcome"] == "failed"


@pytest.mark.parametrize(
    ("error", "status", "unknown"),
    [
        (ErrorCode.NOT_ENOUGH_REPLICAS, 503, False),
        (ErrorCode.REQUEST_TIMED_OUT, 504, True),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, 503, True),
        (ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, 503, True),
        (ErrorCode.MESSAGE_TOO_LARGE, 413, False),
        (ErrorCode.KAFKA_STORAGE_ERROR, 500, False),
    ],
)
async def test_did_not_happen_and_may_have_happened_are_told_apart(
    http: Http, node: FakeNode, error: ErrorCode, status: int, unknown: bool
) -> None:
    node.errors["orders", 0] = error
    response = await http.post(ORDERS, json={"records": [{"value": "v", "partition": 0}]})
    assert response.status == status
    document = await response.json()
    assert document["kafka_error"] == error.name
    assert document["retriable"] is error.retriable
    assert (document.get("outcome") == "unknown") is unknown


async def test_an_unreachable_leader_did_not_write(http: Http, node: FakeNode) -> None:
    node.unreachable.add(2)
    response = await http.post(ORDERS, json={"records": [{"value": "v", "partition": 1}]})
    assert response.status == 503
    assert "outcome" not in await response.json()
    assert (await http.get(reads(1))).status == 503


async def test_a_silent_leader_may_have_written(http: Http, node: FakeNode) -> None:
    await produce(http, {"value": "v", "partition": 1})
    node.silent.add(2)
    response = await http.post(ORDERS, json={"records": [{"value": "v", "partition": 1}]})
    assert response.status == 504
    assert (await response.json())["outcome"] == "unknown"
    response = await http.get(reads(1))
    assert response.status == 504
    assert "outcome" not in await response.json()


async def test_nothing_is_written_to_a_leader_that_does_not_know_it_leads(
    http: Http, node: FakeNode
) -> None:
    node.slow_to_lead["orders", 0] = 2
    assert (await produce(http, {"value": "v", "partition": 0}))[0]["offset"] == 0
    assert node.ends["orders", 0] == 1
    node.slow_to_lead["orders", 1] = 10_000
    response = await http.post(ORDERS, json={"records": [{"value": "v", "partition": 1}]})
    assert response.status == 503
    document = await response.json()
    assert document["kafka_error"] == "NOT_LEADER_OR_FOLLOWER"
    assert "outcome" not in document
    assert ("orders", 1) not in node.ends


async def test_a_new_leader_is_asked_anew(http: Http, node: FakeNode) -> None:
    await produce(http, {"value": "v", "partition": 0})
    node.add(topic("orders", leaders=[3, 2, 3], leader_epoch=1))
    node.asked.clear()
    await produce(http, {"value": "v", "partition": 0})
    assert node.asked == [3, 3]


@pytest.mark.usefixtures("patient")
async def test_a_batch_that_was_not_sent_waits_for_the_next_leader(
    http: Http, node: FakeNode
) -> None:
    await produce(http, {"value": "v", "partition": 0})
    node.unreachable.add(1)
    asyncio.get_running_loop().call_later(
        0.1, node.add, topic("orders", leaders=[2, 2, 3], leader_epoch=1)
    )
    assert (await produce(http, {"value": "w", "partition": 0}))[0]["offset"] == 1
    document = await (await http.get(reads(0))).json()
    assert document["leader"] == 2


@pytest.mark.usefixtures("patient")
async def test_a_read_waits_for_the_next_leader(http: Http, node: FakeNode) -> None:
    await produce(http, {"value": "v", "partition": 0})
    node.add(topic("orders", leaders=[NO_LEADER, 2, 3]))
    asyncio.get_running_loop().call_later(0.1, node.add, topic("orders"))
    assert len((await (await http.get(reads(0))).json())["records"]) == 1


async def test_a_partition_without_a_leader_is_503(http: Http, node: FakeNode) -> None:
    node.add(topic("orders", leaders=[NO_LEADER]))
    response = await http.post(ORDERS, json={"records": [{"value": "v", "partition": 0}]})
    assert response.status == 503
    assert (await response.json())["kafka_error"] == "LEADER_NOT_AVAILABLE"
    assert (await http.get(reads(0))).status == 503


async def test_a_large_body_is_parsed_beside_the_loop_all_the_same(http: Http) -> None:
    records = [{"value": "x" * 100, "partition": 0} for _ in range(700)]
    answers = await produce(http, *records)
    assert [answer["offset"] for answer in answers] == list(range(700))
    document = await (await http.get(reads(0))).json()
    assert len(document["records"]) == 700


async def test_a_batch_of_nonsense_is_said_to_be_one(http: Http, node: FakeNode) -> None:
    batch = encode_batch([Record(value=b"value", timestamp=1)])
    batch[-8:] = b"\xff" * 8
    node.append("orders", 0, batch)
    response = await http.get(reads(0))
    assert response.status == 500
    assert "cannot be decoded" in (await response.json())["message"]


@pytest.mark.parametrize("encoding", list(Encoding))
@pytest.mark.parametrize("data", [b"", b"text", b"\xff", b'{"a":1}', "ä".encode(), b"nan"])
def test_bytes_survive_the_way_out_and_in_again(encoding: Encoding, data: bytes) -> None:
    value, really = from_bytes(data, encoding)
    again = to_bytes(value, really, record=0, field="value")
    assert again == data


def test_a_lone_surrogate_cannot_be_stored() -> None:
    from logboat.node.http.records_in import LineParser, RecordEncodings

    with pytest.raises(ApiError):
        LineParser(RecordEncodings()).parse(b'{"value":"\\ud800"}', 1, NOW_MS)
