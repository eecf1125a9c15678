"""Faults over HTTP: only where they are wanted, and gone by themselves."""

from __future__ import annotations

import time
from typing import Any

import pytest
from aiohttp.test_utils import TestClient

from logboat.testing import LocalCluster
from tests.http.fake_http_node import FakeNode
from tests.seam.injected import new_switches

Http = TestClient[Any, Any]
FAULTS = "/api/v1/faults"
NOTHING = {"cut": [], "delays_ms": {}, "losses": {}, "disk_full": False, "clock_offset_ms": 0}


async def test_a_node_without_faults_takes_none(http: Http) -> None:
    for response in (
        await http.get(FAULTS),
        await http.post(FAULTS, json={"kind": "pause"}),
        await http.delete(FAULTS),
        await http.get(f"{FAULTS}/history"),
    ):
        assert response.status == 403
        assert "faults" in (await response.json())["message"]


async def test_faults_are_switched_listed_and_healed(http: Http, node: FakeNode) -> None:
    node.faults = new_switches()
    response = await http.post(FAULTS, json={"kind": "partition", "node": 2, "for": "5s"})
    assert await response.json() == NOTHING | {"cut": [2]}
    for fault in (
        {"kind": "delay", "node": 3, "delay": "50ms"},
        {"kind": "drop", "node": 2, "chance": 0.05},
        {"kind": "disk-full", "for": "1m"},
        {"kind": "clock", "offset": "-2h"},
    ):
        assert (await http.post(FAULTS, json=fault)).status == 200, fault
    assert await (await http.get(FAULTS)).json() == {
        "cut": [2],
        "delays_ms": {"3": 50},
        "losses": {"2": 0.05},
        "disk_full": True,
        "clock_offset_ms": -7_200_000,
    }
    assert (await http.delete(FAULTS)).status == 204
    assert await (await http.get(FAULTS)).json() == NOTHING


async def test_what_was_broken_is_remembered_with_who_asked(http: Http, node: FakeNode) -> None:
    node.faults = new_switches()
    await http.post(FAULTS, json={"kind": "partition", "node": 2, "for": "5s", "by": "ann"})
    await http.post(FAULTS, json={"kind": "clock", "offset": "+1d", "for": "2m"})
    await http.post(FAULTS, json={"kind": "clock"})
    history = (await (await http.get(f"{FAULTS}/history")).json())["faults"]
    told = [[one[key] for key in ("kind", "by", "node", "amount")] for one in history]
    assert told == [["partition", "ann", 2, None], ["clock", "127.0.0.1", None, "+1d"]]
    assert [one["until_ms"] - one["at_ms"] for one in history] == [5_000, 120_000]
    node.faults.heal()


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"kind": "fire"},
        {"kind": "partition"},
        {"kind": "partition", "node": 1},
        {"kind": "partition", "node": 9},
        {"kind": "delay", "node": 2},
        {"kind": "delay", "node": 2, "delay": "soon"},
        {"kind": "partition", "node": 2, "until": "later"},
        {"kind": "partition", "node": 2, "delay": "1s"},
        {"kind": "partition", "node": 2, "by": ""},
        {"kind": "partition", "node": 2, "by": "a\nb"},
        {"kind": "drop", "node": 2},
        {"kind": "drop", "node": 2, "chance": 0},
        {"kind": "drop", "node": 2, "chance": "5%"},
        {"kind": "clock"},
        {"kind": "clock", "offset": "1 week"},
        {"kind": "clock", "offset": "9999d"},
    ],
)
async def test_what_is_no_fault_is_refused(http: Http, node: FakeNode, body: Any) -> None:
    node.faults = new_switches()
    assert (await http.post(FAULTS, json=body)).status == 422
    assert await (await http.get(FAULTS)).json() == NOTHING
    assert node.faults.history.entries() == []


def why_still_ready(cluster: LocalCluster, node_id: int) -> str | None:
    ready = cluster.get("/readyz", node_id=node_id)
    return None if ready is not None and ready.status == 503 else f"answered {ready}"


def seconds_of_an_answer(cluster: LocalCluster, node_id: int) -> float:
    began = time.monotonic()
    assert cluster.get("/healthz", node_id=node_id) is not None
    return time.monotonic() - began


@pytest.mark.processes
def test_a_node_that_is_cut_off_is_fenced_and_comes_back() -> None:
    with LocalCluster(nodes=3, settings={"faults.enable": "true"}) as cluster:
        overview = cluster.get("/api/v1/cluster")
        assert overview is not None
        alone = next(n for n in cluster.node_ids if n != overview.body["controller_id"])
        others = [node_id for node_id in cluster.node_ids if node_id != alone]

        def down() -> list[int]:
            seen = cluster.get("/api/v1/cluster", node_id=others[0])
            assert seen is not None
            return list(seen.body["nodes_down"])

        for node_id in others:
            fault = {"kind": "partition", "node": node_id, "for": "60s"}
            answer = cluster.post(FAULTS, fault, node_id=alone)
            assert answer is not None
            assert answer.status == 200, answer
        cluster.wait_until(lambda: None if down() == [alone] else f"down: {down()}", "fenced", 60)
        # It notices by itself, in its own time.
        cluster.wait_until(lambda: why_still_ready(cluster, alone), "not ready", 60)
        answer = cluster.request("DELETE", FAULTS, node_id=alone)
        assert answer is not None
        assert answer.status == 204
        cluster.wait_until(lambda: f"down: {down()}" if down() else None, "back", 60)

        cluster.post(FAULTS, {"kind": "pause", "for": "400ms"}, node_id=alone)
        end = time.monotonic() + 60
        while seconds_of_an_answer(cluster, alone) < 0.2:
            assert time.monotonic() < end, "it never stood still"
