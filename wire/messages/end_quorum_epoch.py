"""API key 54: EndQuorumEpoch."""

from __future__ import annotations

from uuid import UUID

from ..schema import Message, Struct, array, int16, int32, string, uint16, uuid


class EndQuorumEpochRequest(Message, versions="0-1", flexible="1+"):
    """A quorum leader steps down."""

    cluster_id: str | None = string(default=None, nullable="0+")

    class TopicData(Struct):
        topic_name: str = string()

        class PartitionData(Struct):
            partition_index: int = int32()
            leader_id: int = int32()
            leader_epoch: int = int32()
            preferred_successors: list[int] = array(int32, versions="0", ignorable=True)

            class ReplicaInfo(Struct):
                candidate_id: int = int32()
                candidate_directory_id: UUID = uuid()

            preferred_candidates: list[ReplicaInfo] = array(
                ReplicaInfo, versions="1+", ignorable=True
            )

        partitions: list[PartitionData] = array(PartitionData)

    topics: list[TopicData] = array(TopicData)

    class LeaderEndpoint(Struct):
        name: str = string()
        host: str = string()
        port: int = uint16()

    leader_endpoints: list[LeaderEndpoint] = array(LeaderEndpoint, versions="1+", ignorable=True)

    PartitionData = TopicData.PartitionData
    ReplicaInfo = PartitionData.ReplicaInfo


class EndQuorumEpochResponse(Message, versions="0-1", flexible="1+"):
    """Whether that was heard."""

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
