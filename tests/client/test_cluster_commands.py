"""`logboat cluster` from end to end, with fakes in the nodes' place."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from logboat.client.cli import app
from logboat.client.cluster.folder import ClusterFolder


def logboat(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["cluster", *arguments])


def status(*arguments: str) -> Any:
    result = logboat("status", "-o", "json", *arguments)
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def test_up_status_down_purge(folder: ClusterFolder) -> None:
    where = ("--data-dir", folder.path)
    result = logboat("up", "--nodes", "2", "--any-port", "--detach", *where)
    assert result.exit_code == 0, result.stderr
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["NODE", "PID", "STATE", "KAFKA", "HTTP", "ROLE"]
    assert lines[1].split()[-1] == "leader"
    shown = status(*where)
    assert shown["state"] == "ready"
    bootstrap = ",".join(node["kafka"] for node in shown["nodes"])
    assert f"export LOGBOAT_BOOTSTRAP={bootstrap}" in result.stdout
    assert result.stdout.count("\n  ") == 3  # things to try
    assert {node["role"] for node in shown["nodes"]} == {"leader", "follower"}

    assert logboat("up", "--any-port", "--detach", *where).exit_code == 1
    assert logboat("down", *where).exit_code == 0
    assert status(*where)["state"] == "down"
    assert [node["pid"] for node in status(*where)["nodes"]] == [None, None]
    assert logboat("purge", *where).exit_code == 0
    assert not os.path.exists(folder.path)


def test_faults_are_for_the_nodes_that_an_up_with_faults_starts(folder: ClusterFolder) -> None:
    where = ("--data-dir", folder.path)

    def started_with_faults() -> int:
        return Path(folder.node_log(1)).read_text().count("with faults")

    assert logboat("up", "--nodes", "1", "--any-port", "--detach", *where).exit_code == 0
    logboat("down", *where)
    assert started_with_faults() == 0
    assert logboat("up", "--any-port", "--detach", "--with-faults", *where).exit_code == 0
    assert started_with_faults() == 1
    assert logboat("node", "restart", "1", *where).exit_code == 0
    assert started_with_faults() == 2, "a single node comes back as its cluster is"
    logboat("down", *where)
    assert logboat("up", "--any-port", "--detach", *where).exit_code == 0
    assert started_with_faults() == 2, "nothing of it is left in the node's configuration"
    assert logboat("down", *where).exit_code == 0


def test_the_table_is_for_people(folder: ClusterFolder) -> None:
    where = ("--data-dir", folder.path)
    logboat("up", "--nodes", "1", "--any-port", "--detach", *where)
    shown = logboat("status", *where).stdout.splitlines()
    assert shown[0].endswith(f": ready ({folder.path})")
    assert "\x1b" not in "".join(shown)


def test_an_up_that_fails_says_one_sentence_and_status_1(folder: ClusterFolder) -> None:
    where = ("--data-dir", folder.path)
    logboat("up", "--nodes", "2", "--any-port", "--detach", *where)
    logboat("down", *where)
    Path(folder.node_dir(1), "behaviour").write_text("die")
    result = logboat("up", "--any-port", "--detach", *where)
    assert result.exit_code == 1
    assert result.stdout == ""
    assert "node 1 ended with status 1: fake node: the disk is on fire" in result.stderr
    assert status(*where)["state"] == "down"


def test_an_ephemeral_cluster_is_found_and_removed_at_down(
    folder: ClusterFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert logboat("status", "--ephemeral").exit_code == 1
    result = logboat("up", "--nodes", "1", "--any-port", "--detach", "--ephemeral")
    assert result.exit_code == 0, result.stderr
    shown = status("--ephemeral")
    assert shown["state"] == "ready"
    assert shown["data_dir"].startswith(str(tmp_path))
    assert logboat("down", "--ephemeral").exit_code == 0
    assert not os.path.exists(shown["data_dir"])


def test_a_failed_ephemeral_up_leaves_nothing(
    folder: ClusterFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr("logboat.client.cluster.plan.first_taken", lambda ports: (1, "Kafka", 9092))
    result = logboat("up", "--ephemeral", "--detach")
    assert result.exit_code == 1
    assert "port 9092 is in use" in result.stderr
    assert [name for _, _, names in os.walk(tmp_path) for name in names] == []
