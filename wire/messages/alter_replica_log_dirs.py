"""API key 34: AlterReplicaLogDirs."""

from __future__ import annotations

from ..schema import Message, Struct, array, int16, int32, string


class AlterReplicaLogDirsRequest(Message, versions="1-2", flexible="2+"):
    """Move replicas between the directories of one broker."""

    class AlterReplicaLogDir(Struct):
        path: str = string()

        class AlterReplicaLogDirTopic(Struct):
            name: str = string()
            partitions: list[int] = array(int32)

        topics: list[AlterReplicaLogDirTopic] = array(AlterReplicaLogDirTopic)

    dirs: list[AlterReplicaLogDir] = array(AlterReplicaLogDir)

    AlterReplicaLogDirTopic = AlterReplicaLogDir.AlterReplicaLogDirTopic


class AlterReplicaLogDirsResponse(Message, versions="1-2", flexible="2+"):
    """An error code for each partition."""

    throttle_time_ms: int = int32()

    class AlterReplicaLogDirTopicResult(Struct):
        topic_name: str = string()

        class AlterReplicaLogDirPartitionResult(Struct):
            partition_index: int = int32()
            error_code: int = int16()

        partitions: list[AlterReplicaLogDirPartitionResult] = array(
            AlterReplicaLogDirPartitionResult
        )

    results: list[AlterReplicaLogDirTopicResult] = array(AlterReplicaLogDirTopicResult)

    AlterReplicaLogDirPartitionResult = (
        AlterReplicaLogDirTopicResult.AlterReplicaLogDirPartitionResult
    )
