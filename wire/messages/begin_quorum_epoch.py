"""API key 53: BeginQuorumEpoch."""

from __future__ import annotations

from uuid import UUID

from ..schema import Message, Struct, array, int16, int32, string, uint16, uuid


class BeginQuorumEpochRequest(Message, versions="0-1", flexible="1+"):
    """A new quorum leader announces itself."""

    cluster_id: str | None = string(default=None, nullable="0+")
    voter_id: int = int32(default=-1, versions="1+", ignorable=True)

    class TopicData(Struct):
        topic_name: str = string()

        class PartitionData(Struct):
            partition_index: int = int32()
            voter_directory_id: UUID = uuid(versions="1+", ignorable=True)
            leader_id: int = int32()
            leader_epoch: int = int32()

        partitions: list[PartitionData] = array(PartitionData)

    topics: list[TopicData] = array(TopicData)

    class LeaderEndpoint(Struct):
        name: str = string()
        host: str = string()
        port: int = uint16()

    leader_endpoints: list[LeaderEndpoint] = array(LeaderEndpoint, versions="1+", ignorable=True)

    PartitionData = TopicData.PartitionData


class BeginQuorumEpochResponse(Message, versions="0-1", flexible="1+"):
    """Whether the epoch is accepted."""

    error_code: int = int16()

    class TopicData(Struct):
        topic_name: str = string()

        class PartitionData(Struct):
            partition_index: int = int32()
            error_code: int = int16()
            leader_id: int = int32()
            leader_epoch: int = int32()

        partitions: list[PartitionData] = array(PartitionData)

    topics: list[TopicData] = array(TopicData)

    class NodeEndpoint(Struct):
        node_id: int = int32()
        host: str = string()
        port: int = uint16()

    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, tag=0, tagged="1+")

    PartitionData = TopicData.PartitionData
