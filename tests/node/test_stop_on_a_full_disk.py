"""Case: the disk of a node is full, and a person stops the node to make room."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, Producer

from tests.free_ports import free_ports
from tests.node.node_process import node_process, write_config
from tests.node.test_node_process import consume, produce

pytestmark = pytest.mark.processes

DISK_BYTES = 64 << 20
BALLAST = "ballast"


@contextmanager
def small_disk(mount_point: Path) -> Iterator[Path]:
    if os.geteuid() != 0:
        pytest.skip("a file system of its own needs root")
    mount_point.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "logboat", str(mount_point)]
    if subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("no file system can be mounted here")
    try:
        yield mount_point
    finally:
        subprocess.run(["umount", "-l", str(mount_point)], check=True)


def fill(disk: Path) -> None:
    with open(disk / BALLAST, "wb", buffering=0) as ballast, suppress(OSError):
        while True:
            ballast.write(bytes(4096))


def acknowledged_of(port: int, values: list[str]) -> list[str]:
    """Those of the records that a full disk did not refuse."""
    acknowledged: list[str] = []

    def on_answer(value: str, error: KafkaError | None) -> None:
        if error is None:
            acknowledged.append(value)

    producer = Producer(
        {
            "bootstrap.servers": f"127.0.0.1:{port}",
            "enable.idempotence": True,
            "message.timeout.ms": 4_000,
            "log_level": 0,
        }
    )
    for value in values:
        producer.produce(
            "t",
            value,
            partition=0,
            on_delivery=lambda error, _, value=value: on_answer(value, error),
        )
    producer.flush(30)
    return acknowledged


def test_c7_a_node_whose_disk_is_full_stops_when_it_is_told_to(tmp_path: Path) -> None:
    kafka, internode = free_ports(2)
    with small_disk(tmp_path / "disk") as disk:
        config = write_config(tmp_path, kafka, internode, log_dirs=str(disk / "data"))
        with node_process(config) as node:
            acknowledged = acknowledged_of(kafka, [f"before {number}" for number in range(100)])
            assert len(acknowledged) == 100
            fill(disk)
            acknowledged += acknowledged_of(kafka, [f"{n} " + "x" * 3000 for n in range(9)])
            node.send_signal(signal.SIGTERM)
            assert node.wait(60) == 0
        said = (tmp_path / "node.log").read_text()
        assert "no clean-shutdown marker: the disk had no room" in said
        assert "Traceback" not in said
        assert not (disk / "data" / ".kafka_cleanshutdown").exists()
        (disk / BALLAST).unlink()
        with node_process(config) as node:
            (last_offset,) = produce(kafka, ["after"])
            held = consume(kafka, last_offset + 1)
            assert [value for value in held if value in acknowledged] == acknowledged
            node.send_signal(signal.SIGTERM)
            assert node.wait(60) == 0
        assert (disk / "data" / ".kafka_cleanshutdown").exists()
