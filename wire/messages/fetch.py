"""API key 1: Fetch."""

from __future__ import annotations

from uuid import UUID

from ..buffers import Records
from ..schema import (
    Message,
    Struct,
    array,
    int8,
    int16,
    int32,
    int64,
    nested,
    record_set,
    string,
    uuid,
)


class FetchRequest(Message, versions="4-18", flexible="12+"):
    """Read record batches from partitions, as a consumer or as a follower.

    v7 adds sessions (KIP-227), v9 leader epochs, v11 racks, v12 the last fetched epoch for
    truncation, v13 topic ids, v15 the replica's epoch, v17 its directory, v18 the watermark it
    knows (KIP-1166).
    """

    cluster_id: str | None = string(
        default=None, nullable="12+", tag=0, tagged="12+", ignorable=True
    )
    replica_id: int = int32(default=-1, versions="4-14")

    class ReplicaState(Struct):
        replica_id: int = int32(default=-1)
        replica_epoch: int = int64(default=-1)

    replica_state: ReplicaState | None = nested(ReplicaState, tag=1, tagged="15+")
    max_wait_ms: int = int32()
    min_bytes: int = int32()
    max_bytes: int = int32(default=2**31 - 1, ignorable=True)
    isolation_level: int = int8(ignorable=True)
    session_id: int = int32(versions="7+", ignorable=True)
    session_epoch: int = int32(default=-1, versions="7+", ignorable=True)

    class FetchTopic(Struct):
        topic: str = string(versions="4-12", ignorable=True)
        topic_id: UUID = uuid(versions="13+", ignorable=True)

        class FetchPartition(Struct):
            partition: int = int32()
            current_leader_epoch: int = int32(default=-1, versions="9+", ignorable=True)
            fetch_offset: int = int64()
            last_fetched_epoch: int = int32(default=-1, versions="12+")
            log_start_offset: int = int64(default=-1, versions="5+", ignorable=True)
            partition_max_bytes: int = int32()
            replica_directory_id: UUID = uuid(tag=0, tagged="17+", ignorable=True)
            high_watermark: int = int64(default=2**63 - 1, tag=1, tagged="18+", ignorable=True)

        partitions: list[FetchPartition] = array(FetchPartition)

    topics: list[FetchTopic] = array(FetchTopic)

    class ForgottenTopic(Struct):
        topic: str = string(versions="7-12", ignorable=True)
        topic_id: UUID = uuid(versions="13+", ignorable=True)
        partitions: list[int] = array(int32)

    forgotten_topics_data: list[ForgottenTopic] = array(ForgottenTopic, versions="7+")
    rack_id: str = string(versions="11+", ignorable=True)

    FetchPartition = FetchTopic.FetchPartition


class FetchResponse(Message, versions="4-18", flexible="12+"):
    """Record batches, or where to look for them.

    v12 adds divergence, the current leader and a snapshot id as tagged fields; v13 names topics by
    id.
    """

    throttle_time_ms: int = int32(ignorable=True)
    error_code: int = int16(versions="7+", ignorable=True)
    session_id: int = int32(versions="7+")

    class FetchableTopicResponse(Struct):
        topic: str = string(versions="4-12", ignorable=True)
        topic_id: UUID = uuid(versions="13+", ignorable=True)

        class PartitionData(Struct):
            partition_index: int = int32()
            error_code: int = int16()
            high_watermark: int = int64()
            last_stable_offset: int = int64(default=-1, ignorable=True)
            log_start_offset: int = int64(default=-1, versions="5+", ignorable=True)

            class EpochEndOffset(Struct):
                epoch: int = int32(default=-1)
                end_offset: int = int64(default=-1)

            diverging_epoch: EpochEndOffset | None = nested(EpochEndOffset, tag=0, tagged="12+")

            class LeaderIdAndEpoch(Struct):
                leader_id: int = int32(default=-1)
                leader_epoch: int = int32(default=-1)

            current_leader: LeaderIdAndEpoch | None = nested(LeaderIdAndEpoch, tag=1, tagged="12+")

            class SnapshotId(Struct):
                end_offset: int = int64(default=-1)
                epoch: int = int32(default=-1)

            snapshot_id: SnapshotId | None = nested(SnapshotId, tag=2, tagged="12+")

            class AbortedTransaction(Struct):
                producer_id: int = int64()
                first_offset: int = int64()

            aborted_transactions: list[AbortedTransaction] | None = array(
                AbortedTransaction, nullable="0+", ignorable=True
            )
            preferred_read_replica: int = int32(default=-1, versions="11+")
            records: Records = record_set(nullable="0+")

        partitions: list[PartitionData] = array(PartitionData)

    responses: list[FetchableTopicResponse] = array(FetchableTopicResponse)

    class NodeEndpoint(Struct):
        node_id: int = int32()
        host: str = string()
        port: int = int32()
        rack: str | None = string(default=None, nullable="0+")

    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, tag=0, tagged="16+")

    PartitionData = FetchableTopicResponse.PartitionData
    EpochEndOffset = PartitionData.EpochEndOffset
    LeaderIdAndEpoch = PartitionData.LeaderIdAndEpoch
    SnapshotId = PartitionData.SnapshotId
    AbortedTransaction = PartitionData.AbortedTransaction
