"""The HTTP API of a real cluster: any node answers any request."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from logboat.testing import LocalCluster

pytestmark = pytest.mark.processes


def good(answer: Any) -> Any:
    assert answer is not None
    assert answer.status in (200, 201, 204), answer
    return answer.body


@pytest.fixture
def topic(logboat_cluster: LocalCluster, request: pytest.FixtureRequest) -> str:
    """Three partitions, led by different nodes; made through node 1."""
    name = request.node.name
    good(logboat_cluster.post("/api/v1/topics", {"name": name, "partitions": 3}, node_id=1))
    return str(name)


def test_every_node_writes_and_reads_every_partition(
    logboat_cluster: LocalCluster, topic: str
) -> None:
    for node_id in logboat_cluster.node_ids:
        records = [{"value": f"by {node_id}", "partition": partition} for partition in range(3)]
        body = {"records": records}
        good(logboat_cluster.post(f"/api/v1/topics/{topic}/records", body, node_id=node_id))
    for node_id in logboat_cluster.node_ids:
        for partition in range(3):
            path = f"/api/v1/topics/{topic}/partitions/{partition}/records"
            document = good(logboat_cluster.get(path, node_id=node_id))
            values = [record["value"] for record in document["records"]]
            assert values == ["by 1", "by 2", "by 3"]
            assert document["high_watermark"] == 3


def test_a_topic_made_through_one_node_is_used_at_once_through_another(
    logboat_cluster: LocalCluster,
) -> None:
    for turn in range(3):
        name = f"quick-{turn}"
        good(logboat_cluster.post("/api/v1/topics", {"name": name}, node_id=1 + turn))
        body = {"records": [{"value": "v"}]}
        good(logboat_cluster.post(f"/api/v1/topics/{name}/records", body, node_id=1 + turn))


def test_a_waiting_read_is_answered_when_a_record_comes(
    logboat_cluster: LocalCluster, topic: str
) -> None:
    leader = logboat_cluster.wait_leader(topic, 0)
    other = next(n for n in logboat_cluster.node_ids if n != leader)
    found: list[Any] = []

    def wait() -> None:
        path = f"/api/v1/topics/{topic}/partitions/0/records?wait=20s"
        found.append((good(logboat_cluster.get(path, node_id=other)), time.monotonic()))

    waiting = threading.Thread(target=wait)
    waiting.start()
    time.sleep(0.3)
    written_at = time.monotonic()
    body = {"records": [{"value": "at last", "partition": 0}]}
    good(logboat_cluster.post(f"/api/v1/topics/{topic}/records", body, node_id=other))
    waiting.join()
    document, answered_at = found[0]
    assert [record["value"] for record in document["records"]] == ["at last"]
    assert answered_at - written_at < 10


def test_leadership_goes_to_the_node_that_is_chosen(
    logboat_cluster: LocalCluster, topic: str
) -> None:
    logboat_cluster.wait_in_sync(topic)
    for number, to in enumerate((1, 2, 3)):
        path = f"/api/v1/topics/{topic}/partitions/0:transfer-leadership"
        asked = logboat_cluster.node_ids[number - 1]
        answer = good(logboat_cluster.post(path, {"to": to}, node_id=asked))
        assert answer["leader"] == to
        seen = good(logboat_cluster.get(f"/api/v1/topics/{topic}", node_id=asked))["partitions"][0]
        assert seen["replicas"][0] == to
        body = {"records": [{"value": f"under {to}", "partition": 0}]}
        good(logboat_cluster.post(f"/api/v1/topics/{topic}/records", body, node_id=asked))
    document = good(logboat_cluster.get(f"/api/v1/topics/{topic}/partitions/0/records"))
    assert [one["value"] for one in document["records"]] == ["under 1", "under 2", "under 3"]


def test_an_empty_read_that_waits_ends_in_time(logboat_cluster: LocalCluster, topic: str) -> None:
    started = time.monotonic()
    path = f"/api/v1/topics/{topic}/partitions/0/records?wait=300ms"
    assert good(logboat_cluster.get(path))["records"] == []
    assert 0.25 < time.monotonic() - started < 10


def test_delete_is_seen_by_the_node_that_was_asked(
    logboat_cluster: LocalCluster, topic: str
) -> None:
    answer = logboat_cluster.request("DELETE", f"/api/v1/topics/{topic}", node_id=3)
    good(answer)
    gone = logboat_cluster.get(f"/api/v1/topics/{topic}", node_id=3)
    assert gone is not None
    assert gone.status == 404


def test_too_many_replicas_are_refused(logboat_cluster: LocalCluster) -> None:
    body = {"name": "too-many", "replication_factor": 4}
    answer = logboat_cluster.post("/api/v1/topics", body)
    assert answer is not None
    assert answer.status == 422
    assert answer.body["kafka_error"] == "INVALID_REPLICATION_FACTOR"


def test_the_overview_is_the_same_on_every_node(logboat_cluster: LocalCluster) -> None:
    def why_not() -> str | None:
        """A busy machine may be in the middle of an election."""
        overviews = [
            good(logboat_cluster.get("/api/v1/cluster", node_id=node_id))
            for node_id in logboat_cluster.node_ids
        ]
        controllers = {overview["controller_id"] for overview in overviews}
        roles = sorted(overview["role"] for overview in overviews)
        states = {node["state"] for overview in overviews for node in overview["nodes"]}
        seen = len(controllers), roles, states
        good_ones = 1, ["follower", "follower", "leader"], {"active"}
        return None if seen == good_ones else f"{seen}"

    logboat_cluster.wait_until(why_not, "the same overview")
