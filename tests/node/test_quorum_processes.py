"""Real nodes: brokers outside the voters, the quorum described, a voter that lost its disk."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import time
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from kafka.admin import KafkaAdminClient

from logboat.client.cluster.launch import last_words
from logboat.testing import LocalCluster

pytestmark = pytest.mark.processes

TOPIC = "t"


def quorum(cluster: LocalCluster, node_id: int | None = None) -> dict[str, Any]:
    answer = cluster.get("/api/v1/quorum", node_id=node_id)
    assert answer is not None
    assert answer.status == 200, answer
    document: dict[str, Any] = answer.body
    return document


def create_topic(cluster: LocalCluster, replicas: int, *, node_id: int) -> None:
    body = {"name": TOPIC, "partitions": 3, "replication_factor": replicas}
    answer = cluster.post("/api/v1/topics", body, node_id=node_id)
    assert answer is not None
    assert answer.status == 201, answer


def produce(bootstrap: str, count: int) -> None:
    """Acknowledged by all, or the test fails."""
    failures: list[object] = []

    def on_delivery(error: object, _: object) -> None:
        if error is not None:
            failures.append(error)

    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "log_level": 0})
    for number in range(count):
        producer.produce(TOPIC, str(number), on_delivery=on_delivery)
    assert producer.flush(60) == 0
    assert failures == []


def count_records(bootstrap: str) -> int:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "g", "log_level": 0})
    try:
        ends = [
            consumer.get_watermark_offsets(TopicPartition(TOPIC, partition, 0), timeout=60)[1]
            for partition in range(3)
        ]
    finally:
        consumer.close()
    return sum(ends)


def logboat(cluster: LocalCluster, *arguments: str) -> subprocess.CompletedProcess[str]:
    url = cluster.http_urls[0]
    return subprocess.run(
        [sys.executable, "-m", "logboat.client.cli", "quorum", *arguments, "--url", url],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.usefixtures("foreign_leaks")
def test_brokers_outside_the_quorum_serve_like_any_other() -> None:
    with LocalCluster(nodes=5, voters=3) as cluster:
        for observer in (4, 5):
            answer = cluster.get("/api/v1/cluster", node_id=observer)
            assert answer is not None
            assert answer.body["role"] == "observer"
        # Forwarded by an observer, and true there at once (RULES A6).
        create_topic(cluster, 5, node_id=5)
        assert cluster.leader_of(TOPIC, 0, node_id=5) > 0
        produce(cluster.node(4).kafka, 300)

        admin = KafkaAdminClient(bootstrap_servers=cluster.node(5).kafka)
        try:
            described = admin.describe_metadata_quorum()
        finally:
            admin.close()
        assert "__cluster_metadata" in str(described)

        document = quorum(cluster, node_id=5)
        leader_id = document["leader_id"]
        assert sorted(one["node_id"] for one in document["voters"]) == [1, 2, 3]
        assert sorted(one["node_id"] for one in document["observers"]) == [4, 5]
        assert all(one["directory_id"] for one in document["voters"] + document["observers"])

        # Neither the death of the leader nor of an observer is the end of anything.
        cluster.kill(leader_id)
        cluster.kill(5)
        cluster.wait_until(
            lambda: None if _leader(cluster, 4) not in (None, leader_id) else "no new leader",
            "another leader",
        )
        produce(cluster.node(4).kafka, 300)
        cluster.start(leader_id)
        cluster.start(5)
        cluster.wait_in_sync(TOPIC)
        assert count_records(cluster.node(5).kafka) == 600
        shown = logboat(cluster, "status")
        assert shown.returncode == 0, shown.stderr
        assert len(re.findall(r"observer", shown.stdout)) == 2


def _leader(cluster: LocalCluster, node_id: int) -> int | None:
    answer = cluster.get("/api/v1/quorum", node_id=node_id)
    return answer.body["leader_id"] if answer is not None and answer.status == 200 else None


def test_a_voter_that_lost_its_disk_ends_naming_the_command_that_admits_it_again() -> None:
    with LocalCluster(nodes=3) as cluster:
        create_topic(cluster, 3, node_id=1)
        produce(cluster.bootstrap_servers, 300)
        cluster.wait_in_sync(TOPIC)
        lost = next(n for n in cluster.node_ids if n not in (1, quorum(cluster)["leader_id"]))
        before = {one["node_id"]: one for one in quorum(cluster)["voters"]}
        cluster.kill(lost)
        shutil.rmtree(cluster.data_dir(lost))
        cluster.start(lost, wait=False)
        cluster.wait_until(
            lambda: "it runs" if cluster.is_running(lost) else None, "the node's own end"
        )
        said = last_words(cluster.folder, lost)
        named = re.search(r"`logboat quorum replace-voter (\d+) ([0-9a-f-]{36})`", said)
        assert named is not None, said
        assert int(named[1]) == lost
        assert named[2] != before[lost]["directory_id"]

        # An operator types what was named; just after the death its session may still live.
        deadline = time.monotonic() + 60
        while (done := logboat(cluster, "replace-voter", named[1], named[2])).returncode != 0:
            assert "is alive" in done.stderr, done.stderr
            assert time.monotonic() < deadline, done.stderr
        cluster.start(lost)
        cluster.wait_in_sync(TOPIC)
        after = quorum(cluster)
        replaced = next(one for one in after["voters"] if one["node_id"] == lost)
        assert replaced["directory_id"] == named[2]
        assert replaced["lag"] is not None
        # It counts: with another voter gone the quorum goes on.
        gone = next(n for n in cluster.node_ids if n not in (lost, after["leader_id"]))
        cluster.kill(gone)
        produce(cluster.node(lost).kafka, 100)
        assert count_records(cluster.node(lost).kafka) == 400
        alive = logboat_replaces_a_living_voter(cluster, lost)
        assert "is alive" in alive


def logboat_replaces_a_living_voter(cluster: LocalCluster, node_id: int) -> str:
    url = f"http://{cluster.node(node_id).http}"
    done = subprocess.run(
        [
            *(sys.executable, "-m", "logboat.client.cli", "quorum", "replace-voter"),
            *(str(node_id), "00000000-0000-4000-8000-000000000001", "--url", url),
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    return done.stderr
