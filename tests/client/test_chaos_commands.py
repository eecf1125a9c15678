"""`logboat chaos` against the HTTP API of a node in memory."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random

import pytest
from aiohttp.test_utils import TestServer
from typer.testing import CliRunner, Result

from logboat.client.cli import app
from logboat.client.failure import ExitStatus
from logboat.metadata.image import Endpoint
from logboat.node.http.server import application
from tests.http.changing_node import ChangingNode
from tests.http.fake_http_node import topic
from tests.seam.injected import new_switches


@pytest.fixture
async def node() -> AsyncIterator[ChangingNode]:
    fake = ChangingNode()
    fake.add(topic("orders", leaders=[1, 2]))
    fake.faults = new_switches()
    yield fake
    if fake.faults is not None:
        fake.faults.heal()


@pytest.fixture
async def url(node: ChangingNode) -> AsyncIterator[str]:
    async with TestServer(application(node, Random(1), host="127.0.0.1")) as server:
        assert server.port is not None
        node.set_http(1, Endpoint("127.0.0.1", server.port))
        node.set_http(2, None)
        node.set_http(3, None)
        yield f"http://127.0.0.1:{server.port}"


async def logboat(url: str, *arguments: str, status: int = 0) -> Result:
    done = await asyncio.to_thread(
        lambda: CliRunner().invoke(app, ["chaos", *arguments, "--url", url], catch_exceptions=False)
    )
    assert done.exit_code == status, done.stderr
    return done


async def test_nodes_are_cut_off_slowed_and_healed(url: str, node: ChangingNode) -> None:
    cut = await logboat(url, "partition", "1", "2", "3", "--for", "60s")
    assert cut.stdout.splitlines()[1].split() == ["1", "2,3", "-", "-", "-", "-"]
    await logboat(url, "delay", "1", "2", "--by", "50ms", "--for", "60s")
    [one] = json.loads((await logboat(url, "status", "-o", "json")).stdout)
    assert (one["node"], one["cut"], one["delays_ms"]) == (1, [2, 3], {"2": 50})
    await logboat(url, "heal")
    assert node.faults is not None
    assert node.faults.cut == []


async def test_who_does_not_answer_is_named_and_the_others_are_healed(
    url: str, node: ChangingNode
) -> None:
    node.set_http(2, Endpoint("127.0.0.1", 1))
    healed = await logboat(url, "heal", "-o", "plain")
    assert healed.stdout == "1\t-\t-\t-\t-\t-\n"
    assert "Node 2 does not answer" in healed.stderr


async def test_what_is_sent_is_dropped_with_a_chance(url: str) -> None:
    done = await logboat(url, "drop", "1", "2", "3", "--chance", "2.5%", "-o", "plain")
    assert done.stdout == "1\t-\t-\t2:0.025,3:0.025\t-\t-\n"
    for chance in ("0%", "101%", "often", "5"):
        refused = await logboat(url, "drop", "1", "2", "--chance", chance, status=ExitStatus.USAGE)
        assert "between 0% and 100%" in refused.stderr


async def test_disk_and_clock_are_wrong_until_healed(url: str, node: ChangingNode) -> None:
    await logboat(url, "disk-full", "1", "--for", "1m")
    done = await logboat(url, "clock", "1", "--by", "-1h", "--for", "1m", "-o", "plain")
    assert done.stdout == "1\t-\t-\t-\tfull\t-3600s\n"
    assert node.faults is not None
    assert (node.faults.disk_is_full, node.faults.clock_offset_ms) == (True, -3_600_000)
    healed = await logboat(url, "heal", "-o", "plain")
    assert healed.stdout == "1\t-\t-\t-\t-\t-\n"
    assert (node.faults.disk_is_full, node.faults.clock_offset_ms) == (False, 0)


async def test_history_tells_what_was_broken_and_by_whom(url: str) -> None:
    await logboat(url, "partition", "1", "2", "3", "--for", "30s")
    await logboat(url, "clock", "1", "--by", "+1d", "--for", "5s")
    entries = json.loads((await logboat(url, "history", "-o", "json")).stdout)
    told = [(one["node"], one["fault"], one["other"], one["amount"]) for one in entries]
    assert told == [(1, "partition", 2, None), (1, "partition", 3, None), (1, "clock", None, "+1d")]
    assert all("@" in one["by"] and "logboat chaos" in one["by"] for one in entries)
    assert [one["until_ms"] - one["at_ms"] for one in entries] == [30_000, 30_000, 5_000]
    plain = (await logboat(url, "history", "-o", "plain")).stdout.splitlines()
    assert [line.split("\t")[2:6] for line in plain][2] == ["1", "clock", "-", "+1d"]


async def test_nobody_is_hurt_when_one_of_them_does_not_exist(url: str, node: ChangingNode) -> None:
    refused = await logboat(url, "disk-full", "1", "7", status=ExitStatus.FAILED)
    assert "there is no node 7" in refused.stderr
    assert node.faults is not None
    assert not node.faults.disk_is_full


@pytest.mark.parametrize(
    "verb",
    [
        ["partition", "1", "2"],
        ["drop", "1", "2"],
        ["disk-full", "1"],
        ["clock", "1", "--by", "1h"],
        ["pause", "1"],
        ["history"],
        ["heal"],
    ],
)
async def test_nodes_without_faults_refuse_with_a_hint(
    url: str, node: ChangingNode, verb: list[str]
) -> None:
    node.faults = None
    assert "--with-faults" in (await logboat(url, *verb, status=ExitStatus.FAILED)).stderr


STEP = '[[step]]\nfault = "disk-full"\n'


async def test_a_plan_is_held_against_the_cluster_before_it_begins(
    url: str, node: ChangingNode, tmp_path: Path
) -> None:
    plan = tmp_path / "plan.toml"
    assert node.faults is not None
    for nodes, told in (
        ("[1, 9]", "step 1: there is no node 9"),
        ('"leader of nothing/0"', "step 1: "),
        ('"leader of orders/2"', "step 1: orders has 2 partitions"),
    ):
        plan.write_text(f"{STEP}nodes = {nodes}")
        refused = await logboat(url, "run", str(plan), status=ExitStatus.FAILED)
        assert told in refused.stderr
    assert node.faults.history.entries() == []
    plan.write_text(f"{STEP}nodes = 1\nwho = 2")
    refused = await logboat(url, "run", str(plan), status=ExitStatus.USAGE)
    assert "plan.toml:4: step 1: unknown key 'who'" in refused.stderr
    plan.write_text(f"{STEP}nodes = 1")
    assert "1 steps, 10s" in (await logboat(url, "run", "--check", str(plan))).stderr
    assert node.faults.history.entries() == []


async def test_a_plan_strikes_on_time_by_role_and_is_undone(
    url: str, node: ChangingNode, tmp_path: Path
) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text(
        'for = "500ms"\n'
        f'{STEP}nodes = "leader of orders/0"\nat = "100ms"\nfor = "9m"\n'
        '[[step]]\nfault = "drop"\nnodes = "controller"\nchance = 0.5\nothers = "any"\n'
        '[[step]]\nfault = "clock"\nnodes = 1\nby = "-1h"\nat = "200ms"\n'
    )
    done = await logboat(url, "run", str(plan), "-o", "json", status=ExitStatus.FAILED)
    strikes = json.loads(done.stdout)
    told = [(one["at_s"], one["fault"], one["nodes"]) for one in strikes]
    assert told == [(0, "drop", [1]), (0.1, "disk-full", [1]), (0.2, "clock", [1])]
    assert [one["outcome"] for one in strikes] == [
        "nobody but node 1 itself is on the other side",
        "done",
        "done",
    ]
    assert "disk-full leader of orders/0 (node 1) for 540s" in done.stderr
    assert node.faults is not None
    assert (node.faults.disk_is_full, node.faults.clock_offset_ms) == (False, 0)
    assert [one.kind for one in node.faults.history.entries()] == ["disk-full", "clock"]
    assert "plan plan.toml" in node.faults.history.entries()[0].by


async def test_a_strike_that_meets_nobody_is_told_and_the_rest_goes_on(
    url: str, node: ChangingNode, tmp_path: Path
) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text(
        f'{STEP}nodes = "leader of orders/1"\nfor = "50ms"\n'
        f'{STEP}nodes = 1\nat = "100ms"\nfor = "50ms"\n'
    )
    done = await logboat(url, "run", str(plan), "-o", "plain", status=ExitStatus.FAILED)
    first, second = done.stdout.splitlines()
    assert first.split("\t")[4] == "nobody is leader of orders/1 now"
    assert second.split("\t")[2:] == ["1", "50ms", "done"]
