"""API key 56: AlterPartition."""

from __future__ import annotations

from uuid import UUID

from ..schema import Message, Struct, array, int8, int16, int32, int64, uuid


class AlterPartitionRequest(Message, versions="2-3", flexible="0+"):
    """A partition leader asks the controller to change the ISR.

    v3 gives each ISR member's broker epoch, so that a restarted broker is not taken back by
    mistake.
    """

    broker_id: int = int32()
    broker_epoch: int = int64(default=-1)

    class TopicData(Struct):
        topic_id: UUID = uuid(ignorable=True)

        class PartitionData(Struct):
            partition_index: int = int32()
            leader_epoch: int = int32()
            new_isr: list[int] = array(int32, versions="2")

            class BrokerState(Struct):
                broker_id: int = int32()
                broker_epoch: int = int64(default=-1)

            new_isr_with_epochs: list[BrokerState] = array(BrokerState, versions="3+")
            leader_recovery_state: int = int8()
            partition_epoch: int = int32()

        partitions: list[PartitionData] = array(PartitionData)

    topics: list[TopicData] = array(TopicData)

    PartitionData = TopicData.PartitionData
    BrokerState = PartitionData.BrokerState


class AlterPartitionResponse(Message, versions="2-3", flexible="0+"):
    """The partition's state as the controller has decided it."""

    throttle_time_ms: int = int32()
    error_code: int = int16()

    class TopicData(Struct):
        topic_id: UUID = uuid(ignorable=True)

        class PartitionData(Struct):
            partition_index: int = int32()
            error_code: int = int16()
            leader_id: int = int32()
            leader_epoch: int = int32()
            isr: list[int] = array(int32)
            leader_recovery_state: int = int8(ignorable=True)
            partition_epoch: int = int32()

        partitions: list[PartitionData] = array(PartitionData)

    topics: list[TopicData] = array(TopicData)

    PartitionData = TopicData.PartitionData
