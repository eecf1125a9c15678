"""API key 52: Vote."""

from __future__ import annotations

from uuid import UUID

from ..schema import Message, Struct, array, boolean, int16, int32, int64, string, uint16, uuid


class VoteRequest(Message, versions="0-2", flexible="0+"):
    """A quorum candidate asks for a vote (v2: or a pre-vote)."""

    cluster_id: str | None = string(default=None, nullable="0+")
    voter_id: int = int32(default=-1, versions="1+", ignorable=True)

    class TopicData(Struct):
        topic_name: str = string()

        class PartitionData(Struct):
            partition_index: int = int32()
            replica_epoch: int = int32()
            replica_id: int = int32()
            replica_directory_id: UUID = uuid(versions="1+", ignorable=True)
            voter_directory_id: UUID = uuid(versions="1+", ignorable=True)
            last_offset_epoch: int = int32()
            last_offset: int = int64()
            pre_vote: bool = boolean(versions="2+")

        partitions: list[PartitionData] = array(PartitionData)

    topics: list[TopicData] = array(TopicData)

    PartitionData = TopicData.PartitionData


class VoteResponse(Message, versions="0-2", flexible="0+"):
    """Whether the vote is given."""

    error_code: int = int16()

    class TopicData(Struct):
        topic_name: str = string()

        class PartitionData(Struct):
            partition_index: int = int32()
            error_code: int = int16()
            leader_id: int = int32()
            leader_epoch: int = int32()
            vote_granted: bool = boolean()

        partitions: list[PartitionData] = array(PartitionData)

    topics: list[TopicData] = array(TopicData)

    class NodeEndpoint(Struct):
        node_id: int = int32()
        host: str = string()
        port: int = uint16()

    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, tag=0, tagged="1+")

    PartitionData = TopicData.PartitionData
