"""Case O05: descriptors are shared by clients and log files, and there are few of them."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.free_ports import free_ports
from tests.node.node_process import node_process, write_config

pytestmark = pytest.mark.processes


@contextmanager
def idle_connections(port: int, count: int) -> Iterator[list[socket.socket]]:
    connections = []
    try:
        for _ in range(count):
            connections.append(socket.create_connection(("127.0.0.1", port), timeout=60))
        yield connections
    finally:
        for connection in connections:
            connection.close()


def create(port: int, partitions: int) -> None:
    admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{port}"})
    wanted = NewTopic("t", partitions, 1, config={"segment.bytes": str(1 << 20)})
    for made in admin.create_topics([wanted], request_timeout=60).values():
        made.result(60)


def produce(producer: Producer, partitions: int, value: bytes) -> list[KafkaError | None]:
    """One record to each partition; what became of them."""
    errors: list[KafkaError | None] = []
    for partition in range(partitions):
        producer.produce(
            "t", value, partition=partition, callback=lambda error, _: errors.append(error)
        )
    assert producer.flush(60) == 0
    return errors


def producer_of(port: int) -> Producer:
    return Producer(
        {
            "bootstrap.servers": f"127.0.0.1:{port}",
            "acks": "all",
            "linger.ms": 20,
            "log_level": 0,
            "message.timeout.ms": 60_000,
        }
    )


def test_o05_idle_clients_do_not_keep_the_logs_from_rolling(tmp_path: Path) -> None:
    """400 of them, 256 descriptors, 20 partitions that need a second and a third segment."""
    kafka, internode = free_ports(2)
    config = write_config(tmp_path, kafka, internode)
    with node_process(config, descriptors=256):
        create(kafka, 20)
        producer = producer_of(kafka)
        value = bytes(600_000)
        assert produce(producer, 20, value) == [None] * 20
        with idle_connections(kafka, 400):
            for _ in range(4):
                assert produce(producer, 20, value) == [None] * 20
        assert produce(producer_of(kafka), 20, b"again") == [None] * 20
    said = (tmp_path / "node.log").read_text()
    assert "too few descriptors (ulimit -n) for more than 64 clients" in said
    assert "Too many open files" not in said
    for partition in range(20):
        assert len(list((tmp_path / "data" / f"t-{partition}").glob("*.log"))) >= 3
