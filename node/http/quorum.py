"""The quorum: GET /api/v1/quorum, and PUT /api/v1/quorum/voters/{node}: `logboat quorum`."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID

from aiohttp import web

from ...wire.messages.add_raft_voter import AddRaftVoterRequest
from ...wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    ReplicaState,
)
from ..quorum_view import METADATA_TOPIC, NEVER
from . import query
from .asking import of_controller
from .bodies import json_object, read_body, refuse_unknown_keys, require_type
from .errors import ApiError, from_kafka, no_controller
from .guards import JSON_TYPE, json_response
from .keys import NODE
from .ports import AnswerLost, Unreachable
from .topics import ADMIN_SECONDS

STATUS_SECONDS = 5.0
Partition = DescribeQuorumResponse.TopicData.PartitionData


async def quorum(request: web.Request) -> web.Response:
    """As the leader sees it; 503 while there is none."""
    query.refuse_unknown(request.query)
    node = request.app[NODE]
    partition = DescribeQuorumRequest.PartitionData(partition_index=0)
    wanted = DescribeQuorumRequest(
        topics=[DescribeQuorumRequest.TopicData(topic_name=METADATA_TOPIC, partitions=[partition])]
    )
    deadline = asyncio.get_running_loop().time() + STATUS_SECONDS
    try:
        response = await node.describe_quorum(wanted, deadline)
    except (Unreachable, AnswerLost):
        raise no_controller() from None
    if response.error_code:
        raise from_kafka(response.error_code, response.error_message)
    image = node.image()
    return json_response(
        quorum_document(image.cluster_id, response.topics[0].partitions[0], node.now_ms())
    )


async def replace_voter(request: web.Request) -> web.Response:
    """The voter is the named directory from now on (RULES B3). Repeating it is harmless."""
    query.refuse_unknown(request.query)
    require_type(request, JSON_TYPE)
    node_id = _node_id(request.match_info["node"])
    document = json_object(await read_body(request))
    refuse_unknown_keys(document, ["directory_id"])
    directory_id = _directory_id(document.get("directory_id"))
    node = request.app[NODE]
    wanted = AddRaftVoterRequest(
        cluster_id=node.image().cluster_id,
        timeout_ms=int(ADMIN_SECONDS * 1000),
        voter_id=node_id,
        voter_directory_id=directory_id,
    )
    deadline = asyncio.get_running_loop().time() + ADMIN_SECONDS
    response = await of_controller(node.replace_voter(wanted, deadline))
    if response.error_code:
        raise from_kafka(response.error_code, response.error_message)
    return json_response({"node_id": node_id, "directory_id": str(directory_id)})


def quorum_document(cluster_id: str, partition: Partition, now_ms: int) -> dict[str, Any]:
    """Times are milliseconds since 1970, null for never; lags are entries and milliseconds."""
    leader = next(
        replica for replica in partition.current_voters if replica.replica_id == partition.leader_id
    )
    voters = [_replica(one, leader, now_ms) for one in partition.current_voters]
    lags = [one["lag"] for one in voters if one["lag"] is not None]
    return {
        "cluster_id": cluster_id,
        "leader_id": partition.leader_id,
        "leader_epoch": partition.leader_epoch,
        "high_watermark": partition.high_watermark,
        "max_follower_lag": max(lags),
        "voters": voters,
        "observers": [_replica(one, leader, now_ms) for one in partition.observers],
    }


def _replica(replica: ReplicaState, leader: ReplicaState, now_ms: int) -> dict[str, Any]:
    known = replica.log_end_offset >= 0
    return {
        "node_id": replica.replica_id,
        "directory_id": str(replica.replica_directory_id)
        if replica.replica_directory_id.int
        else None,
        "leads": replica.replica_id == leader.replica_id,
        "log_end_offset": replica.log_end_offset if known else None,
        "lag": leader.log_end_offset - replica.log_end_offset if known else None,
        "last_contact_ms": _time(replica.last_fetch_timestamp),
        "last_caught_up_ms": _time(replica.last_caught_up_timestamp),
        "silent_for_ms": _since(replica.last_fetch_timestamp, now_ms),
    }


def _time(timestamp_ms: int) -> int | None:
    return None if timestamp_ms == NEVER else timestamp_ms


def _since(timestamp_ms: int, now_ms: int) -> int | None:
    # The two come from different clocks: never less than nothing.
    return None if timestamp_ms == NEVER else max(0, now_ms - timestamp_ms)


def _node_id(text: str) -> int:
    if not text.isdecimal() or int(text) > 2**31 - 1:
        raise ApiError(404, f"{text[:20]!r} is no node id")
    return int(text)


def _directory_id(value: object) -> UUID:
    if not isinstance(value, str):
        raise ApiError(422, '"directory_id" is missing or no string')
    try:
        return UUID(value)
    except ValueError:
        raise ApiError(422, f'"directory_id" {value[:40]!r} is no UUID') from None
