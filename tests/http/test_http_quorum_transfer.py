"""POST /api/v1/quorum:transfer-leadership, through any node."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from aiohttp.test_utils import TestClient

from logboat.testing import LocalCluster
from tests.http.fake_http_node import FakeNode

Http = TestClient[Any, Any]
PATH = "/api/v1/quorum:transfer-leadership"


async def test_a_leader_hands_over_and_says_who_leads(http: Http) -> None:
    response = await http.post(PATH, json={"to": 2})
    assert await response.json() == {"leader_id": 2, "leader_epoch": 4, "changed": True}


async def test_whoever_leads_already_has_nothing_to_do(http: Http) -> None:
    response = await http.post(PATH, json={"to": 1})
    assert await response.json() == {"leader_id": 1, "leader_epoch": 4, "changed": False}


async def test_a_transfer_that_fails_may_be_tried_again(http: Http) -> None:
    response = await http.post(PATH, json={"to": 3})
    assert response.status == 409
    document = await response.json()
    assert document["retriable"]
    assert document["message"] == "node 3 did not take over in time"


@pytest.mark.parametrize("body", [{}, {"to": "2"}, {"to": True}, {"to": 4}, {"to": 2, "by": 1}])
async def test_only_a_voter_can_lead(http: Http, body: Any) -> None:
    assert (await http.post(PATH, json=body)).status == 422


async def test_another_node_asks_the_leader(http: Http, node: FakeNode) -> None:
    node.quorum = replace(node.quorum, leader_id=2)
    assert (await http.post(PATH, json={"to": 1})).status == 503, "which cannot be reached"
    node.other_answers["quorum"] = node.answers["quorum"]
    response = await http.post(PATH, json={"to": 1})
    assert await response.json() == {"leader_id": 1, "leader_epoch": 4, "changed": True}
    assert (await http.post(PATH, json={"to": 3})).status == 409
    node.quorum = replace(node.quorum, leader_id=None)
    assert (await http.post(PATH, json={"to": 1})).status == 503


PATIENT = {
    # No busy machine has a broker fenced or a voter stand for election by itself.
    "broker.heartbeat.interval.ms": 2_000,
    "broker.session.timeout.ms": 30_000,
    "controller.quorum.election.timeout.ms": 1_000,
    "replica.lag.time.max.ms": 60_000,
}


def hand_over(cluster: LocalCluster, to: int, asked: int) -> None:
    """Tried again when it took longer than an election timeout: nothing has changed then."""

    def why_not() -> str | None:
        answer = cluster.post(PATH, {"to": to}, node_id=asked)
        if answer is None or answer.status != 200:
            assert answer is None or answer.status in (409, 503, 504), answer
            return f"answered {answer}"
        overview = cluster.get("/api/v1/cluster", node_id=asked)
        return None if overview and overview.body["controller_id"] == to else f"{overview}"

    cluster.wait_until(why_not, f"node {to} leads and is the controller", 60)


def create(cluster: LocalCluster, name: str, asked: int) -> None:
    def why_not() -> str | None:
        answer = cluster.post("/api/v1/topics", {"name": name}, node_id=asked)
        # An answer may be lost with the controller that made it.
        return None if answer and answer.status in (201, 409) else f"answered {answer}"

    cluster.wait_until(why_not, f"{name} is created", 60)


def replicas(cluster: LocalCluster) -> list[tuple[int, list[int]]]:
    topic = cluster.get("/api/v1/topics/orders")
    assert topic is not None
    return [(one["leader"], one["isr"]) for one in topic.body["partitions"]]


@pytest.mark.processes
def test_the_controller_moves_and_partitions_stay_where_they_are() -> None:
    # Node 4 is an observer.
    with LocalCluster(nodes=4, voters=3, settings=PATIENT) as cluster:
        create(cluster, "orders", 1)
        before = replicas(cluster)
        for number, to in enumerate((2, 3, 1, 2)):
            hand_over(cluster, to, asked=4 if number % 2 else to)
            create(cluster, f"created-under-{number}", 4)
        assert replicas(cluster) == before
