"""The verbs of the command line as a person would use them, on a cluster of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from logboat.client.cli import app
from logboat.testing import PATIENT, LocalCluster

LOGBOAT = [sys.executable, "-m", "logboat.client.cli"]
DEADLINE_S = 60.0


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(nodes=3, settings=PATIENT) as running:
        yield running


@pytest.fixture
def run(cluster: LocalCluster, tmp_path: Path) -> Run:
    return Run(cluster, tmp_path)


class Run:
    def __init__(self, cluster: LocalCluster, home: Path) -> None:
        self.cluster = cluster
        self.settings: dict[str, str | None] = {
            "LOGBOAT_HTTP": cluster.http_urls[0],
            "XDG_CONFIG_HOME": str(home),
        }

    @property
    def environment(self) -> dict[str, str]:
        """Of a process of its own."""
        return os.environ | {name: value for name, value in self.settings.items() if value}

    def __call__(
        self, *arguments: str, stdin: str = "", status: int | None = 0, **environment: str
    ) -> Result:
        """In this process, which spares the machine an interpreter. `status`: None where either
        end is right."""
        done = CliRunner().invoke(
            app, list(arguments), input=stdin, env={**self.settings, **environment}
        )
        assert status is None or done.exit_code == status, done.stderr
        return done

    def of_folder(self, *arguments: str, status: int | None = 0) -> Result:
        return self(*arguments, "--data-dir", self.cluster.folder.path, status=status)

    def as_process(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Parent of the nodes that it starts."""
        return subprocess.run(
            [*LOGBOAT, *arguments, "--data-dir", self.cluster.folder.path],
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
            env=self.environment,
        )


def test_a_topic_is_copied_exactly_through_a_pipe(run: Run) -> None:
    for name in ("first", "second"):
        run("topic", "create", name, "-p", "2", "-r", "3")
    now = time.time_ns() // 1_000_000  # Older ones would fall to retention.
    lines: list[dict[str, Any]] = [
        {"partition": 0, "timestamp": now, "key": "k", "value": "v", "headers": []},
        {
            "partition": 0,
            "timestamp": now,
            "key": "",
            "value": "\u2028 \r \u0000 ü 🚢",
            "headers": [],
        },
        {"partition": 0, "timestamp": now - 1_000, "key": None, "value": "", "headers": []},
        {
            "partition": 0,
            "timestamp": now + 1_000,
            "key": "",
            "value": None,
            "headers": [
                {"key": "h", "value": "1"},
                {"key": "h", "value": None},
                {"key": "h", "value": ""},
                {"key": "", "value": "2"},
                {"key": "h", "value": "1"},
            ],
        },
        {
            "partition": 1,
            "timestamp": now + 1,
            "key": None,
            "value": None,
            "headers": [{"key": "h", "value": "//8=", "encoding": "base64"}],
        },
        {
            "partition": 1,
            "timestamp": now - 1,
            "key": "//8=",
            "key_encoding": "base64",
            "value": "",
        },
    ]
    run("produce", "first", "--json", stdin="".join(json.dumps(line) + "\n" for line in lines))
    shell = " ".join(LOGBOAT)
    piped = subprocess.run(
        f"{shell} consume first -e -f json | {shell} produce second --json",
        shell=True,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
        env=run.environment,
    )
    assert f"{len(lines)} records" in piped.stderr
    first, second = (
        run("consume", name, "-e", "-f", "json").stdout for name in ("first", "second")
    )
    assert first.replace('"first"', '"second"') == second
    told = [json.loads(line) for line in second.rstrip("\n").split("\n")]
    for line in told:
        del line["topic"], line["offset"]
    assert told == [{"headers": [], **line} for line in lines]


def test_a_closed_pipe_is_no_error(run: Run) -> None:
    run("topic", "create", "many", "-p", "1")
    run("produce", "many", stdin="".join(f"{n}\n" for n in range(30_000)))
    shell = " ".join(LOGBOAT)
    head = subprocess.run(
        f"{shell} consume many | head -1",
        shell=True,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
        env=run.environment,
    )
    assert head.stdout == "0\n"
    assert head.stderr == ""


