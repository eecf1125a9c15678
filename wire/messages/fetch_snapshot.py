"""API key 59: FetchSnapshot."""

from __future__ import annotations

from uuid import UUID

from ..buffers import Records
from ..schema import (
    Message,
    Struct,
    array,
    int16,
    int32,
    int64,
    nested,
    record_set,
    string,
    uint16,
    uuid,
)


class FetchSnapshotRequest(Message, versions="0-1", flexible="0+"):
    """Read a piece of a metadata snapshot."""

    cluster_id: str | None = string(default=None, nullable="0+", tag=0, tagged="0+")
    replica_id: int = int32(default=-1)
    max_bytes: int = int32(default=2**31 - 1)

    class TopicSnapshot(Struct):
        name: str = string()

        class PartitionSnapshot(Struct):
            partition: int = int32()
            current_leader_epoch: int = int32()

            class SnapshotId(Struct):
                end_offset: int = int64()
                epoch: int = int32()

            snapshot_id: SnapshotId = nested(SnapshotId)
            position: int = int64()
            replica_directory_id: UUID = uuid(tag=0, tagged="1+", ignorable=True)

        partitions: list[PartitionSnapshot] = array(PartitionSnapshot)

    topics: list[TopicSnapshot] = array(TopicSnapshot)

    PartitionSnapshot = TopicSnapshot.PartitionSnapshot
    SnapshotId = PartitionSnapshot.SnapshotId


class FetchSnapshotResponse(Message, versions="0-1", flexible="0+"):
    """That piece, and how large the whole is."""

    throttle_time_ms: int = int32(ignorable=True)
    error_code: int = int16()

    class TopicSnapshot(Struct):
        name: str = string()

        class PartitionSnapshot(Struct):
            index: int = int32()
            error_code: int = int16()

            class SnapshotId(Struct):
                end_offset: int = int64()
                epoch: int = int32()

            snapshot_id: SnapshotId = nested(SnapshotId)

            class LeaderIdAndEpoch(Struct):
                leader_id: int = int32()
                leader_epoch: int = int32()

            current_leader: LeaderIdAndEpoch | None = nested(LeaderIdAndEpoch, tag=0, tagged="0+")
            size: int = int64()
            position: int = int64()
            unaligned_records: Records = record_set()

        partitions: list[PartitionSnapshot] = array(PartitionSnapshot)

    topics: list[TopicSnapshot] = array(TopicSnapshot)

    class NodeEndpoint(Struct):
        node_id: int = int32()
        host: str = string()
        port: int = uint16()

    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, tag=0, tagged="1+")

    PartitionSnapshot = TopicSnapshot.PartitionSnapshot
    SnapshotId = PartitionSnapshot.SnapshotId
    LeaderIdAndEpoch = PartitionSnapshot.LeaderIdAndEpoch
