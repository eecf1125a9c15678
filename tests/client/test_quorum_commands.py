"""`logboat quorum` against the HTTP API of a node in memory."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from random import Random
from uuid import UUID

import pytest
from aiohttp.test_utils import TestServer
from typer.testing import CliRunner, Result

from logboat.client.cli import app
from logboat.client.failure import ExitStatus
from logboat.metadata.codec import encode_command
from logboat.metadata.commands import FenceBroker, NewController
from logboat.node.http.server import application
from logboat.raftlog import CommittedEntry, LogPage
from logboat.wire import ErrorCode
from logboat.wire.messages.describe_quorum import ReplicaState
from tests.http.fake_http_node import NOW_MS, FakeNode, NewLog


@pytest.fixture
def node() -> FakeNode:
    fake = FakeNode()
    fake.quorum_voters = [
        ReplicaState(replica_id=1, log_end_offset=95, last_fetch_timestamp=NOW_MS),
        ReplicaState(
            replica_id=2,
            replica_directory_id=UUID(int=2),
            log_end_offset=90,
            last_fetch_timestamp=NOW_MS - 1500,
        ),
    ]
    fake.quorum_observers = [ReplicaState(replica_id=4, log_end_offset=-1)]
    return fake


@pytest.fixture
async def url(node: FakeNode) -> AsyncIterator[str]:
    async with TestServer(application(node, Random(1), host="127.0.0.1")) as server:
        yield f"http://127.0.0.1:{server.port}"


async def logboat(url: str, *arguments: str) -> Result:
    return await asyncio.to_thread(
        lambda: CliRunner().invoke(app, ["quorum", *arguments, "--url", url])
    )


async def test_status_is_a_table_or_json(url: str) -> None:
    shown = await logboat(url, "status")
    assert shown.exit_code == 0
    first, _, leader, follower, observer = shown.stdout.splitlines()
    assert first == (
        "cluster the-cluster: node 1 leads in epoch 4, high watermark 90, largest lag 5"
    )
    assert leader.split() == ["1", "leader", "95", "0", "now", "-"]
    assert follower.split() == ["2", "follower", "90", "5", "1.5", "s", "ago", str(UUID(int=2))]
    assert observer.split() == ["4", "observer", "-", "-", "never", "-"]
    document = json.loads((await logboat(url, "status", "-o", "json")).stdout)
    assert document["high_watermark"] == 90


class ShortLog(NewLog):
    def page(self, start: int | None, limit: int) -> LogPage:
        entries = (
            CommittedEntry(7, 3, None),
            CommittedEntry(8, 3, encode_command(NewController(2, 3))),
            CommittedEntry(9, 3, encode_command(FenceBroker(8, 1, 5))),
        )
        shown = [one for one in entries if 7 <= (start or 7) <= one.index][:2]
        return LogPage(7, 6, 9, tuple(shown))


async def test_the_log_is_read_page_by_page(url: str, node: FakeNode) -> None:
    node.log = ShortLog()
    shown = await logboat(url, "log", "--since", "7")
    header, *rows = shown.stdout.splitlines()
    assert header.split() == ["INDEX", "TERM", "KIND", "CONTENT"]
    assert [row.split() for row in rows] == [
        ["7", "3", "NewTerm", "-"],
        ["8", "3", "NewController", "node_id=2", "term=3"],
        ["9", "3", "FenceBroker", "node_id=1", "broker_epoch=5"],
    ]
    plain = await logboat(url, "log", "-o", "plain")
    assert plain.stdout.startswith("7\t3\tNewTerm\t-\n")
    document = json.loads((await logboat(url, "log", "--since", "9", "-o", "json")).stdout)
    assert document[0]["content"] == {"controller_epoch": 8, "node_id": 1, "broker_epoch": 5}


async def test_what_the_snapshot_covers_is_one_sentence(url: str, node: FakeNode) -> None:
    node.log = ShortLog()
    refused = await logboat(url, "log", "--since", "3")
    assert refused.exit_code == ExitStatus.FAILED
    assert "what came before 7 is no longer in the log" in refused.stderr
    assert "from 7 on" in refused.stderr


async def test_the_leadership_of_the_quorum_is_handed_over(url: str) -> None:
    done = await logboat(url, "transfer", "2", "-o", "plain")
    assert (done.exit_code, done.stdout) == (0, "2\t4\n")
    there = json.loads((await logboat(url, "transfer", "1", "-o", "json")).stdout)
    assert there == {"leader_id": 1, "leader_epoch": 4, "changed": False}
    refused = await logboat(url, "transfer", "3")
    assert refused.exit_code == ExitStatus.FAILED
    assert "node 3 did not take over in time" in refused.stderr
    nobody = await logboat(url, "transfer", "4")
    assert "node 4 is no voter (the voters are 1, 2, 3)" in nobody.stderr


async def test_replace_voter_sends_node_and_directory(url: str, node: FakeNode) -> None:
    done = await logboat(url, "replace-voter", "3", str(UUID(int=33)))
    assert (done.exit_code, done.stdout) == (0, "")
    assert node.replaced is not None
    assert (node.replaced.voter_id, node.replaced.voter_directory_id) == (3, UUID(int=33))


async def test_a_refused_replacement_is_one_sentence(url: str, node: FakeNode) -> None:
    node.replace_error = ErrorCode.DUPLICATE_VOTER
    refused = await logboat(url, "replace-voter", "3", str(UUID(int=33)))
    assert refused.exit_code == ExitStatus.FAILED
    assert "stop it first" in refused.stderr
    wrong = await logboat(url, "replace-voter", "3", "not-a-uuid")
    assert wrong.exit_code == ExitStatus.USAGE
