"""API key 19: CreateTopics."""

from __future__ import annotations

from uuid import UUID

from ..schema import Message, Struct, array, boolean, int8, int16, int32, string, uuid


class CreateTopicsRequest(Message, versions="2-7", flexible="5+"):
    """Create topics, with assignments or counts.

    v4 takes -1 for the cluster's default partition count and replication factor.
    """

    class CreatableTopic(Struct):
        name: str = string()
        num_partitions: int = int32()
        replication_factor: int = int16()

        class CreatableReplicaAssignment(Struct):
            partition_index: int = int32()
            broker_ids: list[int] = array(int32)

        assignments: list[CreatableReplicaAssignment] = array(CreatableReplicaAssignment)

        class CreatableTopicConfig(Struct):
            name: str = string()
            value: str | None = string(nullable="0+")

        configs: list[CreatableTopicConfig] = array(CreatableTopicConfig)

    topics: list[CreatableTopic] = array(CreatableTopic)
    timeout_ms: int = int32(default=60000)
    validate_only: bool = boolean()

    CreatableReplicaAssignment = CreatableTopic.CreatableReplicaAssignment
    CreatableTopicConfig = CreatableTopic.CreatableTopicConfig


class CreateTopicsResponse(Message, versions="2-7", flexible="5+"):
    """What became of each topic; from v5 with its settings, from v7 with its id."""

    throttle_time_ms: int = int32(ignorable=True)

    class CreatableTopicResult(Struct):
        name: str = string()
        topic_id: UUID = uuid(versions="7+", ignorable=True)
        error_code: int = int16()
        error_message: str | None = string(nullable="0+", ignorable=True)
        topic_config_error_code: int = int16(tag=0, tagged="5+", ignorable=True)
        num_partitions: int = int32(default=-1, versions="5+", ignorable=True)
        replication_factor: int = int16(default=-1, versions="5+", ignorable=True)

        class CreatableTopicConfigs(Struct):
            name: str = string()
            value: str | None = string(nullable="0+")
            read_only: bool = boolean()
            config_source: int = int8(default=-1, ignorable=True)
            is_sensitive: bool = boolean()

        configs: list[CreatableTopicConfigs] | None = array(
            CreatableTopicConfigs, versions="5+", nullable="5+", ignorable=True
        )

    topics: list[CreatableTopicResult] = array(CreatableTopicResult)

    CreatableTopicConfigs = CreatableTopicResult.CreatableTopicConfigs
