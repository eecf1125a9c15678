"""`logboat topic`, `produce` and `consume` against the HTTP API of a node in memory."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from random import Random

import pytest
from aiohttp.test_utils import TestServer
from typer.testing import CliRunner, Result

from logboat.client.cli import app
from logboat.client.failure import ExitStatus
from logboat.node.http.server import application
from logboat.wire import ErrorCode
from tests.http.fake_http_node import FakeNode, topic


@pytest.fixture(autouse=True)
def one_node_knows_all_topics(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody need wait until others have heard of a topic, too."""
    monkeypatch.setattr("logboat.client.sdk.transport.NOT_FOUND_SECONDS", 0.05)


@pytest.fixture
def node() -> FakeNode:
    fake = FakeNode()
    fake.add(topic("orders", leaders=[1, 2]))
    return fake


@pytest.fixture
async def url(node: FakeNode) -> AsyncIterator[str]:
    async with TestServer(application(node, Random(1), host="127.0.0.1")) as server:
        yield f"http://127.0.0.1:{server.port}"


async def logboat(url: str, *arguments: str, stdin: str | None = None) -> Result:
    invoke: Callable[[], Result] = lambda: CliRunner().invoke(  # noqa: E731
        app, [*arguments, "--url", url], input=stdin
    )
    return await asyncio.to_thread(invoke)


async def test_topics_are_created_listed_described_and_deleted(url: str) -> None:
    made = await logboat(url, "topic", "create", "new", "-p", "2", "-c", "retention.ms=5")
    assert (made.exit_code, made.stdout) == (0, "")
    listed = await logboat(url, "topic", "list")
    assert listed.stdout.splitlines()[1].split() == ["new", "2", "3"]
    described = await logboat(url, "topic", "describe", "new")
    assert described.stdout.splitlines()[2].split() == ["0", "1", "0", "1,2,3", "1,2,3", "0"]
    document = json.loads((await logboat(url, "topic", "describe", "new", "-o", "json")).stdout)
    assert document["partition_count"] == 2
    assert (await logboat(url, "topic", "delete", "new")).exit_code == 0
    assert (await logboat(url, "topic", "describe", "new")).exit_code == ExitStatus.FAILED


async def test_lines_go_in_and_come_out(url: str) -> None:
    wrote = await logboat(url, "produce", "orders", "-p", "1", stdin="first\nsecond\n\n")
    assert (wrote.exit_code, wrote.stdout) == (0, "")
    assert "3 records" in wrote.stderr
    read = await logboat(url, "consume", "orders", "-e")
    assert read.stdout == "first\nsecond\n\n"
    last = await logboat(url, "consume", "orders", "-o", "-2", "-n", "1")
    assert last.stdout == "second\n"
    assert (await logboat(url, "consume", "orders", "-o", "end", "-e")).stdout == ""


async def test_keys_are_split_off(url: str) -> None:
    await logboat(url, "produce", "orders", "-K", ":", stdin="k:v:w\n")
    read = await logboat(url, "consume", "orders", "-e", "--json")
    record = json.loads(read.stdout)
    assert (record["key"], record["value"]) == ("k", "v:w")
    refused = await logboat(url, "produce", "orders", "-K", ":", stdin="novalue\n")
    assert refused.exit_code == ExitStatus.FAILED


async def test_a_format_of_consume_is_one_of_produce(url: str, tmp_path: Path) -> None:
    dead = tmp_path / "dead"
    lines = "1 k: v: w\nno record\n1 : \n9 k: v\n"
    arguments = ["-f", r"%p %k: %v\n"]
    wrote = await logboat(
        url, "produce", "orders", *arguments, "--dead-letter", str(dead), stdin=lines
    )
    assert wrote.exit_code == ExitStatus.FAILED
    assert "2 records written to orders, 2 were not." in wrote.stderr
    assert r"line 2: 'no record' is not of the form '%p %k: %v\\n'" in wrote.stderr
    assert dead.read_text() == "no record\n9 k: v\n"
    read = await logboat(url, "consume", "orders", "-e", *arguments)
    assert read.stdout == "1 k: v: w\n1 : \n"


@pytest.mark.parametrize("many", [1, 2_000])
async def test_a_line_for_a_partition_that_is_not_there_is_told_and_the_others_are_written(
    url: str, tmp_path: Path, many: int
) -> None:
    dead = tmp_path / "dead"
    lines = "0 k: a\n" + "2 k: b\n" * many + "1 k: c\n"
    arguments = ["-f", r"%p %k: %v\n", "--dead-letter", str(dead)]
    wrote = await logboat(url, "produce", "orders", *arguments, stdin=lines)
    assert wrote.exit_code == ExitStatus.FAILED
    told = "logboat: not written: line 2: orders has no partition 2, its partitions are 0 to 1\n"
    assert wrote.stderr.startswith(told)
    assert wrote.stderr.count("\n") == min(many, 5) + 1
    assert f"2 records written to orders, {many} were not." in wrote.stderr
    assert dead.read_text() == "2 k: b\n" * many
    read = await logboat(url, "consume", "orders", "-e", "-f", r"%p %v\n")
    assert sorted(read.stdout.splitlines()) == ["0 a", "1 c"]


