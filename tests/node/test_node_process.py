"""A node as a process: how it starts, refuses to start, ends and comes back."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.free_ports import free_ports
from tests.node.node_process import node_process, run_to_end, write_config

pytestmark = pytest.mark.processes


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return write_config(tmp_path, *free_ports(2))


def one_sentence(ended: subprocess.CompletedProcess[str]) -> str:
    """What a node that could not start says; status 1 and nothing else."""
    assert ended.returncode == 1, ended.stderr
    lines = ended.stderr.strip().splitlines()
    assert len(lines) == 1, ended.stderr
    assert ended.stdout == ""
    return lines[0]


def produce(port: int, values: list[str]) -> list[int]:
    """The offsets at which they were acknowledged."""
    offsets: list[int] = []
    producer = Producer({"bootstrap.servers": f"127.0.0.1:{port}", "acks": "all", "log_level": 0})
    for value in values:
        producer.produce(
            "t",
            value,
            partition=0,
            callback=lambda error, message: offsets.append(message.offset()),
        )
    assert producer.flush(60) == 0
    return offsets


def consume(port: int, count: int) -> list[str]:
    consumer = Consumer({"bootstrap.servers": f"127.0.0.1:{port}", "group.id": "g", "log_level": 0})
    consumer.assign([TopicPartition("t", 0, 0)])
    values: list[str] = []
    for _ in range(120):
        for message in consumer.consume(count, 0.5):
            assert message.error() is None
            values.append(message.value().decode())
        if len(values) >= count:
            break
    consumer.close()
    return values


def kafka_port(config: Path) -> int:
    document = json.loads((config.parent / "addresses.json").read_text())
    return int(document["kafka"].rpartition(":")[2])


def test_port_in_use_is_one_sentence_and_changes_nothing(tmp_path: Path) -> None:
    kafka, internode = free_ports(2)
    for name, taken in (("PLAINTEXT", kafka), ("INTERNODE", internode)):
        config = write_config(tmp_path, kafka, internode)
        with socket.socket() as other:
            other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            other.bind(("127.0.0.1", taken))
            other.listen()
            said = one_sentence(run_to_end(config))
        assert f"127.0.0.1:{taken} ({name}): another process listens there" in said
        assert not (tmp_path / "data").exists()


def test_a_directory_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    config = write_config(tmp_path, *free_ports(2), log_dirs=str(tmp_path / "file" / "data"))
    assert "data" in one_sentence(run_to_end(config))


def test_the_directory_of_another_node_or_cluster_is_refused(config: Path) -> None:
    with node_process(config) as node:
        node.send_signal(signal.SIGTERM)
        assert node.wait(60) == 0
    files = sorted(path.name for path in (config.parent / "data").iterdir())
    for other in ({"node_id": "2"}, {"cluster_id": "another"}):
        kafka, internode = free_ports(2)
        write_config(config.parent, kafka, internode, **other)
        said = one_sentence(run_to_end(config))
        assert "data" in said
        assert sorted(path.name for path in (config.parent / "data").iterdir()) == files


def test_b2_one_directory_has_one_process(config: Path) -> None:
    with node_process(config) as node:
        write_config(config.parent, *free_ports(2))
        assert "data" in one_sentence(run_to_end(config))
        assert node.poll() is None


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"num.partition": "3"}, "there is no setting num.partition; did you mean num.partitions?"),
        ({"num.partitions": "many"}, "num.partitions"),
        ({"listeners": "SSL://127.0.0.1:1"}, "listener SSL is not built"),
        ({"controller.quorum.voters": "2@127.0.0.1:1"}, "cluster.secret.file is required"),
        ({"process.roles": "broker"}, "process.roles must be 'broker,controller'"),
        (
            {"controller.quorum.voters": "1@127.0.0.1:1,2@127.0.0.1:2"},
            "cluster.secret.file is required",
        ),
        ({"cluster.secret.file": "/no/such/file"}, "cannot read /no/such/file"),
    ],
)
def test_a_wrong_configuration_is_one_sentence(
    tmp_path: Path, settings: dict[str, str], said: str
) -> None:
    kafka, internode = free_ports(2)
    config = write_config(tmp_path, kafka, internode, **settings)
    for arguments in (["--check-config"], []):
        assert said in one_sentence(run_to_end(config, *arguments))
    assert not (tmp_path / "data").exists()


def test_a_good_configuration_passes_the_check(config: Path) -> None:
    ended = run_to_end(config, "--check-config")
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
    assert not (config.parent / "data").exists()


def test_every_setting_is_printed_with_its_default() -> None:
    printed = subprocess.run(
        [sys.executable, "-m", "logboat.node", "--print-config"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    ).stdout
    defaults = tomllib.loads(printed)
    assert defaults["offsets.topic.num.partitions"] == 50
    assert defaults["log.flush.interval.messages"] == 1
    assert "cluster.secret.file" in printed


def test_a_stopped_node_comes_back_with_everything(config: Path) -> None:
    with node_process(config) as node:
        assert produce(kafka_port(config), ["a", "b"]) == [0, 1]
        node.send_signal(signal.SIGTERM)
        assert node.wait(60) == 0
    assert (config.parent / "data" / ".kafka_cleanshutdown").exists()
    with node_process(config):
        assert consume(kafka_port(config), 2) == ["a", "b"]
        assert produce(kafka_port(config), ["c"]) == [2]


def test_a_killed_node_comes_back_with_every_acknowledged_record(config: Path) -> None:
    expected: list[str] = []
    for life in range(3):
        with node_process(config) as node:
            port = kafka_port(config)
            assert consume(port, len(expected)) == expected
            values = [f"{life}-{number}" for number in range(200)]
            offsets = produce(port, values)
            assert offsets == list(range(len(expected), len(expected) + 200))
            expected += values
            node.kill()
            assert node.wait(60) == -signal.SIGKILL
        assert not (config.parent / "data" / ".kafka_cleanshutdown").exists()


def test_a_second_signal_ends_at_once(config: Path) -> None:
    with node_process(config) as node:
        node.send_signal(signal.SIGINT)
        node.send_signal(signal.SIGINT)
        assert node.wait(60) in (0, 128 + signal.SIGINT)


def test_free_ports_are_reported_beside_the_configuration(tmp_path: Path) -> None:
    config = write_config(tmp_path, 0, 0, http_listener="127.0.0.1:0")
    with node_process(config) as node:
        document = json.loads((tmp_path / "addresses.json").read_text())
        assert document["pid"] == node.pid
        for name in ("kafka", "http", "quorum"):
            host, _, port = document[name].rpartition(":")
            assert host == "127.0.0.1"
            assert int(port) > 0


def test_o05_a_node_has_more_partitions_than_descriptors(tmp_path: Path) -> None:
    kafka, internode = free_ports(2)
    config = write_config(tmp_path, kafka, internode, num_partitions="160")
    with node_process(config, descriptors=140):
        errors: list[object] = []
        producer = Producer({"bootstrap.servers": f"127.0.0.1:{kafka}", "acks": "all"})
        for partition in range(160):
            producer.produce(
                "t", "x", partition=partition, callback=lambda error, _: errors.append(error)
            )
        assert producer.flush(60) == 0
    assert errors == [None] * 160
    assert "Too many open files" not in (tmp_path / "node.log").read_text()
