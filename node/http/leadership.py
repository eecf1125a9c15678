"""POST /api/v1/topics/{topic}/partitions/{partition}:transfer-leadership.

The controller gives the leadership to the preferred replica, the first of the list, if that is in
sync (KIP-183). Another one cannot be chosen: replicas are not reassigned yet, and the next
balancing would take such a leadership away again.
"""

from __future__ import annotations

import asyncio

from aiohttp import web

from ...metadata.image import PartitionImage
from ...wire import ErrorCode
from ...wire.messages.elect_leaders import ElectLeadersRequest
from .bodies import json_object, read_body, require_type
from .consume import partition_number
from .documents import Leadership
from .errors import ApiError, from_kafka, no_controller
from .guards import JSON_TYPE, json_response
from .keys import NODE
from .ports import AnswerLost, Unreachable
from .topics import ADMIN_SECONDS, admin_answer_lost, existing_topic

_PREFERRED = 0


async def transfer_leadership(request: web.Request) -> web.Response:
    """200 with the leader, who may have been that before."""
    require_type(request, JSON_TYPE)
    node = request.app[NODE]
    document = json_object(await read_body(request))
    if unknown := sorted(document.keys() - {"to"}):
        raise ApiError(422, f"unknown key {unknown[0]!r}", hint="to")
    topic = existing_topic(node, request.match_info["topic"])
    number = partition_number(topic, request.match_info["partition"])
    _check_target(document.get("to"), topic.partitions[number])
    wanted = ElectLeadersRequest(
        election_type=_PREFERRED,
        topic_partitions=[
            ElectLeadersRequest.TopicPartitions(topic=topic.name, partitions=[number])
        ],
        timeout_ms=int(ADMIN_SECONDS * 1000),
    )
    deadline = asyncio.get_running_loop().time() + ADMIN_SECONDS
    try:
        response = await node.elect_leaders(wanted, deadline)
    except Unreachable:
        raise no_controller() from None
    except AnswerLost:
        raise admin_answer_lost() from None
    if response.error_code:
        raise from_kafka(response.error_code)
    result = response.replica_election_results[0].partition_result[0]
    if result.error_code not in (ErrorCode.NONE, ErrorCode.ELECTION_NOT_NEEDED):
        raise from_kafka(result.error_code, result.error_message)
    now = node.image().partition(topic.name, number) or topic.partitions[number]
    answer: Leadership = {
        "topic": topic.name,
        "partition": number,
        "leader": now.leader,
        "leader_epoch": now.leader_epoch,
        "changed": result.error_code == ErrorCode.NONE,
    }
    return json_response(answer)


def _check_target(to: object, partition: PartitionImage) -> None:
    if to is None or to == partition.replicas[0]:
        return
    if not isinstance(to, int) or isinstance(to, bool):
        raise ApiError(422, '"to" is no node id')
    if to not in partition.replicas:
        raise ApiError(
            422, f"node {to} holds no replica", hint=f"the replicas are {list(partition.replicas)}"
        )
    raise ApiError(
        501,
        f"leadership goes to the preferred replica only, which is node {partition.replicas[0]}",
        hint="replicas cannot be reassigned yet",
    )
