"""API key 89: StreamsGroupDescribe."""

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


class StreamsGroupDescribeRequest(Message, versions="0-1", flexible="0+"):
    """State, members and topology of streams groups."""

    group_ids: list[str] = array(string)
    include_authorized_operations: bool = boolean()
    include_topology_description: bool = boolean(versions="1+")


class _Endpoint(Struct):
    host: str = string()
    port: int = uint16()


class _TaskOffset(Struct):
    subtopology_id: str = string()
    partition: int = int32()
    offset: int = int64()


class _TaskIds(Struct):
    subtopology_id: str = string()
    partitions: list[int] = array(int32)


class _Assignment(Struct):
    active_tasks: list[_TaskIds] = array(_TaskIds)
    standby_tasks: list[_TaskIds] = array(_TaskIds)
    warmup_tasks: list[_TaskIds] = array(_TaskIds)


class _KeyValue(Struct):
    key: str = string()
    value: str = string()


class _TopicInfo(Struct):
    name: str = string()
    partitions: int = int32()
    replication_factor: int = int16()
    topic_configs: list[_KeyValue] = array(_KeyValue)


class _TopologyDescriptionNode(Struct):
    name: str = string(versions="1+")
    node_type: int = int8(versions="1+")
    source_topics: list[str] = array(string, versions="1+")
    sink_topic: str | None = string(default=None, versions="1+", nullable="1+")
    stores: list[str] = array(string, versions="1+")
    successors: list[str] = array(string, versions="1+")


class _TopologyDescriptionSubtopology(Struct):
    subtopology_id: str = string(versions="1+")
    nodes: list[_TopologyDescriptionNode] = array(_TopologyDescriptionNode, versions="1+")


class _TopologyDescriptionGlobalStore(Struct):
    source: _TopologyDescriptionNode = nested(_TopologyDescriptionNode, versions="1+")
    processor: _TopologyDescriptionNode = nested(_TopologyDescriptionNode, versions="1+")


class _TopologyDescription(Struct):
    subtopologies: list[_TopologyDescriptionSubtopology] = array(
        _TopologyDescriptionSubtopology, versions="1+"
    )
    global_stores: list[_TopologyDescriptionGlobalStore] = array(
        _TopologyDescriptionGlobalStore, versions="1+"
    )


class StreamsGroupDescribeResponse(Message, versions="0-1", flexible="0+"):
    """What is known of each group."""

    Endpoint = _Endpoint
    TaskOffset = _TaskOffset
    TaskIds = _TaskIds
    Assignment = _Assignment
    KeyValue = _KeyValue
    TopicInfo = _TopicInfo
    TopologyDescriptionNode = _TopologyDescriptionNode
    TopologyDescriptionSubtopology = _TopologyDescriptionSubtopology
    TopologyDescriptionGlobalStore = _TopologyDescriptionGlobalStore
    TopologyDescription = _TopologyDescription

    throttle_time_ms: int = int32()

    class DescribedGroup(Struct):
        error_code: int = int16()
        error_message: str | None = string(default=None, nullable="0+")
        group_id: str = string()
        group_state: str = string()
        group_epoch: int = int32()
        assignment_epoch: int = int32()

        class Topology(Struct):
            epoch: int = int32()

            class Subtopology(Struct):
                subtopology_id: str = string()
                source_topics: list[str] = array(string)
                repartition_sink_topics: list[str] = array(string)
                state_changelog_topics: list[_TopicInfo] = array(_TopicInfo)
                repartition_source_topics: list[_TopicInfo] = array(_TopicInfo)

            subtopologies: list[Subtopology] | None = array(
                Subtopology, default=None, nullable="0+"
            )

        topology: Topology | None = nested(Topology, nullable="0+")

        class Member(Struct):
            member_id: str = string()
            member_epoch: int = int32()
            instance_id: str | None = string(default=None, nullable="0+")
            rack_id: str | None = string(default=None, nullable="0+")
            client_id: str = string()
            client_host: str = string()
            topology_epoch: int = int32()
            process_id: str = string()
            user_endpoint: _Endpoint | None = nested(_Endpoint, nullable="0+")
            client_tags: list[_KeyValue] = array(_KeyValue)
            task_offsets: list[_TaskOffset] = array(_TaskOffset)
            task_end_offsets: list[_TaskOffset] = array(_TaskOffset)
            assignment: _Assignment = nested(_Assignment)
            target_assignment: _Assignment = nested(_Assignment)
            is_classic: bool = boolean()

        members: list[Member] = array(Member)
        authorized_operations: int = int32(default=-(2**31))
        topology_description: _TopologyDescription | None = nested(
            _TopologyDescription, versions="1+", nullable="1+"
        )
        topology_description_status: int = int8(versions="1+")
        assignor_name: str | None = string(
            default=None, versions="1+", nullable="1+", ignorable=True
        )

    groups: list[DescribedGroup] = array(DescribedGroup)

    Topology = DescribedGroup.Topology
    Member = DescribedGroup.Member
    Subtopology = Topology.Subtopology
