"""API key 88: StreamsGroupHeartbeat."""

from __future__ import annotations

from ..schema import (
    Message,
    Struct,
    array,
    boolean,
    int8,
    int16,
    int32,
    int64,
    nested,
    string,
    uint16,
)


class _KeyValue(Struct):
    key: str = string()
    value: str = string()


class _TopicInfo(Struct):
    name: str = string()
    partitions: int = int32()
    replication_factor: int = int16()
    topic_configs: list[_KeyValue] = array(_KeyValue)


class _RequestEndpoint(Struct):
    host: str = string()
    port: int = uint16()


class _TaskOffset(Struct):
    subtopology_id: str = string()
    partition: int = int32()
    offset: int = int64()


class _RequestTaskIds(Struct):
    subtopology_id: str = string()
    partitions: list[int] = array(int32)


class StreamsGroupHeartbeatRequest(Message, versions="0-1", flexible="0+"):
    """A streams group member joins, reports or leaves (KIP-1071)."""

    KeyValue = _KeyValue
    TopicInfo = _TopicInfo
    Endpoint = _RequestEndpoint
    TaskOffset = _TaskOffset
    TaskIds = _RequestTaskIds

    group_id: str = string()
    member_id: str = string()
    member_epoch: int = int32()
    endpoint_information_epoch: int = int32()
    instance_id: str | None = string(default=None, nullable="0+")
    rack_id: str | None = string(default=None, nullable="0+")
    rebalance_timeout_ms: int = int32(default=-1)

    class Topology(Struct):
        epoch: int = int32()

        class Subtopology(Struct):
            subtopology_id: str = string()
            source_topics: list[str] = array(string)
            source_topic_regex: list[str] = array(string)
            state_changelog_topics: list[_TopicInfo] = array(_TopicInfo)
            repartition_sink_topics: list[str] = array(string)
            repartition_source_topics: list[_TopicInfo] = array(_TopicInfo)

            class CopartitionGroup(Struct):
                source_topics: list[int] = array(int16)
                source_topic_regex: list[int] = array(int16)
                repartition_source_topics: list[int] = array(int16)

            copartition_groups: list[CopartitionGroup] = array(CopartitionGroup)

        subtopologies: list[Subtopology] = array(Subtopology)

    topology: Topology | None = nested(Topology, nullable="0+")
    active_tasks: list[_RequestTaskIds] | None = array(_RequestTaskIds, default=None, nullable="0+")
    standby_tasks: list[_RequestTaskIds] | None = array(
        _RequestTaskIds, default=None, nullable="0+"
    )
    warmup_tasks: list[_RequestTaskIds] | None = array(_RequestTaskIds, default=None, nullable="0+")
    process_id: str | None = string(default=None, nullable="0+")
    user_endpoint: _RequestEndpoint | None = nested(_RequestEndpoint, nullable="0+")
    client_tags: list[_KeyValue] | None = array(_KeyValue, default=None, nullable="0+")
    task_offsets: list[_TaskOffset] | None = array(_TaskOffset, default=None, nullable="0+")
    task_end_offsets: list[_TaskOffset] | None = array(_TaskOffset, default=None, nullable="0+")
    shutdown_application: bool = boolean()

    Subtopology = Topology.Subtopology
    CopartitionGroup = Subtopology.CopartitionGroup


class _Status(Struct):
    status_code: int = int8()
    status_detail: str = string()


class _TopicPartition(Struct):
    topic: str = string()
    partitions: list[int] = array(int32)


class _ResponseTaskIds(Struct):
    subtopology_id: str = string()
    partitions: list[int] = array(int32)


class _ResponseEndpoint(Struct):
    host: str = string()
    port: int = uint16()


class StreamsGroupHeartbeatResponse(Message, versions="0-1", flexible="0+"):
    """The member's epoch and tasks."""

    Status = _Status
    TopicPartition = _TopicPartition
    TaskIds = _ResponseTaskIds
    Endpoint = _ResponseEndpoint

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(default=None, nullable="0+")
    member_id: str = string()
    member_epoch: int = int32()
    heartbeat_interval_ms: int = int32()
    acceptable_recovery_lag_legacy: int = int32(versions="0")
    task_offset_interval_ms: int = int32()
    acceptable_recovery_lag: int = int64(default=-1, versions="1+", ignorable=True)
    status: list[_Status] | None = array(_Status, nullable="0+")
    active_tasks: list[_ResponseTaskIds] | None = array(
        _ResponseTaskIds, default=None, nullable="0+"
    )
    standby_tasks: list[_ResponseTaskIds] | None = array(
        _ResponseTaskIds, default=None, nullable="0+"
    )
    warmup_tasks: list[_ResponseTaskIds] | None = array(
        _ResponseTaskIds, default=None, nullable="0+"
    )
    topology_description_required: bool = boolean(versions="1+")
    endpoint_information_epoch: int = int32()

    class EndpointToPartitions(Struct):
        user_endpoint: _ResponseEndpoint = nested(_ResponseEndpoint)
        active_partitions: list[_TopicPartition] = array(_TopicPartition)
        standby_partitions: list[_TopicPartition] = array(_TopicPartition)

    partitions_by_user_endpoint: list[EndpointToPartitions] | None = array(
        EndpointToPartitions, default=None, nullable="0+"
    )
