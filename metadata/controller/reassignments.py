"""AlterPartitionReassignments (45), as far as no data moves: the order of replicas (KIP-455).

The first replica is the preferred leader. Whoever wants another broker to lead puts it first and
then asks for a preferred election, as with Kafka's own tools.
"""

from __future__ import annotations

from ...wire import ErrorCode
from ...wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)
from ..commands import ReorderReplicas, ReplicaOrder
from ..image import ClusterImage
from ..results import Item
from .answer import ControllerAnswer
from .office import Office

Answer = ControllerAnswer[AlterPartitionReassignmentsResponse]


async def alter_partition_reassignments(
    office: Office, request: AlterPartitionReassignmentsRequest, version: int, deadline: float
) -> Answer:
    """Versions 0-1; 1 asks whether the replication factor may change, which it does not here."""
    known = _known(office.image, request)
    orders = tuple(known.values())
    decided = await office.propose(lambda epoch: ReorderReplicas(epoch, orders), deadline)
    if decided.result.refused:
        refused = AlterPartitionReassignmentsResponse(error_code=decided.result.error)
        return ControllerAnswer(refused, decided.index)
    items = dict(zip(known, decided.result.items, strict=True))
    response = AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change,
        responses=[
            AlterPartitionReassignmentsResponse.ReassignableTopicResponse(
                name=topic.name,
                partitions=[_verdict(items, topic.name, asked) for asked in topic.partitions],
            )
            for topic in request.topics
        ],
    )
    return ControllerAnswer(response, decided.index)


def _known(
    image: ClusterImage, request: AlterPartitionReassignmentsRequest
) -> dict[tuple[str, int], ReplicaOrder]:
    """What can be decided by the command. Without replicas a request is about a reassignment under
    way, and there is none."""
    return {
        (topic.name, asked.partition_index): ReplicaOrder(
            image.topics[topic.name].topic_id, asked.partition_index, tuple(asked.replicas)
        )
        for topic in request.topics
        if topic.name in image.topics
        for asked in topic.partitions
        if asked.replicas is not None
    }


def _verdict(
    items: dict[tuple[str, int], Item],
    topic: str,
    asked: AlterPartitionReassignmentsRequest.ReassignableTopic.ReassignablePartition,
) -> AlterPartitionReassignmentsResponse.ReassignableTopicResponse.ReassignablePartitionResponse:
    item = items.get((topic, asked.partition_index))
    if item is None and asked.replicas is None:
        item = Item(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, "no replica is being moved")
    if item is None:
        item = Item(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {topic!r}")
    return AlterPartitionReassignmentsResponse.ReassignablePartitionResponse(
        partition_index=asked.partition_index,
        error_code=item.error,
        error_message=item.message or None,
    )
