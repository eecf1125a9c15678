"""The quorum over HTTP: what the leader sees, and the replacement of a voter's directory."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from aiohttp.test_utils import TestClient

from logboat.wire import ErrorCode
from logboat.wire.messages.describe_quorum import ReplicaState
from tests.http.fake_http_node import NOW_MS, FakeNode

Http = TestClient[Any, Any]


def replica(node_id: int, end: int, *, seen: int = NOW_MS) -> ReplicaState:
    return ReplicaState(
        replica_id=node_id,
        replica_directory_id=UUID(int=node_id),
        log_end_offset=end,
        last_fetch_timestamp=seen,
        last_caught_up_timestamp=seen,
    )


async def test_the_quorum_is_told_with_lags_and_times(http: Http, node: FakeNode) -> None:
    node.quorum_voters = [replica(1, 95), replica(2, 90, seen=NOW_MS - 70), replica(3, -1, seen=-1)]
    node.quorum_observers = [replica(4, 60, seen=NOW_MS + 5)]
    document = await (await http.get("/api/v1/quorum")).json()
    assert document["cluster_id"] == "the-cluster"
    assert (document["leader_id"], document["leader_epoch"]) == (1, 4)
    assert (document["high_watermark"], document["max_follower_lag"]) == (90, 5)
    leader, second, third = document["voters"]
    assert leader["leads"]
    assert leader["lag"] == 0
    assert (second["lag"], second["silent_for_ms"]) == (5, 70)
    assert second["directory_id"] == str(UUID(int=2))
    # Nothing is known of a voter that has not acknowledged anything to this leader.
    assert (third["log_end_offset"], third["lag"], third["last_contact_ms"]) == (None, None, None)
    (observer,) = document["observers"]
    assert (observer["lag"], observer["silent_for_ms"]) == (35, 0)


async def test_without_a_leader_there_is_nothing_to_tell(http: Http, node: FakeNode) -> None:
    node.unreachable.add(0)
    response = await http.get("/api/v1/quorum")
    assert response.status == 503
    assert (await response.json())["retriable"] is True


async def test_a_voter_gets_another_directory(http: Http, node: FakeNode) -> None:
    body = {"directory_id": str(UUID(int=33))}
    response = await http.put("/api/v1/quorum/voters/3", json=body)
    assert response.status == 200
    assert await response.json() == {"node_id": 3, "directory_id": str(UUID(int=33))}
    assert node.replaced is not None
    assert (node.replaced.voter_id, node.replaced.voter_directory_id) == (3, UUID(int=33))
    assert node.replaced.cluster_id == "the-cluster"


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (ErrorCode.VOTER_NOT_FOUND, 404),
        (ErrorCode.DUPLICATE_VOTER, 409),
        (ErrorCode.INVALID_UPDATE_VERSION, 409),
    ],
)
async def test_what_the_controller_refuses_is_told(
    http: Http, node: FakeNode, error: ErrorCode, status: int
) -> None:
    node.replace_error = error
    response = await http.put("/api/v1/quorum/voters/3", json={"directory_id": str(UUID(int=33))})
    assert response.status == status
    assert (await response.json())["kafka_error"] == error.name


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("3", {}, 422),
        ("3", {"directory_id": "x"}, 422),
        ("3", {"directory_id": str(UUID(int=3)), "force": True}, 422),
        ("three", {"directory_id": str(UUID(int=3))}, 404),
        ("3", [], 400),
    ],
)
async def test_a_replacement_that_says_nothing_clear_is_refused(
    http: Http, node: FakeNode, path: str, body: object, status: int
) -> None:
    assert (await http.put(f"/api/v1/quorum/voters/{path}", json=body)).status == status
    assert node.replaced is None


async def test_a_lost_answer_may_have_been_carried_out(http: Http, node: FakeNode) -> None:
    node.silent.add(0)
    response = await http.put("/api/v1/quorum/voters/3", json={"directory_id": str(UUID(int=3))})
    assert response.status == 504
    assert (await response.json())["outcome"] == "unknown"
