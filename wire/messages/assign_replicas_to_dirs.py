"""API key 73: AssignReplicasToDirs."""

from __future__ import annotations

from uuid import UUID

from ..schema import Message, Struct, array, int16, int32, int64, uuid


class AssignReplicasToDirsRequest(Message, versions="0", flexible="0+"):
    """A broker says which of its directories hold which replicas."""

    broker_id: int = int32()
    broker_epoch: int = int64(default=-1)

    class DirectoryData(Struct):
        id: UUID = uuid()

        class TopicData(Struct):
            topic_id: UUID = uuid()

            class PartitionData(Struct):
                partition_index: int = int32()

            partitions: list[PartitionData] = array(PartitionData)

        topics: list[TopicData] = array(TopicData)

    directories: list[DirectoryData] = array(DirectoryData)

    TopicData = DirectoryData.TopicData
    PartitionData = TopicData.PartitionData


class AssignReplicasToDirsResponse(Message, versions="0", flexible="0+"):
    """An error code for each partition."""

    throttle_time_ms: int = int32()
    error_code: int = int16()

    class DirectoryData(Struct):
        id: UUID = uuid()

        class TopicData(Struct):
            topic_id: UUID = uuid()

            class PartitionData(Struct):
                partition_index: int = int32()
                error_code: int = int16()

            partitions: list[PartitionData] = array(PartitionData)

        topics: list[TopicData] = array(TopicData)

    directories: list[DirectoryData] = array(DirectoryData)

    TopicData = DirectoryData.TopicData
    PartitionData = TopicData.PartitionData
