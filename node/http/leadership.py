"""POST /api/v1/topics/{topic}/partitions/{partition}:transfer-leadership.

The controller gives the leadership to the preferred replica, the first of the list, if that is in
sync (KIP-183). Another one is made the preferred replica first, as Kafka's own tools do it: so the
next balancing does not take its leadership away again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from aiohttp import web

from ...metadata.image import PartitionImage, TopicImage
from ...wire import ErrorCode
from ...wire.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from ...wire.messages.elect_leaders import ElectLeadersRequest
from .asking import of_controller
from .bodies import json_object, node_id_in, read_body, refuse_unknown_keys, require_type
from .consume import partition_number
from .documents import Leadership
from .errors import ApiError, from_kafka
from .guards import JSON_TYPE, json_response
from .keys import NODE
from .ports import HttpNode
from .topics import ADMIN_SECONDS, existing_topic

_PREFERRED = 0


async def transfer_leadership(request: web.Request) -> web.Response:
    """200 with the leader, who may have been that before."""
    require_type(request, JSON_TYPE)
    node = request.app[NODE]
    document = json_object(await read_body(request))
    refuse_unknown_keys(document, ["to"])
    topic = existing_topic(node, request.match_info["topic"])
    number = partition_number(topic, request.match_info["partition"])
    partition = topic.partitions[number]
    to = _target(document, partition)
    deadline = asyncio.get_running_loop().time() + ADMIN_SECONDS
    # Both steps may be asked for again: the same order, and an election that is not needed.
    if to != partition.replicas[0]:
        await _make_preferred(node, topic, partition, to, deadline)
    changed = await _elect_preferred(node, topic, number, deadline)
    now = node.image().partition(topic.name, number) or partition
    answer: Leadership = {
        "topic": topic.name,
        "partition": number,
        "leader": now.leader,
        "leader_epoch": now.leader_epoch,
        "changed": changed,
    }
    return json_response(answer)


def _target(document: Mapping[str, Any], partition: PartitionImage) -> int:
    if document.get("to") is None:
        return partition.replicas[0]
    to = node_id_in(document, "to")
    if to not in partition.replicas:
        raise ApiError(
            422, f"node {to} holds no replica", hint=f"the replicas are {list(partition.replicas)}"
        )
    if to not in partition.isr:
        # It would be refused later, too, but as the preferred replica already.
        raise from_kafka(ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, f"node {to} is not in sync")
    return to


async def _make_preferred(
    node: HttpNode, topic: TopicImage, partition: PartitionImage, to: int, deadline: float
) -> None:
    order = [to, *(replica for replica in partition.replicas if replica != to)]
    wanted = AlterPartitionReassignmentsRequest(
        timeout_ms=int(ADMIN_SECONDS * 1000),
        topics=[
            AlterPartitionReassignmentsRequest.ReassignableTopic(
                name=topic.name,
                partitions=[
                    AlterPartitionReassignmentsRequest.ReassignablePartition(
                        partition_index=partition.partition, replicas=order
                    )
                ],
            )
        ],
    )
    response = await of_controller(node.reorder_replicas(wanted, deadline))
    if response.error_code:
        raise from_kafka(response.error_code, response.error_message)
    verdict = response.responses[0].partitions[0]
    if verdict.error_code:
        raise from_kafka(verdict.error_code, verdict.error_message)


async def _elect_preferred(node: HttpNode, topic: TopicImage, number: int, deadline: float) -> bool:
    """Whether that changed anything."""
    wanted = ElectLeadersRequest(
        election_type=_PREFERRED,
        topic_partitions=[
            ElectLeadersRequest.TopicPartitions(topic=topic.name, partitions=[number])
        ],
        timeout_ms=int(ADMIN_SECONDS * 1000),
    )
    response = await of_controller(node.elect_leaders(wanted, deadline))
    if response.error_code:
        raise from_kafka(response.error_code)
    result = response.replica_election_results[0].partition_result[0]
    if result.error_code == ErrorCode.ELECTION_NOT_NEEDED:
        return False
    if result.error_code:
        raise from_kafka(result.error_code, result.error_message)
    return True
