"""TLS between real nodes: its files, refused by one sentence, and a cluster that uses it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from confluent_kafka import Producer

from logboat.node.config import ConfigRefused, NodeConfig
from logboat.node.settings import KEYSTORE, TRUSTSTORE
from logboat.testing import LocalCluster
from tests.node.node_process import run_to_end, write_config
from tests.raftlog.certificates import Authority

LEAST = {"node.id": "1", "cluster.id": "c", "log.dirs": "/d"}


def test_tls_needs_a_certificate_and_authorities() -> None:
    for name in (KEYSTORE, TRUSTSTORE):
        with pytest.raises(ConfigRefused, match="TLS between nodes needs both"):
            NodeConfig.of({**LEAST, name: "some.pem"})


@pytest.mark.processes
def test_files_that_are_no_certificates_end_the_start_with_one_sentence(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    good, bad = authority.file_of("node-1"), tmp_path / "bad.pem"
    bad.write_text("not PEM")
    for keystore, truststore, sentence in (
        (tmp_path / "absent.pem", authority.file, "cannot read .*absent.pem: No such file"),
        (bad, authority.file, "bad.pem and .*authorities.pem are no certificates in PEM"),
        (good, bad, "node-1.pem and .*bad.pem are no certificates in PEM"),
    ):
        config = write_config(tmp_path, 9092, 9093)
        with config.open("a") as file:
            file.write(f'"{KEYSTORE}" = "{keystore}"\n"{TRUSTSTORE}" = "{truststore}"\n')
        ended = run_to_end(config, "--check-config")
        assert ended.returncode == 1
        assert re.search(sentence, ended.stderr), ended.stderr
        assert len(ended.stderr.splitlines()) == 1


@pytest.mark.processes
def test_three_nodes_with_certificates_replicate_and_let_no_other_in(tmp_path: Path) -> None:
    authority, stranger = Authority(tmp_path), Authority(_folder(tmp_path / "stranger"))
    everybody = authority.file_of("node-1", "node-2", "node-3")
    settings = {KEYSTORE: str(everybody), TRUSTSTORE: str(authority.file)}
    with LocalCluster(nodes=3, settings=settings) as cluster:
        body = {"name": "t", "partitions": 1, "replication_factor": 3}
        answer = cluster.post("/api/v1/topics", body)
        assert answer is not None
        assert answer.status == 201, answer
        cluster.wait_in_sync("t")
        produce(cluster, 100)

        # Its own certificate, and no longer everybody's.
        cluster.stop(3)
        change_certificate(cluster, 3, everybody, authority.file_of("node-3"))
        cluster.start(3)
        cluster.wait_in_sync("t")

        cluster.stop(3)
        change_certificate(cluster, 3, authority.file_of("node-3"), stranger.file_of("node-3"))
        cluster.start(3, wait=False)
        produce(cluster, 100)
        wait_for_refusal(cluster, "its certificate is refused")
        assert not cluster.is_in_sync("t")

        cluster.stop(3)
        change_certificate(cluster, 3, stranger.file_of("node-3"), authority.file_of("node-2"))
        cluster.start(3, wait=False)
        wait_for_refusal(cluster, "its certificate is for node-2, not for node-3")


def _folder(path: Path) -> Path:
    path.mkdir()
    return path


def produce(cluster: LocalCluster, count: int) -> None:
    failures: list[object] = []

    def on_delivery(error: object, _: object) -> None:
        if error is not None:
            failures.append(error)

    bootstrap = {"bootstrap.servers": cluster.bootstrap_servers, "acks": "all", "log_level": 0}
    producer = Producer(bootstrap)
    for number in range(count):
        producer.produce("t", str(number), on_delivery=on_delivery)
    assert producer.flush(60) == 0
    assert failures == []


def change_certificate(cluster: LocalCluster, node_id: int, old: Path, new: Path) -> None:
    config = Path(cluster.folder.node_config(node_id))
    text = config.read_text()
    assert str(old) in text
    config.write_text(text.replace(str(old), str(new)))


def wait_for_refusal(cluster: LocalCluster, reason: str) -> None:
    """Until the log of node 1 or 2 tells it."""

    def why_not() -> str | None:
        logs = [Path(cluster.folder.node_log(node_id)).read_text() for node_id in (1, 2)]
        return None if any(f"refused: {reason}" in log for log in logs) else "no such line"

    cluster.wait_until(why_not, f"node 3 is refused: {reason}")
