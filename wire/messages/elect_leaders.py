"""API key 43: ElectLeaders."""

from __future__ import annotations

from ..schema import Message, Struct, array, int8, int16, int32, string


class ElectLeadersRequest(Message, versions="0-2", flexible="2+"):
    """Elect partition leaders, preferred or unclean."""

    election_type: int = int8(versions="1+")

    class TopicPartitions(Struct):
        topic: str = string()
        partitions: list[int] = array(int32)

    topic_partitions: list[TopicPartitions] | None = array(TopicPartitions, nullable="0+")
    timeout_ms: int = int32(default=60000)


class ElectLeadersResponse(Message, versions="0-2", flexible="2+"):
    """What became of each partition."""

    throttle_time_ms: int = int32()
    error_code: int = int16(versions="1+")

    class ReplicaElectionResult(Struct):
        topic: str = string()

        class PartitionResult(Struct):
            partition_id: int = int32()
            error_code: int = int16()
            error_message: str | None = string(nullable="0+")

        partition_result: list[PartitionResult] = array(PartitionResult)

    replica_election_results: list[ReplicaElectionResult] = array(ReplicaElectionResult)

    PartitionResult = ReplicaElectionResult.PartitionResult
