"""API key 55: DescribeQuorum."""

from __future__ import annotations

from uuid import UUID

from ..schema import Message, Struct, array, int16, int32, int64, string, uint16, uuid


class DescribeQuorumRequest(Message, versions="0-2", flexible="0+"):
    """Leader, voters and observers of the metadata quorum."""

    class TopicData(Struct):
        topic_name: str = string()

        class PartitionData(Struct):
            partition_index: int = int32()

        partitions: list[PartitionData] = array(PartitionData)

    topics: list[TopicData] = array(TopicData)

    PartitionData = TopicData.PartitionData


class ReplicaState(Struct):
    """A voter or an observer."""

    replica_id: int = int32()
    replica_directory_id: UUID = uuid(versions="2+")
    log_end_offset: int = int64()
    last_fetch_timestamp: int = int64(default=-1, versions="1+", ignorable=True)
    last_caught_up_timestamp: int = int64(default=-1, versions="1+", ignorable=True)


class DescribeQuorumResponse(Message, versions="0-2", flexible="0+"):
    """The quorum's state; from v2 with the addresses of its nodes."""

    error_code: int = int16()
    error_message: str | None = string(versions="2+", nullable="2+", ignorable=True)

    class TopicData(Struct):
        topic_name: str = string()

        class PartitionData(Struct):
            partition_index: int = int32()
            error_code: int = int16()
            error_message: str | None = string(versions="2+", nullable="2+", ignorable=True)
            leader_id: int = int32()
            leader_epoch: int = int32()
            high_watermark: int = int64()
            current_voters: list[ReplicaState] = array(ReplicaState)
            observers: list[ReplicaState] = array(ReplicaState)

        partitions: list[PartitionData] = array(PartitionData)

    topics: list[TopicData] = array(TopicData)

    class Node(Struct):
        node_id: int = int32()

        class Listener(Struct):
            name: str = string()
            host: str = string()
            port: int = uint16()

        listeners: list[Listener] = array(Listener)

    nodes: list[Node] = array(Node, versions="2+")

    PartitionData = TopicData.PartitionData
    Listener = Node.Listener