def test_who_follows_outlives_a_node_and_sees_topics_grow_and_go(run: Run, tmp_path: Path) -> None:
    for name in ("followed", "other"):
        run("topic", "create", name, "-p", "1", "-r", "3")
    run("produce", "followed", stdin="a\n")
    everywhere = ",".join(run.cluster.http_urls)
    out, err = tmp_path / "out", tmp_path / "err"

    def seen(*lines: str) -> None:
        run.cluster.wait_until(
            lambda: None if out.read_text().splitlines() == [*lines] else out.read_text(), "seen"
        )

    with (
        out.open("w") as into,
        err.open("w") as told,
        subprocess.Popen(
            [*LOGBOAT, "consume", "followed", "other", "-f", r"%t-%p %v\n"],
            stdout=into,
            stderr=told,
            env={**run.environment, "LOGBOAT_HTTP": everywhere},
        ) as reader,
    ):
        try:
            seen("followed-0 a")
            run.cluster.kill(1)  # Whom it had asked first.
            run("produce", "other", stdin="b\n", LOGBOAT_HTTP=everywhere)
            seen("followed-0 a", "other-0 b")
            run.cluster.start(1)
            run("topic", "add-partitions", "followed", "-n", "1")
            run("produce", "followed", "-p", "1", stdin="c\n")
            seen("followed-0 a", "other-0 b", "followed-1 c")
            run("topic", "delete", "other")
            assert reader.wait(120) == 1
        finally:
            reader.kill()
    # Before it, perhaps, that the killed node cannot be reached.
    last = err.read_text().splitlines()[-1]
    assert last == "logboat: there is no topic 'other'; `logboat topic list` shows all"


def test_a_group_goes_on_where_it_was(run: Run) -> None:
    run("topic", "create", "grouped", "-p", "1")
    run("produce", "grouped", stdin="a\nb\nc\n")
    assert run("consume", "grouped", "-g", "readers", "-n", "2").stdout == "a\nb\n"
    assert run("consume", "grouped", "-g", "readers", "-n", "1").stdout == "c\n"
    plain = run("group", "lag", "readers", "-o", "plain").stdout
    assert plain.split("\t")[:4] == ["readers", "grouped", "0", "3"]


def test_where_to_begin_and_what_to_show(run: Run) -> None:
    run("topic", "create", "places", "-p", "1")
    run("produce", "places", "-k", "key", "-H", "h=1", stdin="a\nb\nc\n")
    assert run("consume", "places", "-o", "+1", "-e").stdout == "b\nc\n"
    assert run("consume", "places", "-o", "@0", "-n", "1", "-f", r"%o %k %v %h\n").stdout == (
        "0 key a h=1\n"
    )
    assert run("consume", "places", "-e", "-o", "-1", "--meta-only").stdout.split("\t")[:3] == [
        "places",
        "0",
        "2",
    ]


def test_a_topic_is_changed_and_trimmed_whoever_leads_it(run: Run) -> None:
    run("topic", "create", "changed", "-p", "3", "-r", "3", "-c", "retention.ms=7200000")
    run.cluster.wait_in_sync("changed")
    run("produce", "changed", "-p", "1", stdin="a\nb\nc\n")
    changed = run("topic", "config", "set", "changed", "retention.ms=3600000", "-o", "plain")
    assert "retention.ms\t3600000\tDYNAMIC_TOPIC_CONFIG\n" in changed.stdout
    left = run("topic", "config", "unset", "changed", "retention.ms", "-o", "plain")
    assert "retention.ms" not in left.stdout
    trim = ("topic", "trim", "changed", "-o", "plain", "--before")
    assert run(*trim, "2", "-p", "1").stdout == "changed\t1\t2\n"
    assert run("consume", "changed", "-e").stdout == "c\n"
    # One of three leaders is another node than the one that is asked.
    assert run(*trim, "end").stdout == "changed\t0\t0\nchanged\t1\t3\nchanged\t2\t0\n"
    more = run("topic", "add-partitions", "changed", "-n", "1", "-o", "plain")
    assert more.stdout == "changed\t4\n"


def test_a_partition_is_looked_at_and_handed_over(run: Run) -> None:
    run("topic", "create", "handed", "-p", "1", "-r", "3")
    states: list[dict[str, Any]] = []

    def why_not_all() -> str | None:
        shown = json.loads(run("partition", "describe", "handed", "0", "-o", "json").stdout)
        states[:] = shown["replica_states"]
        return None if all(one["log"] and one["in_sync"] for one in states) else f"{states}"

    run.cluster.wait_until(why_not_all, "every replica has a log")
    to = next(one["node"] for one in states if one["role"] != "leader")
    handed = run("partition", "transfer-leader", "handed", "0", str(to), "-o", "plain").stdout
    assert handed.split("\t")[:3] == ["handed", "0", str(to)]


