"""Groups over HTTP and on the command line: what they read, how far behind, where they go on."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from random import Random
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer
from typer.testing import CliRunner, Result

from logboat.client.cli import app
from logboat.client.failure import ExitStatus
from logboat.client.node_api import NodeApi
from logboat.node.http.server import application
from logboat.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from logboat.wire.messages.offset_commit import OffsetCommitRequest
from logboat.wire.records import Record, encode_batch
from tests.http.fake_http_node import topic
from tests.http.group_node import CLIENT, GroupNode

Http = TestClient[Any, Any]


@pytest.fixture
async def node() -> AsyncIterator[GroupNode]:
    """`orders` has two partitions with ten records each; group `g` has committed 4 and 10."""
    made = GroupNode()
    made.add(topic("orders", leaders=[1, 2]))
    for partition in (0, 1):
        batch = encode_batch([Record(value=b"x", timestamp=number) for number in range(10)])
        made.append("orders", partition, bytes(batch))
    made.coordinator.on_leadership(0, True, 0)
    await asyncio.sleep(0)
    for partition, offset in ((0, 4), (1, 10)):
        await commit(made, partition, offset)
    yield made
    await made.coordinator.stop()


async def commit(node: GroupNode, partition: int, offset: int) -> None:
    part = OffsetCommitRequest.OffsetCommitRequestPartition(
        partition_index=partition, committed_offset=offset, committed_metadata=""
    )
    wanted = OffsetCommitRequest.OffsetCommitRequestTopic(
        topic_id=node.current.topics["orders"].topic_id, partitions=[part]
    )
    request = OffsetCommitRequest(group_id="g", topics=[wanted])
    response = await node.coordinator.offset_commit(request, 10)
    assert response.topics[0].partitions[0].error_code == 0


@pytest.fixture
async def http(node: GroupNode) -> AsyncIterator[Http]:
    server = TestServer(application(node, Random(1), host="127.0.0.1", leader_seconds=1.0))
    async with TestClient(server) as client:
        yield client


async def get(http: Http, path: str, status: int = 200) -> Any:
    async with http.get(path) as response:
        assert response.status == status, await response.text()
        return await response.json()


async def post(http: Http, path: str, body: Any, status: int = 200) -> Any:
    async with http.post(path, json=body) as response:
        assert response.status == status, await response.text()
        return await response.json()


async def join(node: GroupNode, member_id: str) -> None:
    request = ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id=member_id,
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=["orders"],
        topic_partitions=[],
    )
    answer = await node.coordinator.consumer_group_heartbeat(request, 1, CLIENT)
    assert answer.error_code == 0


async def test_groups_of_all_nodes_are_listed_and_missing_nodes_named(
    http: Http, node: GroupNode
) -> None:
    node.unreachable.add(3)
    assert await get(http, "/api/v1/groups") == {
        "groups": [
            {
                "group_id": "g",
                "state": "Empty",
                "type": "classic",
                "protocol_type": "",
                "coordinator": 1,
            }
        ],
        "unanswered": [3],
    }


async def test_lag_is_what_is_committed_to_the_log_but_not_by_the_group(http: Http) -> None:
    document = await get(http, "/api/v1/groups/g/lag")
    assert document["total_lag"] == 6
    rows = [(r["partition"], r["committed_offset"], r["lag"]) for r in document["partitions"]]
    assert rows == [(0, 4, 6), (1, 10, 0)]


async def test_members_of_a_consumer_group_are_described_with_what_they_read(
    http: Http, node: GroupNode
) -> None:
    await join(node, "m1")
    document = await get(http, "/api/v1/groups/g")
    assert (document["type"], document["state"], document["assignor"]) == (
        "consumer",
        "Stable",
        "uniform",
    )
    assert document["members"][0]["assignment"] == [{"topic": "orders", "partitions": [0, 1]}]
    lag = await get(http, "/api/v1/groups/g/lag")
    assert [row["member_id"] for row in lag["partitions"]] == ["m1", "m1"]


async def test_a_reset_is_only_shown_until_it_is_executed(http: Http) -> None:
    body: dict[str, Any] = {"to": {"shift": -2}}
    shown = await post(http, "/api/v1/groups/g/offsets:reset", body)
    assert [(row["from"], row["to"]) for row in shown["partitions"]] == [(4, 2), (10, 8)]
    assert (await get(http, "/api/v1/groups/g/lag"))["total_lag"] == 6
    done = await post(http, "/api/v1/groups/g/offsets:reset", {**body, "execute": True})
    assert done == {**shown, "executed": True}
    assert (await get(http, "/api/v1/groups/g/lag"))["total_lag"] == 10


@pytest.mark.parametrize(
    ("to", "targets"),
    [
        ("earliest", [0, 0]),
        ("latest", [10, 10]),
        ({"offset": 3}, [3, 3]),
        ({"offset": 99}, [10, 10]),
        ({"shift": 3}, [7, 10]),
        ({"shift": -7}, [0, 3]),
    ],
)
async def test_a_reset_leads_to_a_place_within_the_log(
    http: Http, to: Any, targets: list[int]
) -> None:
    shown = await post(http, "/api/v1/groups/g/offsets:reset", {"to": to})
    assert [row["to"] for row in shown["partitions"]] == targets


async def test_a_reset_names_topics_and_partitions(http: Http) -> None:
    body = {"to": "latest", "topics": ["orders:1"]}
    shown = await post(http, "/api/v1/groups/fresh/offsets:reset", body)
    assert [(row["partition"], row["from"], row["to"]) for row in shown["partitions"]] == [
        (1, None, 10)
    ]


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"to": "yesterday"},
        {"to": {"offset": -1}},
        {"to": {"offset": True}},
        {"to": {"offset": 1, "shift": 1}},
        {"to": "latest", "topics": "orders"},
        {"to": "latest", "topics": ["orders:x"]},
        {"to": "latest", "execute": "yes"},
        {"to": "latest", "sure": True},
    ],
)
async def test_a_reset_that_makes_no_sense_is_refused(http: Http, body: Any) -> None:
    error = await post(http, "/api/v1/groups/g/offsets:reset", body, status=422)
    assert error["error_code"] == 422


async def test_a_group_with_members_is_neither_reset_nor_deleted(
    http: Http, node: GroupNode
) -> None:
    await join(node, "m1")
    for execute in (False, True):
        body = {"to": "earliest", "execute": execute}
        error = await post(http, "/api/v1/groups/g/offsets:reset", body, status=409)
        assert error["kafka_error"] == "NON_EMPTY_GROUP"
    async with http.delete("/api/v1/groups/g") as response:
        assert response.status == 409


async def test_what_does_not_exist_is_404(http: Http) -> None:
    assert (await get(http, "/api/v1/groups/none", 404))["error_code"] == 40405
    async with http.delete("/api/v1/groups/none") as response:
        assert response.status == 404
    missing = {"to": "latest", "topics": ["nothing"]}
    assert (await post(http, "/api/v1/groups/g/offsets:reset", missing, 404))["error_code"] == 40403
    outside = {"to": "latest", "topics": ["orders:7"]}
    assert (await post(http, "/api/v1/groups/g/offsets:reset", outside, 404))["error_code"] == 40402


async def test_a_deleted_group_is_gone_with_its_offsets(http: Http) -> None:
    async with http.delete("/api/v1/groups/g") as response:
        assert response.status == 204
    assert (await get(http, "/api/v1/groups"))["groups"] == []


async def logboat(http: Http, *arguments: str) -> Result:
    command = [*arguments, "--url", f"http://127.0.0.1:{http.port}"]
    return await asyncio.to_thread(lambda: CliRunner().invoke(app, command))


async def test_the_command_line_shows_lists_lag_and_members(http: Http, node: GroupNode) -> None:
    listed = await logboat(http, "group", "list")
    assert listed.stdout.splitlines()[1].split() == ["g", "Empty", "classic", "1"]
    lag = (await logboat(http, "group", "lag", "g")).stdout.splitlines()
    assert lag[0] == "g: Empty, TOTAL-LAG 6"
    assert lag[2].split() == ["orders", "0", "4", "0", "10", "6", "-", "-", "-"]
    every = json.loads((await logboat(http, "group", "lag", "-o", "json")).stdout)
    assert [document["group_id"] for document in every] == ["g"]
    await join(node, "m1")
    described = (await logboat(http, "group", "describe", "g")).stdout.splitlines()
    assert described[0].startswith("g: Stable, consumer, coordinator 1")
    assert described[2].split()[-1] == "orders:0,1"


@pytest.mark.parametrize("to", ["@5", "@1970-01-01T00:00:00.005", "@1970-01-01T01:00:00.005+01:00"])
async def test_the_command_line_takes_times_in_milliseconds_and_in_words(
    monkeypatch: pytest.MonkeyPatch, http: Http, to: str
) -> None:
    asked: list[Any] = []

    def call(api: NodeApi, method: str, path: str, body: Any = None) -> Any:
        asked.append(body["to"])
        return {"partitions": []}

    monkeypatch.setattr(NodeApi, "call", call)
    await logboat(http, "group", "reset", "g", "--to", to)
    assert asked == [{"timestamp": 5}]


async def test_the_command_line_resets_only_when_told_to_execute(http: Http) -> None:
    shown = await logboat(http, "group", "reset", "g", "--to", "+1", "--topic", "orders:0")
    assert shown.stdout.splitlines()[1].split() == ["orders", "0", "4", "5"]
    assert "--execute" in shown.stderr
    done = await logboat(http, "group", "reset", "g", "--to", "end", "--execute")
    assert done.exit_code == 0
    assert (await get(http, "/api/v1/groups/g/lag"))["total_lag"] == 0
    for nonsense in ("soon", "@soon", "+", "", "@2026-13-01"):
        wrong = await logboat(http, "group", "reset", "g", "--to", nonsense)
        assert wrong.exit_code == ExitStatus.USAGE
    assert (await logboat(http, "group", "delete", "g")).exit_code == 0
    assert (await logboat(http, "group", "describe", "g")).exit_code == ExitStatus.FAILED
