"""RULES F1 under Confluent's paths: large lists are made beside the loop."""

from __future__ import annotations

from typing import Any

from aiohttp.test_utils import TestClient

from tests.http.fake_http_node import FakeNode, topic
from tests.http.test_http_turns import no_long_turn

CLUSTER = "/v3/clusters/the-cluster"


async def test_f1_lists_of_many_things_are_made_beside_the_loop(
    http: TestClient[Any, Any], node: FakeNode
) -> None:
    for number in range(10):
        node.add(topic(f"large-{number}", leaders=[1] * 2_000))
    paths = [
        f"{CLUSTER}/topics",
        f"{CLUSTER}/topics/large-3/partitions",
        f"{CLUSTER}/brokers/1/partition-replicas",
        f"{CLUSTER}/topics/-/partitions/-/reassignment",
        "/topics",
        "/topics/large-3",
        "/topics/large-3/partitions",
    ]

    async def ask() -> None:
        for path in paths:
            response = await http.get(path, headers={"Connection": "close"})
            assert response.status == 200, path
            await response.read()

    await no_long_turn(ask)
