"""What changed, waited for; and who shall lead."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from aiohttp.test_utils import TestClient

from logboat.metadata.image import ImageChange
from logboat.node import metadata_history
from logboat.node.metadata_history import MetadataHistory
from logboat.wire import ErrorCode
from tests.http.fake_http_node import FakeNode, topic

Http = TestClient[Any, Any]
METADATA = "/api/v1/metadata"
LEADER = "/api/v1/topics/orders/partitions/1:transfer-leadership"


def step(node: FakeNode, index: int, **changed: Any) -> None:
    """The image moves on to `index`."""
    before = node.current
    node.current = replace(before, index=index)
    node.history.on_image(ImageChange(before, node.current, **changed))


@pytest.fixture
def moved(node: FakeNode) -> FakeNode:
    """At index 10, with changes 8 and 10 behind it; 9 changed nothing that anybody reads."""
    node.history.on_image(ImageChange(replace(node.current, index=0), node.current))
    step(node, 8, changed_topics=(topic("orders"),))
    step(node, 9)
    step(node, 10, deleted_topics=(topic("old"),), changed_brokers=(2,))
    return node


async def changes(http: Http, query: str) -> dict[str, Any]:
    response = await http.get(METADATA + query)
    assert response.status == 200
    found: dict[str, Any] = await response.json()
    return found


async def test_without_an_index_one_learns_where_to_begin(http: Http, moved: FakeNode) -> None:
    assert await changes(http, "") == {"index": 10, "compacted": False, "changes": []}


async def test_changes_after_an_index_are_named(http: Http, moved: FakeNode) -> None:
    found = await changes(http, "?since=7")
    assert found["changes"] == [
        {"index": 8, "topics_changed": ["orders"], "topics_deleted": [], "nodes_changed": []},
        {"index": 10, "topics_changed": [], "topics_deleted": ["old"], "nodes_changed": [2]},
    ]
    assert [c["index"] for c in (await changes(http, "?since=8"))["changes"]] == [10]
    assert (await changes(http, "?since=10"))["changes"] == []


async def test_a_change_ends_the_wait_for_it(http: Http, moved: FakeNode) -> None:
    waiting = asyncio.create_task(changes(http, "?since=10&wait=60s"))
    await asyncio.sleep(0.05)
    step(moved, 11)
    await asyncio.sleep(0.05)
    assert not waiting.done()
    step(moved, 12, changed_topics=(topic("new"),))
    found = await asyncio.wait_for(waiting, 30)
    assert [change["topics_changed"] for change in found["changes"]] == [["new"]]
    assert found["index"] == 12


async def test_a_wait_without_a_change_ends_in_time(http: Http, moved: FakeNode) -> None:
    found = await asyncio.wait_for(changes(http, "?since=10&wait=100ms"), 30)
    assert found == {"index": 10, "compacted": False, "changes": []}


async def test_who_asks_from_too_far_back_is_told_so_at_once(http: Http, moved: FakeNode) -> None:
    found = await asyncio.wait_for(changes(http, "?since=3&wait=60s"), 30)
    assert found["compacted"] is True


def test_the_history_is_bounded_in_changes_and_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata_history, "MAX_CHANGES", 3)
    node = FakeNode()
    node.history = history = MetadataHistory()
    for index in range(20, 26):
        step(node, index, changed_brokers=(1,))
    assert [change["index"] for change in history.after(22)["changes"]] == [23, 24, 25]
    assert history.after(22)["compacted"] is False
    assert history.after(21)["compacted"] is True
    monkeypatch.setattr(metadata_history, "MAX_NAMES", 4)
    step(node, 26, changed_brokers=(1, 2, 3))
    assert [change["index"] for change in history.after(0)["changes"]] == [25, 26]
    step(node, 27, changed_brokers=tuple(range(9)))
    assert history.after(26) == {"index": 27, "compacted": True, "changes": []}


async def test_a_new_controller_and_new_settings_are_changes(http: Http, moved: FakeNode) -> None:
    before = moved.current
    moved.current = replace(before, index=11, controller_id=3, configs={"": {"a": "b"}})
    moved.history.on_image(ImageChange(before, moved.current))
    (change,) = (await changes(http, "?since=10"))["changes"]
    assert (change["controller_id"], change["configs_changed"]) == (3, True)


# Leadership.


async def test_the_preferred_replica_is_given_the_leadership(http: Http, node: FakeNode) -> None:
    for body in ({}, {"to": 1}, {"to": None}):
        response = await http.post(LEADER, json=body)
        assert response.status == 200
        assert await response.json() == {
            "topic": "orders",
            "partition": 1,
            "leader": 1,
            "leader_epoch": 1,
            "changed": True,
        }
    node.election_error = ErrorCode.ELECTION_NOT_NEEDED
    assert (await (await http.post(LEADER, json={})).json())["changed"] is False


async def test_another_replica_in_sync_becomes_the_preferred_one_and_leads(
    http: Http, node: FakeNode
) -> None:
    for _ in range(2):
        response = await http.post(LEADER, json={"to": 3})
        assert response.status == 200
        assert (await response.json())["leader"] == 3
        partition = node.current.topics["orders"].partitions[1]
        assert (partition.replicas, partition.leader) == ((3, 1, 2), 3)


async def test_a_replica_that_is_not_in_sync_does_not_become_the_preferred_one(
    http: Http, node: FakeNode
) -> None:
    node.alter("orders", 1, isr=(1, 2))
    response = await http.post(LEADER, json={"to": 3})
    assert response.status == 503
    assert "not in sync" in (await response.json())["message"]
    assert node.asked == []


@pytest.mark.parametrize(
    ("body", "status"), [({"to": 9}, 422), ({"to": "1"}, 422), ({"two": 1}, 422), ([], 400)]
)
async def test_only_a_replica_can_be_chosen(
    http: Http, node: FakeNode, body: Any, status: int
) -> None:
    response = await http.post(LEADER, json=body)
    assert response.status == status
    assert (await response.json())["message"]
    assert node.asked == []


async def test_a_preferred_replica_that_is_not_in_sync_does_not_lead(
    http: Http, node: FakeNode
) -> None:
    node.election_error = ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
    response = await http.post(LEADER, json={})
    assert response.status == 503
    assert (await response.json())["retriable"] is True
