"""`logboat topic config | add-partitions | trim` and `partition` against the HTTP API of a node in
memory."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from random import Random

import pytest
from aiohttp.test_utils import TestServer
from typer.testing import CliRunner, Result

from logboat.client.cli import app
from logboat.client.failure import ExitStatus
from logboat.metadata.image import Endpoint
from logboat.node.http.server import application
from logboat.wire.records import Record, encode_batch
from tests.http.changing_node import ChangingNode
from tests.http.fake_http_node import topic


@pytest.fixture
async def node() -> ChangingNode:
    changing = ChangingNode()
    changing.add(topic("orders", leaders=[1, 2]))
    return changing


@pytest.fixture
async def url(node: ChangingNode) -> AsyncIterator[str]:
    async with TestServer(application(node, Random(1), host="127.0.0.1")) as server:
        assert server.port is not None
        node.set_http(1, Endpoint("127.0.0.1", server.port))
        node.set_http(2, None)
        node.set_http(3, None)
        yield f"http://127.0.0.1:{server.port}"


async def logboat(url: str, *arguments: str) -> Result:
    return await asyncio.to_thread(
        lambda: CliRunner().invoke(app, [*arguments, "--url", url], catch_exceptions=False)
    )


async def test_settings_are_set_shown_and_unset(url: str) -> None:
    done = await logboat(
        url, "topic", "config", "set", "orders", "retention.ms=60000", "cleanup.policy=compact"
    )
    assert done.exit_code == 0
    header, *rows = done.stdout.splitlines()
    assert header.split() == ["SETTING", "VALUE", "SOURCE"]
    assert rows[0].split() == ["retention.ms", "60000", "DYNAMIC_TOPIC_CONFIG"]
    left = await logboat(url, "topic", "config", "unset", "orders", "retention.ms", "-o", "plain")
    assert left.stdout.splitlines() == ["cleanup.policy\tcompact\tDYNAMIC_TOPIC_CONFIG"]
    shown = await logboat(url, "topic", "config", "describe", "orders", "-a", "-o", "json")
    assert {one["source"] for one in json.loads(shown.stdout)} == {
        "DYNAMIC_TOPIC_CONFIG",
        "UNKNOWN",
    }


async def test_a_refused_setting_is_one_sentence_and_a_dry_run_sets_nothing(
    url: str, node: ChangingNode
) -> None:
    refused = await logboat(url, "topic", "config", "set", "orders", "nonsense=1")
    assert refused.exit_code == ExitStatus.FAILED
    assert "Unknown topic config name: nonsense" in refused.stderr
    tried = await logboat(url, "topic", "config", "set", "orders", "flush.ms=1", "--dry-run")
    assert tried.exit_code == 0
    wrong = await logboat(url, "topic", "config", "set", "orders", "flush.ms")
    assert wrong.exit_code == ExitStatus.USAGE
    assert node.settings == {}


async def test_one_setting_is_printed_by_itself(url: str) -> None:
    await logboat(url, "topic", "config", "set", "orders", "retention.ms=60000")
    assert (await logboat(url, "topic", "config", "get", "orders", "retention.ms")).stdout == (
        "60000\n"
    )
    unknown = await logboat(url, "topic", "config", "get", "orders", "nonsense")
    assert unknown.exit_code == ExitStatus.FAILED
    assert "no setting 'nonsense'" in unknown.stderr


async def test_a_topic_is_described_in_the_parts_that_are_asked_for(url: str) -> None:
    await logboat(url, "topic", "config", "set", "orders", "retention.ms=60000")

    async def headers(*flags: str) -> list[str]:
        shown = (await logboat(url, "topic", "describe", "orders", *flags)).stdout
        return [part.split(maxsplit=1)[0] for part in shown.split("\n\n")]

    assert await headers("-s") == ["TOPIC"]
    assert await headers("-p", "-s") == ["TOPIC", "PARTITION"]
    assert await headers("-a") == ["TOPIC", "SETTING", "PARTITION"]
    assert await headers() == ["orders"]
    plain = await logboat(url, "topic", "describe", "orders", "-c", "-o", "plain")
    assert "retention.ms\t60000\tDYNAMIC_TOPIC_CONFIG" in plain.stdout.splitlines()
    shown = json.loads(
        (await logboat(url, "topic", "describe", "orders", "-sp", "-o", "json")).stdout
    )
    assert shown["summary"]["partition_count"] == len(shown["partitions"]) == 2


async def test_partitions_are_added_to_those_that_are_there(url: str) -> None:
    done = await logboat(url, "topic", "add-partitions", "orders", "-n", "3", "-o", "plain")
    assert done.stdout == "orders\t5\n"


async def test_trimming_takes_an_offset_the_end_or_a_time(url: str, node: ChangingNode) -> None:
    node.at_time = {2_500: 2}
    for timestamp in (1_000, 2_000, 3_000):
        node.append("orders", 1, encode_batch([Record(value=b"v", timestamp=timestamp)]))
    one = await logboat(url, "topic", "trim", "orders", "--before", "2", "-p", "1", "-o", "plain")
    assert one.stdout == "orders\t1\t2\n"
    await logboat(url, "topic", "trim", "orders", "--before", "end")
    await logboat(url, "topic", "trim", "orders", "--before", "@2500")
    assert node.trimmed == [(2, 1, 2), (1, 0, -1), (2, 1, -1), (1, 0, 0), (2, 1, 2)]


@pytest.mark.parametrize("arguments", [["--before", "2"], ["--before", "+2", "-p", "0"]])
async def test_trimming_asks_for_a_place_that_is_plain(
    url: str, node: ChangingNode, arguments: list[str]
) -> None:
    refused = await logboat(url, "topic", "trim", "orders", *arguments)
    assert refused.exit_code == ExitStatus.USAGE
    assert node.trimmed == []


async def test_a_partition_is_described_replica_by_replica(url: str) -> None:
    shown = await logboat(url, "partition", "describe", "orders", "1")
    headline, header, *rows = shown.stdout.splitlines()
    assert headline == "orders-1: leader 2, epoch 0"
    assert header.split()[:3] == ["NODE", "ROLE", "IN-SYNC"]
    # Nodes 2 and 3 have no HTTP address here: what they have cannot be said.
    assert [row.split()[:3] for row in rows] == [
        ["1", "follower", "yes"],
        ["2", "leader", "yes"],
        ["3", "follower", "yes"],
    ]
    assert rows[1].split()[3:] == ["-", "-", "-"]
    document = json.loads(
        (await logboat(url, "partition", "describe", "orders", "1", "-o", "json")).stdout
    )
    assert document["replica_states"][1]["log"] is None
    assert (await logboat(url, "partition", "describe", "orders", "2")).exit_code == 1


async def test_a_partitions_leadership_is_handed_over(url: str) -> None:
    done = await logboat(url, "partition", "transfer-leader", "orders", "1", "3", "-o", "plain")
    assert done.stdout == "orders\t1\t3\t1\n"
    refused = await logboat(url, "partition", "transfer-leader", "orders", "1", "9")
    assert refused.exit_code == ExitStatus.FAILED
    assert "no replica" in refused.stderr
