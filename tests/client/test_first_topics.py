"""`cluster up --topic`: what it takes, and that the topics are there when the cluster is."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

from logboat.client.cli import app
from logboat.client.cluster.first_topics import LEGAL_NAME, FirstTopic, first_topics
from logboat.client.cluster.folder import ClusterFolder
from logboat.client.cluster.launch import running_nodes
from logboat.client.cluster.state import load_state
from logboat.client.failure import ExitStatus, Failure
from logboat.metadata.topic_names import why_invalid


def up(folder: ClusterFolder, *arguments: str) -> Result:
    where = ("--any-port", "--detach", "--data-dir", folder.path)
    return CliRunner().invoke(app, ["cluster", "up", *where, *arguments])


@pytest.mark.parametrize(
    ("text", "topic"),
    [
        ("orders", FirstTopic("orders", None, None)),
        ("orders:6", FirstTopic("orders", 6, None)),
        ("a.b_c-1:6:3", FirstTopic("a.b_c-1", 6, 3)),
    ],
)
def test_numbers_may_be_left_out_from_the_end(text: str, topic: FirstTopic) -> None:
    assert FirstTopic.parse(text) == topic


@given(
    st.text(st.sampled_from("aZ09._-: ä\n"), max_size=4)
    | st.integers(248, 251).map(lambda length: "a" * length)
)
def test_a_name_is_legal_where_the_controller_takes_it(name: str) -> None:
    assert (LEGAL_NAME.fullmatch(name) is None) == (why_invalid(name) is not None)


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (("",), "'' is no name"),
        (("two words",), "'two words' is no name"),
        (("..",), "'..' is no name"),
        (("orders:six",), "'six' is no number from 1 on"),
        (("orders:0",), "'0' is no number from 1 on"),
        (("orders:-1",), "'-1' is no number from 1 on"),
        (("orders:",), "'' is no number from 1 on"),
        (("orders:1:٣",), "is no number from 1 on"),
        (("orders:" + "9" * 5000,), "is no number from 1 on"),
        (("orders:1:1:1",), r"is not NAME\[:PARTITIONS\[:REPLICAS\]\]"),
        (("orders:1", "lines", "orders:1"), "names orders more than once"),
    ],
)
def test_what_is_no_topic_is_a_usage_error(texts: tuple[str, ...], said: str) -> None:
    with pytest.raises(Failure, match=said) as refused:
        first_topics(texts)
    assert refused.value.status is ExitStatus.USAGE


@pytest.mark.parametrize(
    "wrong", [("--topic", "a b"), ("--topic", "a", "--topic", "a"), ("--topic", "a:1:4")]
)
def test_nothing_is_started_for_topics_that_cannot_be(
    folder: ClusterFolder, wrong: tuple[str, ...]
) -> None:
    result = up(folder, *wrong)
    assert result.exit_code == ExitStatus.USAGE
    assert result.stderr.count("\n") == 1
    assert not os.path.exists(folder.path)


def test_topics_are_there_when_up_returns(folder: ClusterFolder) -> None:
    result = up(folder, "--nodes", "2", "--topic", "orders:3:1", "--topic", "late", "-o", "json")
    assert result.exit_code == 0, result.stderr
    document = json.loads(result.stdout)
    assert document["state"] == "ready"
    assert document["topics"] == [
        {"name": "orders", "partition_count": 3, "replication_factor": 1},
        {"name": "late", "partition_count": 4, "replication_factor": 2},
    ]


def test_the_things_to_try_are_about_the_topic_that_is_there(folder: ClusterFolder) -> None:
    shown = up(folder, "--nodes", "1", "--topic", "orders:1:1").stdout
    assert "topic orders: 1 partition and 1 replica\n" in shown
    assert "  echo hello | " in shown
    assert "-t orders -C" in shown
    assert "greetings" not in shown


def test_a_topic_that_is_there_already_has_to_be_the_one_that_is_asked_for(
    folder: ClusterFolder,
) -> None:
    assert up(folder, "--nodes", "2", "--topic", "orders:3:2").exit_code == 0
    CliRunner().invoke(app, ["cluster", "down", "--data-dir", folder.path])

    refused = up(folder, "--topic", "orders:6:2")
    assert refused.exit_code == ExitStatus.FAILED
    assert (
        "logboat: there is a topic orders, but it has 3 partitions and 2 replicas, not 6 "
        "partitions and 2 replicas; leave it out of --topic, or delete it first\n"
    ) in refused.stderr
    assert running_nodes(folder, load_state(folder)) == {}
    refused = up(folder, "--topic", "orders:3:3")
    assert refused.exit_code == ExitStatus.USAGE, "the folder's cluster has two nodes"

    assert up(folder, "--topic", "orders:3").exit_code == 0


@pytest.mark.parametrize(
    ("text", "is_equal"),
    [("t", True), ("t:3", True), ("t:3:2", True), ("t:2", False), ("t:3:1", False)],
)
def test_what_was_left_out_makes_no_difference(text: str, is_equal: bool) -> None:
    there = {"name": "t", "partition_count": 3, "replication_factor": 2}
    assert (FirstTopic.parse(text).difference(there) is None) is is_equal


def test_a_refused_topic_is_one_sentence_and_nothing_of_the_cluster_runs(
    folder: ClusterFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = up(folder, "--nodes", "1", "--topic", "refused")
    assert refused.exit_code == ExitStatus.FAILED
    assert "logboat: topic refused is refused: not a topic for us\n" in refused.stderr
    assert running_nodes(folder, load_state(folder)) == {}

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "t"))
    os.mkdir(tmp_path / "t")
    arguments = ["cluster", "up", "--ephemeral", "--any-port", "--nodes", "1", "--topic", "refused"]
    assert CliRunner().invoke(app, arguments).exit_code == ExitStatus.FAILED
    assert [name for _, _, names in os.walk(tmp_path / "t") for name in names] == []
