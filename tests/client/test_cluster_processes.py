"""`logboat cluster` with real nodes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from logboat.client.cli import app

pytestmark = pytest.mark.processes

LOGBOAT = [sys.executable, "-m", "logboat.client.cli"]


def logboat(*arguments: str, stdin: str | None = None) -> Result:
    """In this process, which spares the machine an interpreter."""
    return CliRunner().invoke(app, list(arguments), input=stdin)


@pytest.fixture
def data_dir(tmp_path: Path) -> Iterator[str]:
    path = str(tmp_path / "logboat-data")
    yield path
    logboat("cluster", "purge", "--data-dir", path)


def status(data_dir: str) -> Any:
    shown = logboat("cluster", "status", "-o", "json", "--data-dir", data_dir)
    assert shown.exit_code == 0, shown.stderr
    return json.loads(shown.stdout)


def up(data_dir: str, *arguments: str, good: bool = True) -> str:
    """A process of its own, as the nodes' parent; what it said."""
    where = ["--detach", "--data-dir", data_dir]
    ran = subprocess.run(
        [*LOGBOAT, "cluster", "up", *where, *arguments],
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert ran.returncode == (0 if good else 1), ran.stderr
    return ran.stderr


def test_three_nodes_keep_their_records_over_down_and_up(data_dir: str) -> None:
    up(data_dir, "--any-port", "--topic", "greetings:3:3")
    before = status(data_dir)
    assert before["state"] == "ready"
    assert [node["id"] for node in before["nodes"]] == [1, 2, 3]
    assert sorted(node["role"] for node in before["nodes"]) == ["follower", "follower", "leader"]
    for node in before["nodes"]:
        command_line = Path(f"/proc/{node['pid']}/cmdline").read_text().split("\0")
        assert os.path.join(data_dir, f"node-{node['id']}", "node.toml") in command_line
        # Any node answers: each is asked for something that another one leads.
        url = f"http://{node['http']}"
        for partition in "012":
            text = f"{node['id']}/{partition}\n"
            wrote = logboat("produce", "greetings", "-p", partition, "--url", url, stdin=text)
            assert wrote.exit_code == 0, wrote.stderr

    assert logboat("cluster", "down", "--data-dir", data_dir).exit_code == 0
    assert status(data_dir)["state"] == "down"
    up(data_dir, "--any-port", "--topic", "greetings:3:3")
    after = status(data_dir)
    assert after["cluster_id"] == before["cluster_id"]
    assert [n["kafka"] for n in after["nodes"]] == [n["kafka"] for n in before["nodes"]]
    url = f"http://{after['nodes'][1]['http']}"
    read = logboat("consume", "greetings", "-e", "--url", url)
    assert sorted(read.stdout.split()) == [f"{n}/{p}" for n in "123" for p in "012"]


def test_a_killed_node_shows_as_dead_and_up_starts_it_again(data_dir: str) -> None:
    up(data_dir, "--any-port")
    victim = status(data_dir)["nodes"][0]
    os.kill(victim["pid"], signal.SIGKILL)
    end = time.monotonic() + 60
    while (shown := status(data_dir))["state"] == "ready" and time.monotonic() < end:
        time.sleep(0.05)  # A process takes its time to die.
    assert shown["state"] == "degraded"
    assert shown["nodes"][0]["state"] == "dead"
    up(data_dir, "--any-port")
    assert status(data_dir)["state"] == "ready"


def test_ctrl_c_stops_a_foreground_cluster_in_order(data_dir: str) -> None:
    arguments = ["cluster", "up", "--nodes", "1", "--any-port", "--data-dir", data_dir]
    with subprocess.Popen(
        [*LOGBOAT, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout is not None
        first_line = running.stdout.readline()
        running.send_signal(signal.SIGINT)
        _, said = running.communicate(timeout=180)
    assert first_line.startswith("NODE"), said
    assert running.returncode == 0, said
    assert "All nodes have stopped" in said
    assert status(data_dir)["state"] == "down"


def test_a_folder_of_another_cluster_is_one_sentence(data_dir: str) -> None:
    up(data_dir, "--any-port", "--nodes", "1")
    assert logboat("cluster", "down", "--data-dir", data_dir).exit_code == 0
    config = Path(data_dir, "node-1", "node.toml")
    kept = [line for line in config.read_text().splitlines() if not line.startswith("cluster.id")]
    config.write_text("\n".join(['cluster.id = "another-cluster"', *kept]) + "\n")
    assert "another-cluster" in up(data_dir, good=False)
    assert status(data_dir)["state"] == "down"
