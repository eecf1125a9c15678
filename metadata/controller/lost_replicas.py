"""AssignReplicasToDirs (73): a broker tells which of its replicas have lost data (RULES C1).

Kafka's brokers say with it which directory holds which replica (KIP-858), and name the directory
LOST for replicas whose disk is gone. Here a node has one directory, known from its registration, so
LOST is the only thing left to say.
"""

from __future__ import annotations

from ...wire import ErrorCode
from ...wire.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
)
from ..commands import PartitionId, ReplicasLost
from ..image import LOST_DIRECTORY
from .answer import ControllerAnswer
from .office import Office

DirectoryData = AssignReplicasToDirsResponse.DirectoryData


async def assign_replicas_to_dirs(
    office: Office, request: AssignReplicasToDirsRequest, version: int, deadline: float
) -> ControllerAnswer[AssignReplicasToDirsResponse]:
    """Version 0. INVALID_REQUEST for any directory but LOST; STALE_BROKER_EPOCH; and for each
    partition UNKNOWN_TOPIC_ID or NOT_LEADER_OR_FOLLOWER when there is nothing to lose."""
    if any(directory.id != LOST_DIRECTORY for directory in request.directories):
        response = AssignReplicasToDirsResponse(error_code=ErrorCode.INVALID_REQUEST)
        return ControllerAnswer(response, 0)
    lost = tuple(
        PartitionId(topic.topic_id, partition.partition_index)
        for directory in request.directories
        for topic in directory.topics
        for partition in topic.partitions
    )
    decided = await office.propose(
        lambda epoch: ReplicasLost(epoch, request.broker_id, request.broker_epoch, lost), deadline
    )
    if decided.result.refused:
        response = AssignReplicasToDirsResponse(error_code=decided.result.error)
        return ControllerAnswer(response, decided.index)
    items = iter(decided.result.items)
    response = AssignReplicasToDirsResponse(
        directories=[
            DirectoryData(
                id=directory.id,
                topics=[
                    DirectoryData.TopicData(
                        topic_id=topic.topic_id,
                        partitions=[
                            DirectoryData.TopicData.PartitionData(
                                partition_index=partition.partition_index,
                                error_code=next(items).error,
                            )
                            for partition in topic.partitions
                        ],
                    )
                    for topic in directory.topics
                ],
            )
            for directory in request.directories
        ]
    )
    return ControllerAnswer(response, decided.index)
