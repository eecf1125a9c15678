"""Topics over HTTP: list, create, describe, delete."""

from __future__ import annotations

from typing import Any

import pytest
from aiohttp.test_utils import TestClient

from tests.http.fake_http_node import FakeNode

Http = TestClient[Any, Any]


async def test_topics_are_listed_by_name(http: Http) -> None:
    await http.post("/api/v1/topics", json={"name": "a"})
    listed = await (await http.get("/api/v1/topics")).json()
    assert [one["name"] for one in listed["topics"]] == ["a", "orders"]
    assert listed["topics"][1]["replication_factor"] == 3


async def test_a_topic_is_described_with_its_partitions(http: Http) -> None:
    document = await (await http.get("/api/v1/topics/orders")).json()
    assert [p["leader"] for p in document["partitions"]] == [1, 2, 3]
    assert document["partitions"][0]["isr"] == [1, 2, 3]
    assert document["partitions"][0]["local"] == {
        "role": "leader",
        "high_watermark": 0,
        "log_start_offset": 0,
        "log_end_offset": 0,
    }
    assert document["partitions"][1]["local"] is None


async def test_create_answers_201_with_the_topic(http: Http, node: FakeNode) -> None:
    body = {"name": "new", "partitions": 2, "configs": {"retention.ms": 1000, "x": True}}
    response = await http.post("/api/v1/topics", json=body)
    assert response.status == 201
    assert response.headers["Location"] == "/api/v1/topics/new"
    assert (await response.json())["partition_count"] == 2
    assert "new" in node.current.topics


async def test_validate_only_creates_nothing(http: Http, node: FakeNode) -> None:
    response = await http.post("/api/v1/topics", json={"name": "new", "validate_only": True})
    assert response.status == 200
    assert "new" not in node.current.topics


async def test_an_existing_topic_is_a_conflict(http: Http) -> None:
    response = await http.post("/api/v1/topics", json={"name": "orders"})
    assert response.status == 409
    document = await response.json()
    assert document["kafka_error"] == "TOPIC_ALREADY_EXISTS"
    assert document["retriable"] is False


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 422),
        ({"name": 1}, 422),
        ({"name": "t", "partitions": 0}, 422),
        ({"name": "t", "partitions": True}, 422),
        ({"name": "t", "replication_factor": 40_000}, 422),
        ({"name": "t", "configs": []}, 201),
        ({"name": "t", "configs": ["a"]}, 422),
        ({"name": "t", "configs": {"a": {}}}, 422),
        ({"name": "t", "partition": 3}, 422),
        ([], 400),
    ],
)
async def test_bodies_are_checked(http: Http, body: Any, status: int) -> None:
    assert (await http.post("/api/v1/topics", json=body)).status == status


async def test_a_body_that_is_no_json_is_400(http: Http) -> None:
    response = await http.post(
        "/api/v1/topics", data=b"{", headers={"Content-Type": "application/json"}
    )
    assert response.status == 400


async def test_another_content_type_is_415(http: Http) -> None:
    response = await http.post(
        "/api/v1/topics", data=b'{"name":"t"}', headers={"Content-Type": "text/plain"}
    )
    assert response.status == 415


async def test_delete_is_204_and_then_404(http: Http) -> None:
    assert (await http.delete("/api/v1/topics/orders")).status == 204
    response = await http.delete("/api/v1/topics/orders")
    assert response.status == 404
    document = await response.json()
    assert document["error_code"] == 40403
    assert document["message"] == "there is no topic 'orders'"


async def test_an_unknown_topic_is_404(http: Http) -> None:
    response = await http.get("/api/v1/topics/nothing")
    assert response.status == 404
    assert (await response.json())["kafka_error"] == "UNKNOWN_TOPIC_OR_PARTITION"


async def test_without_a_controller_a_retry_may_help(http: Http, node: FakeNode) -> None:
    node.unreachable.add(0)
    response = await http.post("/api/v1/topics", json={"name": "t"})
    assert response.status == 503
    document = await response.json()
    assert document["retriable"] is True
    assert "outcome" not in document


async def test_a_lost_answer_is_said_to_be_unknown(http: Http, node: FakeNode) -> None:
    node.silent.add(0)
    response = await http.delete("/api/v1/topics/orders")
    assert response.status == 504
    assert (await response.json())["outcome"] == "unknown"
