"""A cluster inside somebody else's tests: the ten lines of the README, and workers side by side."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from logboat.testing import LocalCluster

pytestmark = pytest.mark.processes

CONFLUENT = """
from confluent_kafka import Consumer, Producer

def test_orders_are_read(logboat_node):
    servers = {"bootstrap.servers": logboat_node.bootstrap_servers}
    producer = Producer(servers)
    producer.produce("orders", b"one")
    assert producer.flush(30) == 0
    consumer = Consumer({**servers, "group.id": "g", "auto.offset.reset": "earliest"})
    consumer.subscribe(["orders"])
    assert consumer.poll(30).value() == b"one"
    consumer.close()
"""

AIOKAFKA = """
import asyncio
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

def test_orders_are_read(logboat_node):
    async def play(servers):
        async with AIOKafkaProducer(bootstrap_servers=servers) as producer:
            await producer.send_and_wait("payments", b"one")
        settings = {"bootstrap_servers": servers, "auto_offset_reset": "earliest"}
        async with AIOKafkaConsumer("payments", **settings) as consumer:
            assert (await consumer.getone()).value == b"one"
    asyncio.run(play(logboat_node.bootstrap_servers))
"""


OF_NO_USE = ("cacheprovider", "schemathesis", "hypothesispytest", "anyio")
"""Plugins that are here only because we are."""


def suite(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Somebody's own project, without any configuration."""
    without = [argument for name in OF_NO_USE for argument in ("-p", f"no:{name}")]
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *without, *arguments, str(folder)],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
        cwd=folder,
    )


def test_the_examples_run_and_workers_do_not_collide(tmp_path: Path) -> None:
    (tmp_path / "test_confluent.py").write_text(CONFLUENT)
    (tmp_path / "test_aio.py").write_text(AIOKAFKA)
    ran = suite(tmp_path, "-n", "2")
    assert ran.returncode == 0, ran.stdout
    assert "2 passed" in ran.stdout


def test_any_language_gets_a_cluster_from_one_command() -> None:
    logboat = [sys.executable, "-m", "logboat.client.cli", "cluster"]
    flags = ["--nodes", "1", "--ephemeral", "--any-port", "--detach", "-o", "json"]
    up = subprocess.run(
        [*logboat, "up", *flags], capture_output=True, text=True, timeout=120, check=True
    )
    document = json.loads(up.stdout)
    try:
        assert document["state"] == "ready"
        assert document["nodes"][0]["kafka"].startswith("127.0.0.1:")
    finally:
        down = [*logboat, "down", "--data-dir", document["data_dir"]]
        subprocess.run(down, capture_output=True, timeout=120, check=True)
    assert not Path(document["data_dir"]).exists()


def test_a_client_gets_what_the_fixture_says(logboat_node: LocalCluster) -> None:
    answer = logboat_node.get("/readyz")
    assert answer is not None
    assert answer.status == 200
    assert len(logboat_node.http_urls) == 1