async def test_a_partition_that_a_json_line_names_must_be_there_too(url: str) -> None:
    lines = '{"value": "a", "partition": 7}\n{"value": "b", "partition": 1}\n'
    wrote = await logboat(url, "produce", "orders", "--json", stdin=lines)
    assert wrote.exit_code == ExitStatus.FAILED
    assert "line 1: orders has no partition 7" in wrote.stderr
    assert "1 records written to orders, 1 were not." in wrote.stderr


@pytest.mark.parametrize(
    ("format_", "others"),
    [
        ("%k%v", []),
        ("%v", ["-K", ":"]),
        ("%v", ["--json"]),
        ("%k %v", ["-k", "key"]),
        ("%p %v", ["-p", "1"]),
    ],
)
async def test_a_format_that_cannot_be_meant_is_a_usage_error(
    url: str, format_: str, others: list[str]
) -> None:
    # Standard input would never end.
    result = await logboat(url, "produce", "orders", "-f", format_, *others, "/dev/zero")
    assert result.exit_code == ExitStatus.USAGE
    assert result.stderr.count("\n") == 1


async def test_many_lines_travel_in_bounded_bodies(url: str, node: FakeNode) -> None:
    lines = "".join(f"{number:0100d}\n" for number in range(1_200))
    await logboat(url, "produce", "orders", "-p", "0", stdin=lines)
    assert node.ends["orders", 0] == 1_200
    assert len(node.asked) >= 3


async def test_what_the_node_says_comes_through_with_its_hint(url: str, node: FakeNode) -> None:
    result = await logboat(url, "produce", "nothing", stdin="x\n")
    assert result.exit_code == ExitStatus.FAILED
    assert "there is no topic 'nothing'" in result.stderr
    node.errors["orders", 0] = ErrorCode.REQUEST_TIMED_OUT
    arguments = ["produce", "orders", "-p", "0", "--timeout", "1.5"]
    result = await logboat(url, *arguments, stdin="x\n")
    assert result.exit_code == ExitStatus.TIMED_OUT
    assert "may have been" in result.stderr


async def test_lines_that_are_no_records_stop_no_others(url: str, tmp_path: Path) -> None:
    dead = tmp_path / "dead"
    lines = (
        'no json\n{"value": "a", "partition": 0}\n{"value": 1}\n{"value": "b", "partition": 0}\n'
    )
    wrote = await logboat(
        url, "produce", "orders", "--json", "--dead-letter", str(dead), stdin=lines
    )
    assert wrote.exit_code == ExitStatus.FAILED
    assert "2 records written to orders, 2 were not." in wrote.stderr
    assert dead.read_text() == 'no json\n{"value": 1}\n'
    assert (await logboat(url, "consume", "orders", "-e")).stdout == "a\nb\n"


async def test_what_no_line_could_be_written_to_is_told_before_one_is_read(url: str) -> None:
    for arguments, said in (
        (["nothing"], "there is no topic 'nothing'; `logboat topic list` shows all"),
        (["order"], "did you mean 'orders'?"),
        (["orders", "-p", "2"], "orders has no partition 2, its partitions are 0 to 1"),
    ):
        # Standard input would never end.
        result = await logboat(url, "produce", *arguments, "/dev/zero")
        assert result.exit_code == ExitStatus.FAILED
        assert said in result.stderr
        assert result.stderr.count("\n") == 1


async def test_a_cluster_that_is_lost_ends_the_reading(url: str, node: FakeNode) -> None:
    node.errors["orders", 0] = ErrorCode.REQUEST_TIMED_OUT
    arguments = ["produce", "orders", "-p", "0", "--timeout", "1.0", "--rate", "2"]
    result = await logboat(url, *arguments, stdin="x\n" * 1_000)
    assert result.exit_code == ExitStatus.TIMED_OUT
    assert "is not read" in result.stderr


async def test_nothing_in_nothing_written_is_good(url: str) -> None:
    result = await logboat(url, "produce", "orders", stdin="")
    assert (result.exit_code, result.stderr) == (0, "0 records written to orders.\n")


async def test_another_topic_is_suggested_by_every_verb(url: str) -> None:
    for verb in (["topic", "describe"], ["topic", "delete"], ["consume", "-e"]):
        result = await logboat(url, *verb, "oders")
        assert result.exit_code == ExitStatus.FAILED
        assert "did you mean 'orders'?" in result.stderr


async def test_a_format_that_shows_values_is_not_for_meta_only(url: str) -> None:
    result = await logboat(url, "consume", "orders", "-e", "--meta-only", "-f", "%v")
    assert result.exit_code == ExitStatus.USAGE


async def test_a_node_that_is_not_there_is_status_3() -> None:
    result = await logboat("http://127.0.0.1:1", "topic", "list")
    assert result.exit_code == ExitStatus.UNREACHABLE
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ["topic", "create", "t", "-c", "novalue"],
        ["topic", "create", "t", "-p", "0"],
        ["consume", "t", "-o", "middle"],
    ],
)
async def test_what_cannot_be_meant_is_a_usage_error(url: str, arguments: list[str]) -> None:
    assert (await logboat(url, *arguments)).exit_code == ExitStatus.USAGE


async def test_a_url_that_is_none_is_a_usage_error() -> None:
    assert (await logboat("localhost", "topic", "list")).exit_code == ExitStatus.USAGE