def test_the_metadata_log_tells_what_was_decided(run: Run) -> None:
    run("topic", "create", "decided", "-p", "2")
    entries = json.loads(run("quorum", "log", "-n", "1000", "-o", "json").stdout)
    created = [one for one in entries if one["kind"] == "CreateTopics"]
    assert "decided" in [topic["name"] for one in created for topic in one["content"]["topics"]]
    [last] = run("quorum", "log", "-n", "1", "-o", "plain").stdout.splitlines()
    since = json.loads(run("quorum", "log", "--since", last.split("\t")[0], "-o", "json").stdout)
    assert since[0]["index"] == int(last.split("\t")[0])


def test_a_cluster_that_was_not_started_with_faults_says_how(run: Run) -> None:
    assert "--with-faults" in run("chaos", "partition", "1", "2", status=1).stderr


def test_lines_that_are_not_written_go_where_they_can_be_found(run: Run, tmp_path: Path) -> None:
    run("topic", "create", "small", "-p", "1", "-c", "max.message.bytes=1000")
    dead = tmp_path / "dead"
    done = run(
        "produce",
        "small",
        "--dead-letter",
        str(dead),
        stdin=f"fits\n{'x' * 5_000}\nfits too\n",
        status=1,
    )
    assert "2 records written" in done.stderr
    assert dead.read_text() == "x" * 5_000 + "\n"
    assert run("consume", "small", "-e").stdout == "fits\nfits too\n"


def test_one_node_is_killed_started_paused_and_read(run: Run) -> None:
    assert "Killed node 3" in run.of_folder("cluster", "node", "kill", "3").stderr
    assert "ready" in run.as_process("cluster", "node", "start", "3").stderr
    run.of_folder("cluster", "node", "pause", "3")
    run.of_folder("cluster", "node", "resume", "3")
    status = run.of_folder("cluster", "status", "--exit-when-healthy", "-o", "plain").stdout
    assert [line.split("\t")[0] for line in status.splitlines()] == ["1", "2", "3"]
    assert run.of_folder("cluster", "logs", "3").stdout
    assert "export LOGBOAT_BOOTSTRAP=" in run.of_folder("cluster", "env").stdout


def test_a_profile_names_a_cluster(run: Run) -> None:
    run.settings["LOGBOAT_HTTP"] = None
    run("profile", "set", "mine", run.cluster.http_urls[0])
    assert "mine" in run("profile", "list").stdout
    run("topic", "list")
    run("profile", "delete", "mine")


def test_what_a_cluster_needs_is_looked_at(run: Run) -> None:
    room = "nodes 1, 2, 3 have room for data"
    deadline = time.monotonic() + DEADLINE_S
    while True:
        findings = json.loads(run.of_folder("doctor", "-o", "json", status=None).stdout)
        # How full this machine's disk is, is its own affair.
        wrong = [one for one in findings if not one["good"] and one["what"] != room]
        if not wrong or time.monotonic() > deadline:
            break  # A node that was killed before may be about to join its partitions again.
    assert not wrong
    what = [finding["what"] for finding in findings]
    assert room in what
    for node in (1, 2, 3):
        assert f"node {node} answers as Kafka does at its advertised address" in what
        assert f"node {node} tells the time of here at its advertised HTTP address" in what
    nobody = run("doctor", status=1, LOGBOAT_HTTP="http://127.0.0.1:1")
    assert "WRONG" in nobody.stdout


def test_a_cluster_is_measured_and_verified(run: Run) -> None:
    for what in ("produce", "consume", "e2e"):
        figures = json.loads(run("bench", what, "-n", "50", "-o", "json").stdout)
        assert figures["records"] == 50
        assert figures["records_per_second"] > 0
    verdict = run("verify", "-n", "500").stdout
    assert verdict == "verify: held | acknowledged=500 lost=0 replaced=0 doubled=0\n"
    assert run("verify", "-n", "5", "-o", "plain").stdout == "held\t5\t0\t0\t0\n"
    assert "logboat-" not in run("topic", "list").stdout


def test_text_for_other_programs(run: Run) -> None:
    assert run.cluster.http_urls[0].removeprefix("http://") in run("generate", "prometheus").stdout
    for shell in ("bash", "zsh", "fish"):
        assert "_LOGBOAT_COMPLETE" in run("generate", "completion", shell).stdout
    overview = json.loads(run("api", "GET", "/api/v1/cluster").stdout)
    assert len(overview["nodes"]) == 3
    assert "HTTP 404" in run("api", "get", "/api/v1/topics/none", status=1).stderr
