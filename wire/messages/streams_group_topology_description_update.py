"""API key 93: StreamsGroupTopologyDescriptionUpdate."""

from __future__ import annotations

from ..schema import Message, Struct, array, int8, int16, int32, nested, string


class _TopologyDescriptionNode(Struct):
    name: str = string()
    node_type: int = int8()
    source_topics: list[str] = array(string)
    sink_topic: str | None = string(default=None, nullable="0+")
    stores: list[str] = array(string)
    successors: list[str] = array(string)


class _TopologyDescriptionSubtopology(Struct):
    subtopology_id: str = string()
    nodes: list[_TopologyDescriptionNode] = array(_TopologyDescriptionNode)


class _TopologyDescriptionGlobalStore(Struct):
    source: _TopologyDescriptionNode = nested(_TopologyDescriptionNode)
    processor: _TopologyDescriptionNode = nested(_TopologyDescriptionNode)


class _TopologyDescription(Struct):
    subtopologies: list[_TopologyDescriptionSubtopology] = array(_TopologyDescriptionSubtopology)
    global_stores: list[_TopologyDescriptionGlobalStore] = array(_TopologyDescriptionGlobalStore)


class StreamsGroupTopologyDescriptionUpdateRequest(Message, versions="0", flexible="0+"):
    """A streams member hands in a description of its topology."""

    TopologyDescriptionNode = _TopologyDescriptionNode
    TopologyDescriptionSubtopology = _TopologyDescriptionSubtopology
    TopologyDescriptionGlobalStore = _TopologyDescriptionGlobalStore
    TopologyDescription = _TopologyDescription

    group_id: str = string()
    member_id: str = string()
    topology_epoch: int = int32()
    topology_description: _TopologyDescription = nested(_TopologyDescription)


class StreamsGroupTopologyDescriptionUpdateResponse(Message, versions="0", flexible="0+"):
    """Whether it was taken."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(default=None, nullable="0+")
