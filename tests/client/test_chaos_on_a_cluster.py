"""`logboat chaos` on processes: each fault does what its name says, and nothing is left behind."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from logboat.testing import PATIENT, LocalCluster

pytestmark = pytest.mark.processes

LOGBOAT = [sys.executable, "-m", "logboat.client.cli"]
EXAMPLE = Path(__file__).resolve().parents[2] / "docs" / "chaos-plan.toml"
NOTHING = {"cut": [], "delays_ms": {}, "losses": {}, "disk_full": False, "clock_offset_ms": 0}


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(nodes=3, settings={**PATIENT, "faults.enable": "true"}) as running:
        running.post("/api/v1/topics", {"name": "orders", "partitions": 1})
        yield running


def command(cluster: LocalCluster, *arguments: str) -> list[str]:
    return [*LOGBOAT, "chaos", *arguments, "--data-dir", cluster.folder.path]


def hurt(cluster: LocalCluster, node_id: int, **fault: Any) -> None:
    answer = cluster.post("/api/v1/faults", {"for": "60s", **fault}, node_id=node_id)
    assert answer is not None
    assert answer.status == 200, answer


def heal(cluster: LocalCluster) -> None:
    for node_id in cluster.node_ids:
        cluster.request("DELETE", "/api/v1/faults", node_id=node_id)
    whole_again(cluster)


def leader(cluster: LocalCluster) -> int:
    topic = cluster.get("/api/v1/topics/orders")
    assert topic is not None
    return int(topic.body["partitions"][0]["leader"])


def write(cluster: LocalCluster, node_id: int, value: str) -> Any:
    body = {"records": [{"value": value}]}
    return cluster.post("/api/v1/topics/orders/records", body, node_id=node_id)


def values(cluster: LocalCluster, node_id: int) -> list[str]:
    path = "/api/v1/topics/orders/partitions/0/records?max_bytes=8388608"
    answer = cluster.get(path, node_id=node_id)
    assert answer is not None
    return [one["value"] for one in answer.body["records"]]


def whole_again(cluster: LocalCluster) -> None:
    def why_not() -> str | None:
        for node_id in cluster.node_ids:
            ready = cluster.get("/readyz", node_id=node_id)
            if ready is None or ready.status != 200:
                return f"node {node_id}: {ready}"
            faults = cluster.get("/api/v1/faults", node_id=node_id)
            if faults is None or faults.body != NOTHING:
                return f"node {node_id}: {faults}"
        topic = cluster.get("/api/v1/topics/orders")
        isr = [] if topic is None else topic.body["partitions"][0]["isr"]
        return None if len(isr) == 3 else f"in sync: {isr}"

    cluster.wait_until(why_not, "whole again", 180)


def test_heal_wakes_who_stands_still(cluster: LocalCluster) -> None:
    """Also where every node does, so that nobody can say who belongs to the cluster."""
    for _ in range(3):
        for node_id in cluster.node_ids:
            hurt(cluster, node_id, kind="pause", **{"for": "30s"})
        cluster.wait_until(lambda: None if all_are_silent(cluster) else "awake", "asleep", 20)
        subprocess.run(command(cluster, "heal"), check=True, timeout=120, capture_output=True)
        whole_again(cluster)
        shown = ["history", "-o", "json"]
        done = subprocess.run(command(cluster, *shown), check=True, timeout=60, capture_output=True)
        pauses = [one for one in json.loads(done.stdout) if one["fault"] == "pause"][-3:]
        assert len(pauses) == 3
        if all(one["until_ms"] - one["at_ms"] < 30_000 for one in pauses):
            return  # Else this machine was slower than the pauses.
    raise AssertionError("it waited for the end")


def all_are_silent(cluster: LocalCluster) -> bool:
    """Nobody answers within a moment."""
    for address in cluster.http_urls:
        with suppress(OSError), urlopen(f"{address}/healthz", timeout=0.3):
            return False
    return True


def test_a_full_disk_acknowledges_nothing_that_it_loses(cluster: LocalCluster) -> None:
    first = leader(cluster)
    assert write(cluster, first, "before").status == 200
    hurt(cluster, first, kind="disk-full")
    # Larger than what the last block of any file has left.
    large = "x" * 10_000
    answer = write(cluster, first, large)
    acknowledged = answer is not None and answer.status == 200
    # Nothing but another leader, whose disk has room, could have taken it.
    assert not acknowledged or leader(cluster) != first, answer
    heal(cluster)
    assert write(cluster, leader(cluster), "after").status == 200
    kept = values(cluster, leader(cluster))
    assert [value for value in kept if value != large] == ["before", "after"]
    assert large in kept or not acknowledged


def test_a_wrong_clock_stamps_records_and_fences_nobody(cluster: LocalCluster) -> None:
    first = leader(cluster)
    hurt(cluster, first, kind="clock", offset="-1h")
    assert write(cluster, first, "an hour ago").status == 200
    path = "/api/v1/topics/orders/partitions/0/records?tail=1"
    answer = cluster.get(path, node_id=first)
    assert answer is not None
    late_s = time.time() - answer.body["records"][0]["timestamp"] / 1000
    assert 3000 < late_s < 4200
    assert leader(cluster) == first
    heal(cluster)


def test_dropped_frames_lose_no_record(cluster: LocalCluster) -> None:
    first = leader(cluster)
    for other in cluster.node_ids:
        if other != first:
            hurt(cluster, first, kind="drop", node=other, chance=0.05)
    written = []
    for number in range(20):
        answer = write(cluster, first, f"dropped {number}")
        if answer is not None and answer.status == 200:
            written.append(f"dropped {number}")
    heal(cluster)
    assert [value for value in written if value not in values(cluster, leader(cluster))] == []


def test_the_example_plan_is_carried_out_and_undone(cluster: LocalCluster) -> None:
    done = subprocess.run(
        command(cluster, "run", str(EXAMPLE), "-o", "json"),
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    assert done.returncode in (0, 1), done.stderr
    struck = json.loads(done.stdout)
    assert [one["fault"] for one in struck].count("drop") == 2
    kill = next(one for one in struck if one["fault"] == "kill")
    assert kill["outcome"] == "done"
    whole_again(cluster)
    told = subprocess.run(
        command(cluster, "history", "-o", "json"), capture_output=True, timeout=60, check=True
    )
    mine = [one for one in json.loads(told.stdout) if "chaos-plan.toml" in one["by"]]
    assert {"kill", "drop"} <= {one["fault"] for one in mine}
    assert kill["nodes"] == [one["node"] for one in mine if one["fault"] == "kill"]


def test_an_interrupted_plan_is_undone(cluster: LocalCluster, tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text(
        'for = "10m"\n'
        '[[step]]\nfault = "kill"\nnodes = "follower of orders/0"\nfor = "9m"\n'
        '[[step]]\nfault = "clock"\nnodes = "all"\nby = "+1h"\nfor = "9m"\n'
    )
    running = subprocess.Popen(
        command(cluster, "run", str(plan)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert running.stderr is not None
    for line in running.stderr:
        if "clock all" in line:
            break
    running.send_signal(signal.SIGINT)
    _, told = running.communicate(timeout=120)
    assert running.returncode == 130, told
    assert "Healed." in told
    whole_again(cluster)
