"""kafkatop, somebody else's eye on groups, and `logboat group` see the same."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from logboat.testing import LocalCluster

TIMEOUT_S = 60.0
RECORDS = 12
COMMITTED = {0: 2, 1: 4, 2: 0}


def output(*command: str) -> Any:
    """What it prints as JSON."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def program(name: str) -> str:
    return str(Path(sys.executable).with_name(name))


@pytest.fixture
def group(cluster: LocalCluster, fresh: Callable[[str], str]) -> str:
    """4 records in each of three partitions of a topic by the same name, not all of them read."""
    name = fresh("seen")
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    topic = NewTopic(name, num_partitions=len(COMMITTED), replication_factor=3)
    admin.create_topics([topic])[name].result(TIMEOUT_S)
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "acks": "all"})
    for number in range(RECORDS):
        producer.produce(name, b"value", partition=number % len(COMMITTED))
    assert producer.flush(TIMEOUT_S) == 0
    return name


@pytest.mark.processes
@pytest.mark.foreign
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_kafkatop_and_logboat_see_the_same_groups_and_lag(
    cluster: LocalCluster, group: str, protocol: str
) -> None:
    settings = {"bootstrap.servers": cluster.bootstrap_servers, "group.id": group}
    member = Consumer({**settings, "group.protocol": protocol, "enable.auto.commit": False})
    member.subscribe([group])
    try:
        for _ in range(int(TIMEOUT_S * 10)):
            member.poll(0.1)
            if len(member.assignment()) == len(COMMITTED):
                break
        offsets = [TopicPartition(group, number, offset) for number, offset in COMMITTED.items()]
        member.commit(offsets=offsets, asynchronous=False)
        seen = output(
            program("kafkatop"),
            *("--kafka-broker", cluster.bootstrap_servers, "--summary-json"),
            *("--group-filter-pattern", f"^{group}$"),
        )
        where = ("--url", cluster.http_urls[0])
        ours = output(program("logboat"), "group", "lag", group, "--output", "json", *where)
        listed = output(program("logboat"), "group", "list", "--output", "json", *where)
    finally:
        member.close()
    lags = [row["lag"] for row in ours["partitions"]]
    assert lags == [RECORDS // len(COMMITTED) - offset for offset in COMMITTED.values()]
    theirs = seen[group]
    assert theirs["topics"] == {
        group: {"partitions": len(lags), "lag_max": max(lags), "lag_min": min(lags)}
    }
    # "ConsumerGroupState.STABLE"
    assert theirs["state"].rpartition(".")[2].lower() == ours["state"].lower() == "stable"
    assert (group, protocol) in [(one["group_id"], one["type"]) for one in listed]
