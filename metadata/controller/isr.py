"""AlterPartition (56): leaders shrink and expand their ISR (KIP-497; rules in `apply.leaders`)."""

from __future__ import annotations

from ...wire import ErrorCode
from ...wire.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from ..commands import AlterPartition, IsrChange, IsrMember
from ..results import Item
from .answer import ControllerAnswer
from .office import Office


async def alter_partition(
    office: Office, request: AlterPartitionRequest, version: int, deadline: float
) -> ControllerAnswer[AlterPartitionResponse]:
    """Versions 2-3; 3 added the broker epoch of each member (KIP-903).

    The leader keeps the change in flight on NOT_CONTROLLER and REQUEST_TIMED_OUT: asking again with
    the same partition epoch is compare-and-set (RULES D2).
    """
    changes = tuple(
        IsrChange(
            topic_id=topic.topic_id,
            partition=partition.partition_index,
            leader_epoch=partition.leader_epoch,
            partition_epoch=partition.partition_epoch,
            new_isr=_members(partition),
        )
        for topic in request.topics
        for partition in topic.partitions
    )
    decided = await office.propose(
        lambda epoch: AlterPartition(epoch, request.broker_id, request.broker_epoch, changes),
        deadline,
    )
    if decided.result.refused:
        response = AlterPartitionResponse(error_code=decided.result.error)
        return ControllerAnswer(response, decided.index)
    items = iter(decided.result.items)
    response = AlterPartitionResponse(
        topics=[
            AlterPartitionResponse.TopicData(
                topic_id=topic.topic_id,
                partitions=[
                    _verdict(partition.partition_index, next(items))
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )
    return ControllerAnswer(response, decided.index)


def _members(partition: AlterPartitionRequest.TopicData.PartitionData) -> tuple[IsrMember, ...]:
    if partition.new_isr_with_epochs:
        return tuple(
            IsrMember(member.broker_id, member.broker_epoch)
            for member in partition.new_isr_with_epochs
        )
    return tuple(IsrMember(broker_id, -1) for broker_id in partition.new_isr)


def _verdict(number: int, item: Item) -> AlterPartitionResponse.TopicData.PartitionData:
    verdict = AlterPartitionResponse.PartitionData(partition_index=number, error_code=item.error)
    if item.error == ErrorCode.NONE and item.partition is not None:
        verdict.leader_id = item.partition.leader
        verdict.leader_epoch = item.partition.leader_epoch
        verdict.isr = list(item.partition.isr)
        verdict.partition_epoch = item.partition.partition_epoch
    return verdict
