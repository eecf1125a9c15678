"""Record type 23 of `__consumer_offsets`: StreamsGroupTopology."""

from __future__ import annotations

from ..schema import Struct, array, int16, int32, string
from ..versioned import CoordinatorKey, Versioned


class StreamsGroupTopologyKey(CoordinatorKey, versions="0", record_type=23):
    """Key of the record for the topology of a streams group."""

    group_id: str = string()


class _TopicConfig(Struct):
    key: str = string()
    value: str = string()


class _TopicInfo(Struct):
    name: str = string()
    partitions: int = int32()
    replication_factor: int = int16()
    topic_configs: list[_TopicConfig] = array(_TopicConfig)


class StreamsGroupTopologyValue(Versioned, versions="0", flexible="0+"):
    """The topology of a streams group."""

    TopicConfig = _TopicConfig
    TopicInfo = _TopicInfo

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

    CopartitionGroup = Subtopology.CopartitionGroup
