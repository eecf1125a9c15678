"""Settings, more partitions, and trimming over /api/v1."""

from __future__ import annotations

from typing import Any

import pytest
from aiohttp.test_utils import TestClient

from logboat.wire import ErrorCode
from tests.http.changing_node import ChangingNode
from tests.http.fake_http_node import topic

Http = TestClient[Any, Any]
ORDERS = "/api/v1/topics/orders"


@pytest.fixture
def node() -> ChangingNode:
    changing = ChangingNode()
    changing.add(topic("orders"))
    return changing


async def test_settings_are_set_unset_and_shown_with_where_they_come_from(http: Http) -> None:
    wanted = {"set": {"retention.ms": 60_000, "cleanup.policy": "compact"}}
    response = await http.patch(ORDERS + "/configs", json=wanted)
    assert response.status == 200
    shown = {one["name"]: one for one in (await response.json())["configs"]}
    assert shown["retention.ms"]["value"] == "60000"
    assert shown["retention.ms"]["source"] == "DYNAMIC_TOPIC_CONFIG"
    again = await http.patch(
        ORDERS + "/configs", json={"unset": ["retention.ms"], "set": {"flush.ms": "1"}}
    )
    assert again.status == 200
    names = [one["name"] for one in (await (await http.get(ORDERS + "/configs")).json())["configs"]]
    assert "retention.ms" not in names
    assert "flush.ms" in names


async def test_a_setting_that_is_refused_says_why_and_none_is_changed(
    http: Http, node: ChangingNode
) -> None:
    wanted = {"set": {"retention.ms": 1, "nonsense": 2}}
    response = await http.patch(ORDERS + "/configs", json=wanted)
    assert response.status == 422
    document = await response.json()
    assert document["kafka_error"] == "INVALID_CONFIG"
    assert "nonsense" in document["message"]
    assert node.settings == {}


async def test_settings_can_be_tried_without_being_set(http: Http, node: ChangingNode) -> None:
    wanted = {"set": {"retention.ms": 1}, "validate_only": True}
    assert (await http.patch(ORDERS + "/configs", json=wanted)).status == 200
    assert node.settings == {}


async def test_partitions_are_added_and_never_taken_away(http: Http) -> None:
    response = await http.post(ORDERS + "/partitions", json={"count": 5})
    assert response.status == 200
    assert (await response.json())["partition_count"] == 5
    refused = await http.post(ORDERS + "/partitions", json={"count": 4})
    assert refused.status == 422
    assert (await refused.json())["kafka_error"] == "INVALID_PARTITIONS"


async def test_the_partitions_leader_trims_before_an_offset_or_everything(
    http: Http, node: ChangingNode
) -> None:
    path = ORDERS + "/partitions/1/records:delete"
    response = await http.post(path, json={"before_offset": 7})
    assert response.status == 200
    assert await response.json() == {"topic": "orders", "partition": 1, "log_start_offset": 7}
    assert (await http.post(path, json={})).status == 200
    assert node.trimmed == [(2, 1, 7), (2, 1, -1)]


async def test_trimming_beyond_the_end_is_416(http: Http, node: ChangingNode) -> None:
    node.trim_error = ErrorCode.OFFSET_OUT_OF_RANGE
    response = await http.post(ORDERS + "/partitions/0/records:delete", json={"before_offset": 9})
    assert response.status == 416


async def test_trimming_without_an_answer_may_have_happened(http: Http, node: ChangingNode) -> None:
    path = ORDERS + "/partitions/0/records:delete"
    node.trim_is_lost = True
    response = await http.post(path, json={})
    assert response.status == 504
    assert (await response.json())["outcome"] == "unknown"
    node.trim_is_lost, node.trim_error = False, ErrorCode.REQUEST_TIMED_OUT
    assert (await (await http.post(path, json={})).json())["outcome"] == "unknown"


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("PATCH", "/configs", {}, 422),
        ("PATCH", "/configs", {"set": []}, 422),
        ("PATCH", "/configs", {"set": {"a": {}}}, 422),
        ("PATCH", "/configs", {"unset": "retention.ms"}, 422),
        ("PATCH", "/configs", {"set": {"a": 1}, "validate_only": 1}, 422),
        ("PATCH", "/configs", {"change": 1}, 422),
        ("POST", "/partitions", {}, 422),
        ("POST", "/partitions", {"count": 0}, 422),
        ("POST", "/partitions", {"count": True}, 422),
        ("POST", "/partitions/0/records:delete", {"before_offset": -1}, 422),
        ("POST", "/partitions/9/records:delete", {}, 404),
    ],
)
async def test_what_makes_no_sense_changes_nothing(
    http: Http, node: ChangingNode, method: str, path: str, body: Any, status: int
) -> None:
    response = await http.request(method, ORDERS + path, json=body)
    assert response.status == status
    assert (await response.json())["message"]
    assert (node.settings, node.trimmed) == ({}, [])


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/configs"), ("PATCH", "/configs"), ("POST", "/partitions")],
)
async def test_a_topic_that_is_not_there_is_404(http: Http, method: str, path: str) -> None:
    body = {"PATCH": {"set": {"a": 1}}, "POST": {"count": 3}}.get(method)
    response = await http.request(method, "/api/v1/topics/none" + path, json=body)
    assert response.status == 404
