"""Health, the cluster, and what every request passes."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer

from logboat.metadata.image import NO_LEADER
from logboat.node.http import start_http
from logboat.node.http.admission import Admission
from logboat.node.http.errors import ApiError
from logboat.node.http.server import application
from tests.http.fake_http_node import FakeNode, broker, topic

Http = TestClient[Any, Any]


async def test_healthz_says_that_the_process_answers(http: Http) -> None:
    response = await http.get("/healthz")
    assert (response.status, await response.json()) == (200, {"alive": True})


async def test_readyz_says_why_not(http: Http, node: FakeNode) -> None:
    assert (await http.get("/readyz")).status == 200
    node.reasons = ["no controller is known"]
    response = await http.get("/readyz")
    assert response.status == 503
    assert await response.json() == {"ready": False, "reasons": ["no controller is known"]}


async def test_a_whole_cluster_is_healthy(http: Http) -> None:
    overview = await (await http.get("/api/v1/cluster")).json()
    assert overview["is_healthy"] is True
    assert overview["unhealthy_reasons"] == []
    assert overview["controller_id"] == 1
    assert overview["cluster_id"] == "the-cluster"
    assert [one["id"] for one in overview["nodes"]] == [1, 2, 3]
    assert overview["role"] == "leader"
    assert overview["partition_count"] == 3


async def test_a_hurt_cluster_says_what_hurts(http: Http, node: FakeNode) -> None:
    brokers = {**node.current.brokers, 3: broker(3, fenced=True)}
    node.current = replace(node.current, brokers=brokers)
    node.add(topic("orphans", leaders=[NO_LEADER, 1]))
    overview = await (await http.get("/api/v1/cluster")).json()
    assert overview["is_healthy"] is False
    assert overview["nodes_down"] == [3]
    assert overview["leaderless_partitions"] == ["orphans/0"]
    assert overview["under_replicated_partitions"] == ["orphans/0"]
    assert len(overview["unhealthy_reasons"]) == 3


async def test_an_unknown_path_is_404_in_our_shape(http: Http) -> None:
    response = await http.get("/api/v1/nothing")
    assert response.status == 404
    assert set(await response.json()) == {
        "error_code",
        "message",
        "kafka_error",
        "retriable",
        "hint",
    }


async def test_a_wrong_method_is_405_and_says_what_is_allowed(http: Http) -> None:
    response = await http.put("/api/v1/topics")
    assert response.status == 405
    assert "GET" in response.headers["Allow"]


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8082", "127.0.0.1.evil.example"])
async def test_a_rebound_name_is_refused_on_loopback(http: Http, host: str) -> None:
    response = await http.get("/api/v1/cluster", headers={"Host": host})
    assert response.status == 403


@pytest.mark.parametrize("host", ["localhost:1", "127.0.0.1", "[::1]:8082", "a.localhost"])
async def test_loopback_names_are_served(http: Http, host: str) -> None:
    assert (await http.get("/healthz", headers={"Host": host})).status == 200


async def test_any_host_is_served_when_not_bound_to_loopback(node: FakeNode) -> None:
    server = TestServer(application(node, Random(1), host="0.0.0.0"))
    async with TestClient(server) as client:
        response = await client.get("/healthz", headers={"Host": "broker.example"})
        assert response.status == 200


async def test_a_misspelt_parameter_is_an_error_not_a_default(http: Http) -> None:
    response = await http.get("/api/v1/topics/orders/partitions/0/records?ofset=3")
    assert response.status == 400
    assert "offset" in (await response.json())["hint"]


async def test_our_own_mistake_is_a_plain_500(
    http: Http, node: FakeNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node, "image", lambda: 1 / 0)
    response = await http.get("/api/v1/cluster")
    assert response.status == 500
    assert "internal error" in (await response.json())["message"]


def test_requests_beyond_the_bound_are_refused_at_once() -> None:
    admission = Admission(max_requests=1, max_bytes=100)
    with admission.request():
        with pytest.raises(ApiError) as refused, admission.request():
            pass
        assert refused.value.status == 503
        assert refused.value.retriable
    with admission.request():
        pass


def test_memory_beyond_the_bound_is_refused_but_one_large_request_is_let_in_alone() -> None:
    admission = Admission(max_requests=9, max_bytes=100)
    with (
        admission.memory(60),
        pytest.raises(ApiError, match="busy"),
        admission.memory(60),
    ):
        pass
    with admission.memory(1000):
        pass


async def test_the_server_binds_serves_and_stops(node: FakeNode) -> None:
    from aiohttp import ClientSession

    server = await start_http(node, Random(1), host="127.0.0.1", port=0)
    try:
        async with (
            ClientSession() as session,
            session.get(f"http://127.0.0.1:{server.port}/healthz") as response,
        ):
            assert response.status == 200
        with pytest.raises(OSError, match="in use"):
            await start_http(node, Random(1), host="127.0.0.1", port=server.port)
    finally:
        await server.stop()
